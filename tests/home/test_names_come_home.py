"""On a cluster: what a loop over ``context.train()`` sets and changes has, in the notebook, what the worker left."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, running_kernel
from torch_program import TORCH

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
SEEN = (
    "[train_losses, losses_of_plot is train_losses, step, stopper.seen == train_losses, best, loss.item(), "
    "best_model is model, [value.tolist() for value in best_state.values()], loss_here()]"
)


@pytest.fixture(autouse=True)
def _no_names(kernel: Kernel) -> None:
    """Leave the kernel no names of an earlier loop."""
    kernel.run(FORGET)


def test_names_have_the_values_of_local_training(kernel: Kernel) -> None:
    kernel.run("context, model, optimizer, train_batch = begin(local=True)")
    kernel.run(BEFORE)
    kernel.run(LOOP)
    local = kernel.value(SEEN)
    assert len(local[0]) == 12
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(FORGET)
    kernel.run(BEFORE)
    ran = kernel.run(f"{LOOP}\nprint('LENGTH', len(train_losses), loss.item() == train_losses[-1], step)")
    assert "LENGTH 12 True 12" in ran.text, "the rest of the cell"
    assert kernel.value(SEEN) == local


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


@pytest.mark.soak
def test_names_of_a_function_come_home_while_it_waits(kernel: Kernel) -> None:
    kernel.run("context, model, optimizer, train_batch = begin()")
    lines = "\n".join(f"    {line}" for line in LOOP.splitlines())
    kernel.run(BEFORE)
    kernel.run(f"def train(train_losses):\n    best, step = None, 0\n{lines}\n    return step, best, train_losses")
    kernel.run("found = train(train_losses)")
    assert kernel.value("[found[0], found[1] == min(train_losses), found[2] is train_losses]") == [12, True, True]


@pytest.mark.long
def test_what_cannot_be_pickled_is_told(kernel: Kernel) -> None:
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(f"{BEFORE}\nmade = None")
    ran = kernel.run(f"{LOOP}    made = (number for number in train_losses)")
    assert "`made` is a generator: it stays on the worker." in ran.text
    assert kernel.value("[len(train_losses), made]") == [12, None]


@pytest.mark.soak
def test_a_later_training_may_read_what_a_loop_has_set(kernel: Kernel) -> None:
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(BEFORE)
    kernel.run(LOOP)
    kernel.run("first = [loss.item(), len(train_losses)]")
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(
        "seen = []\nfor inputs, targets in context.train(data, epochs=1):\n"
        "    context.backward(torch.nn.functional.mse_loss(model(inputs), targets))\n"
        "    context.step_optimizer(optimizer)\n    context.report(loss=1.0)\n"
        "    seen.append([loss.item(), len(train_losses)])\n"
    )
    assert kernel.value("seen[-1] == first") is True


@pytest.mark.long
def test_a_worker_that_is_killed_goes_on_with_the_names(kernel: Kernel, tmp_path: Path) -> None:
    flag = tmp_path / "killed"
    kernel.run(f"config['max_restarts'] = 1\nimport os\nflag = {str(flag)!r}")
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(BEFORE)
    kill = "\n    if step == 7 and not os.path.exists(flag):\n        open(flag, 'w').close()\n        os._exit(9)\n"
    kernel.run(f"{LOOP}{kill}")
    killed = kernel.value(SEEN)
    assert flag.exists()
    kernel.run("context, model, optimizer, train_batch = begin()")
    kernel.run(BEFORE)
    kernel.run(f"{LOOP}{kill}")
    assert kernel.value(SEEN) == killed
    assert len(killed[0]) == 12


@pytest.mark.soak
def test_names_of_a_loop_in_processes_of_their_own_come_home(cluster: Cluster) -> None:
    with running_kernel(cluster, "torch", GATE_CELL, TORCH) as kernel:
        kernel.run("config['resources'] = {'slots_per_trial': 2}\ncontext, model, optimizer, _ = begin(local=True)")
        kernel.run(BEFORE)
        ran = kernel.run(LOOP)
        assert "its variables are as it left them there" in ran.text
        last = kernel.value("[len(train_losses), loss.item() == train_losses[-1], step, best_model is model]")
        assert last == [12, True, 12, True]


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
