"""Workers of ``det.experimental.pytorch`` that are killed in mid-epoch: fit() and the user's own loop end as if not."""

from __future__ import annotations

import signal

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES, NATIVE_OBJECTS

from det_native.client.handles import Experiment
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


@pytest.mark.parametrize(
    ("undisturbed", "killed"),
    [pytest.param(FIT, LOOP, id="loop"), pytest.param(LOOP, FIT, id="fit", marks=pytest.mark.long)],
)
def test_the_end_is_the_same_bit_for_bit_by_fit_and_loop(
    undisturbed: str, killed: str, native_kernel: Kernel, cluster: Cluster, gate: Gate
) -> None:
    def submit(call: str, **settings: object) -> Experiment:
        native_kernel.run(f"settings = {settings}")
        native_kernel.run(NATIVE_OBJECTS)
        return cluster.attach(native_kernel.submit(call))

    whole = submit(undisturbed)
    middle = submit(killed, stops="8", port=gate.port)
    visitor = gate.next()
    checkpoint_at(middle, 6)
    visitor.die(signal.SIGKILL)
    again = gate.next()
    assert again.text == "8", "the trial is continued within the epoch, from batch 6"
    again.go()
    for experiment, restarts in ((whole, 0), (middle, 1)):
        assert ended(experiment, ExperimentState.COMPLETED).restarts == restarts
        assert_complete_rows(experiment, BATCHES)
    assert native_kernel.end_of(middle.id) == native_kernel.end_of(whole.id)
    assert "at batch 6." in str(middle.logs())
    # What is in context.state goes on, and a variable of the loop does: as the documentation says.
    loop = middle if killed == LOOP else whole
    assert "batch 14: seen 15, loose 15" in str(loop.logs())


@pytest.mark.long
def test_two_slots_train_the_same_by_fit_and_loop(native_kernel: Kernel, cluster: Cluster) -> None:
    native_kernel.run("settings = {}")
    found = []
    for call in (FIT, LOOP):
        native_kernel.run(NATIVE_OBJECTS.replace("settings)", "settings, resources={'slots_per_trial': 2})"))
        # One batch to validate on: the second slot has none.
        whole = call.replace("loader(False)", "torch.utils.data.DataLoader(loader(False).dataset, batch_size=1000)")
        assert whole != call
        experiment = cluster.attach(native_kernel.submit(whole))
        ended(experiment, ExperimentState.COMPLETED)
        assert_complete_rows(experiment, BATCHES)
        found.append(native_kernel.end_of(experiment.id))
    assert found[0] == found[1]
    assert "[rank 1] batch 14: seen 15" in str(experiment.logs())
