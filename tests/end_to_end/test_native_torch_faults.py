"""Workers of ``det.experimental.pytorch`` that are killed in mid-epoch: fit() and the user's own loop end as if not."""

from __future__ import annotations

import signal

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES, CONFIG
from programs import NATIVE_OBJECTS as OBJECTS
from programs import NATIVE_SETUP as IMPORTS

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

FIT = """
def train_batch(batch, epoch_idx, batch_idx):
    visit(batch_idx)
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.state["smooth"] = 0.9 * context.state.get("smooth", 0.0) + 0.1 * float(loss)
    return {"loss": loss, "smooth": context.state["smooth"]}

experiment = context.fit(loader(True), loader(False), train_batch=train_batch, evaluate_batch=evaluate_batch)
"""

LOOP = """
context.state["smooth"], context.state["seen"] = 0.0, []
loose = 0
for batch in context.train(loader(True), validation_loader=loader(False), evaluate_batch=evaluate_batch):
    visit(context.batch_idx)
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.state["smooth"] = 0.9 * context.state["smooth"] + 0.1 * float(loss)
    context.state["seen"].append(context.batch_idx)
    loose += 1
    context.report(loss=loss, smooth=context.state["smooth"])
    print(f"batch {context.batch_idx}: seen {len(context.state['seen'])}, loose {loose}")
experiment = context.experiment
"""

WEIGHTS = """
def weights(experiment):
    model = experiment.trials[0].checkpoints[-1].load()
    return [value.numpy().tobytes().hex() for value in model.state_dict().values()]
"""


@pytest.mark.parametrize("call", [FIT, LOOP], ids=["fit", "loop"])
def test_the_end_is_the_same_bit_for_bit(call: str, kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    for cell in (IMPORTS, GATE_CELL, CONFIG, WEIGHTS):
        kernel.run(cell)

    def submit(**settings: object) -> int:
        kernel.run(f"settings = {settings}")
        kernel.run(OBJECTS)
        return kernel.submit(call)

    undisturbed = cluster.attach(submit())
    middle = cluster.attach(submit(stops="8", port=gate.port))
    visitor = gate.next()
    checkpoint_at(middle, 6)
    visitor.die(signal.SIGKILL)
    again = gate.next()
    assert again.text == "8", "the trial is continued within the epoch, from batch 6"
    again.go()

    found = []
    for experiment, restarts in ((undisturbed, 0), (middle, 1)):
        assert ended(experiment, ExperimentState.COMPLETED).restarts == restarts
        assert_complete_rows(experiment, BATCHES)
        rows = [experiment.trials[0].metrics(kind) for kind in ("training", "validation")]
        found.append((kernel.value(f"weights(det.attach({experiment.id}))"), rows))
    assert found[1] == found[0]
    assert "at batch 6." in str(middle.logs())
    if call == LOOP:
        # What is in context.state goes on, a variable of the loop begins anew: as the documentation says.
        assert "batch 14: seen 15, loose 15" in str(undisturbed.logs())
        assert "batch 14: seen 15, loose 9" in str(middle.logs())


def test_two_slots_train_the_same_by_fit_and_loop(kernel: Kernel, cluster: Cluster) -> None:
    for cell in (IMPORTS, GATE_CELL, CONFIG, WEIGHTS, "settings = {}"):
        kernel.run(cell)
    found = []
    for call in (FIT, LOOP):
        kernel.run(OBJECTS.replace("settings)", "settings, resources={'slots_per_trial': 2})"))
        # One batch to validate on: the second slot has none.
        whole = call.replace("loader(False)", "DataLoader(loader(False).dataset, batch_size=1000)")
        assert whole != call
        experiment = cluster.attach(kernel.submit(whole))
        ended(experiment, ExperimentState.COMPLETED)
        assert_complete_rows(experiment, BATCHES)
        rows = [experiment.trials[0].metrics(kind) for kind in ("training", "validation")]
        found.append((kernel.value(f"weights(det.attach({experiment.id}))"), rows))
    assert found[0] == found[1]
    assert "[rank 1] batch 14: seen 15" in str(experiment.logs())
