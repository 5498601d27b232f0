"""On a cluster: what a loop over ``context.train()`` sets and changes has, in the notebook, what the worker left."""

from __future__ import annotations

import pytest
from faults import Gate, Kernel

pytestmark = pytest.mark.slow

LOOP = """
for inputs, targets in context.train(data, epochs=3):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
    train_losses.append(loss.item())
    step += 1
    stopper(loss.item())
    if best is None or train_losses[-1] < best:
        best, best_model = train_losses[-1], model
        best_state = {name: value.clone() for name, value in model.state_dict().items()}
"""
BEFORE = """
class Stopper:
    def __init__(self):
        self.seen = []
    def __call__(self, loss):
        self.seen.append(loss)

stopper = Stopper()
step = 0
train_losses, best = [], None
losses_of_plot = train_losses
"""
FORGET = "for name in ('loss', 'best_model', 'best_state', 'step'):\n    globals().pop(name, None)"


@pytest.fixture(autouse=True)
def _no_names(kernel: Kernel) -> None:
    """Leave the kernel no names of an earlier loop."""
    kernel.run(FORGET)


@pytest.mark.long
def test_what_is_bound_anew_before_the_result_comes_is_the_users(kernel: Kernel, gate: Gate) -> None:
    kernel.run("context, model, optimizer, train_batch = begin(wait=False)")
    kernel.run(BEFORE)
    kernel.run(LOOP.replace("    step += 1", f"    step += 1\n    if step == 2: gate({gate.port})"))
    ran = kernel.run("train_losses, step, loss = [], 100, 'mine'\nprint('SET', train_losses, step, loss)")
    assert "SET [] 100 mine" in ran.text
    gate.next().go()
    kernel.run("context.experiment.wait()")
    assert kernel.value("[train_losses, step, loss, len(losses_of_plot)]") == [[], 100, "mine", 12]


@pytest.mark.long
def test_what_cannot_travel_is_told_by_name(kernel: Kernel) -> None:
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(BEFORE)
    kernel.run("made = None")
    ran = kernel.run(f"{LOOP}    made = (number for number in train_losses)")
    assert "`made` is a generator: it stays on the worker." in ran.text
    assert kernel.value("[len(train_losses), made]") == [12, None]


@pytest.mark.soak
def test_names_of_a_loop_that_was_left_are_those_of_its_end(kernel: Kernel) -> None:
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(BEFORE)
    kernel.run(f"{LOOP}    if step == 5:\n        why = 'enough'\n        break\n")
    assert kernel.value("[step, len(train_losses), why]") == [5, 5, "enough"]
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(BEFORE)
    kernel.run(LOOP.replace("    loss =", "    if step == 5:\n        why = 'more'\n        break\n    loss =", 1))
    assert kernel.value("[step, len(train_losses), why]") == [5, 5, "more"]
