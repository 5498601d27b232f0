"""Loops over ``context.train()`` on real workers: the ways out of them, and the mistakes that are told in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import Cluster, Kernel, ended, line_of
from programs import NATIVE_OBJECTS

from det_native.client.handles import Experiment
from det_native.schema.states import ExperimentState, MetricKind

pytestmark = [pytest.mark.slow, pytest.mark.long]

MORE = """
from itertools import islice

def train(batch):
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)

def batches_of():
    return context.train(loader(True), validation_loader=loader(False), evaluate_batch=evaluate_batch)
"""


@pytest.fixture(scope="module", autouse=True)
def program(session_native_kernel: Kernel) -> None:
    """The cell that all programs share."""
    session_native_kernel.run(MORE)


def submit(kernel: Kernel, cluster: Cluster, *cells: str, **changed: object) -> Experiment:
    """Submit a program whose last cells are given; the last one has the loop."""
    kernel.run("settings = {}")
    kernel.run(NATIVE_OBJECTS.replace("settings)", f"settings, **{changed})"))
    for cell in cells:
        kernel.run(cell)
    return cluster.attach(kernel.value("context.experiment.id"))


def assert_ended_after(experiment: Experiment, batches: int) -> None:
    """Check that the training was ended in order after some batches: reported, saved and validated."""
    assert ended(experiment, ExperimentState.COMPLETED).batches == batches
    trial = experiment.trials[0]
    assert [row["batch"] for row in trial.metrics()] == list(range(1, batches + 1))
    assert trial.checkpoints[-1].batch == batches
    assert trial.metrics("validation")[-1]["batch"] == batches


NAMED = """
batches = batches_of()
for batch in batches:
    train(batch)
    if context.batch_idx == 3:
        break
"""

BEHIND = """
left = False  # where this cell runs again for another loop, there are no batches
for batch in batches_of():
    train(batch)
    left = context.batch_idx == 3
    if left:
        break
if context.role == "worker" and left:
    raise OSError("behind the loop")
"""

ZIPPED = """
for number, batch in zip(range(4), batches_of()):
    train(batch)
"""


CAUGHT = """
try:
    for batch in batches_of():
        train(batch)
        raise OSError("in the body")
except OSError:
    pass
"""

EXITS = """
import sys
for batch in batches_of():
    train(batch)
    if context.batch_idx == 3:
        sys.exit("that is enough")
"""

FAILS_IN_ZIP = """
def numbers():
    yield from range(3)
    raise OSError("no more numbers")

for number, batch in zip(numbers(), batches_of()):
    train(batch)
"""


# int(None) fails in C code, without a frame: while the loop is let go, it looks as if an iterator had ended.
FAILS_IN_C = """
numbers = list(map(int, map(train, batches_of())))
"""

CELLS = {
    "named": NAMED,
    "behind": BEHIND,
    "zipped": ZIPPED,
    "caught": CAUGHT,
    "exits": EXITS,
    "fails": FAILS_IN_ZIP,
    "in_c": FAILS_IN_C,
}


@pytest.fixture(scope="module")
def submitted(program: None, session_native_kernel: Kernel) -> dict[str, int]:
    """A loop for every way out, all submitted before any has ended; the numbers of their experiments."""
    numbers = {}
    for name, cell in CELLS.items():
        session_native_kernel.run("settings = {}")
        session_native_kernel.run(NATIVE_OBJECTS.replace("settings)", "settings, max_restarts=0)"))
        session_native_kernel.run(cell)
        numbers[name] = session_native_kernel.value("context.experiment.id")
    return numbers


@pytest.mark.parametrize("name", ["named", "behind", "zipped"])
def test_a_loop_that_is_left_ends_its_training_in_order(submitted: dict[str, int], cluster: Cluster, name: str) -> None:
    experiment = cluster.attach(submitted[name])
    assert_ended_after(experiment, 4)
    assert ("behind the loop" in str(experiment.logs())) is (name == "behind")


def test_an_exception_that_the_program_catches_is_an_error(submitted: dict[str, int], cluster: Cluster) -> None:
    experiment = cluster.attach(submitted["caught"])
    ended(experiment, ExperimentState.ERROR)
    assert "neither run to its end nor left with `break`" in str(experiment.detail().error)


def test_sys_exit_in_a_loop_is_told_as_what_it_is(submitted: dict[str, int], cluster: Cluster) -> None:
    experiment = cluster.attach(submitted["exits"])
    ended(experiment, ExperimentState.ERROR)
    error = experiment.trials[0].detail().error
    assert error is not None
    assert error.message.startswith("sys.exit('that is enough') was called in or behind the loop over context.train()")
    assert "leave the loop with `break`" in error.message
    assert error.line == line_of(EXITS, "sys.exit")


def test_an_iterator_around_the_loop_that_fails_is_an_error(submitted: dict[str, int], cluster: Cluster) -> None:
    experiment = cluster.attach(submitted["fails"])
    ended(experiment, ExperimentState.ERROR)
    error = experiment.trials[0].detail().error
    assert error is not None
    assert (error.type, error.message, error.line) == ("OSError", "no more numbers", line_of(FAILS_IN_ZIP, "raise"))


def test_an_exception_without_a_frame_is_found_when_the_program_has_ended(
    submitted: dict[str, int], cluster: Cluster
) -> None:
    experiment = cluster.attach(submitted["in_c"])
    ended(experiment, ExperimentState.ERROR)
    error = experiment.trials[0].detail().error
    assert error is not None
    assert (error.type, error.line) == ("TypeError", line_of(FAILS_IN_C, "numbers"))


def test_the_loop_may_stand_in_a_later_cell_than_the_call(native_kernel: Kernel, cluster: Cluster) -> None:
    native_kernel.run("settings = {}")
    native_kernel.run(NATIVE_OBJECTS)
    told = native_kernel.run("batches = batches_of()")
    assert "context.train(): no loop has asked for its batches yet, so nothing is trained" in told.text
    native_kernel.run("unrelated = 3")
    native_kernel.run("for batch in batches:\n    train(batch)")
    experiment = cluster.attach(native_kernel.value("context.experiment.id"))
    ended(experiment, ExperimentState.COMPLETED)
    assert len(experiment.trials[0].metrics()) == 15
    again = native_kernel.run("for batch in batches:\n    train(batch)", fails=True)
    assert "A second loop over the same context.train" in again.error
    assert native_kernel.run(
        "print(type(det.attach(context.experiment.id).top_checkpoint().load()).__name__)"
    ).text.split() == ["Sequential"]


RANKED = """
for batch in batches_of():
    train(batch)
    if context.distributed.get_rank() == 1 and context.batch_idx == 3:
        break
"""

FULL = """
import os, pathlib, resource
for batch in batches_of():
    train(batch)
    if context.distributed.get_rank() == 1 and context.batch_idx == 3 and not pathlib.Path(once).exists():
        pathlib.Path(once).touch()
        context.state["large"] = os.urandom(1_000_000)  # the checkpoint finds no room, and the log does
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
"""

LOST = """
import os, pathlib, signal
for batch in batches_of():
    train(batch)
    if context.distributed.get_rank() == 1 and context.batch_idx == 3 and not pathlib.Path(once).exists():
        pathlib.Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    torch.distributed.all_reduce(torch.zeros(1))  # of the user's own: nothing of ours is around it
"""

TWO = {"resources": {"slots_per_trial": 2}}


def test_one_slot_that_leaves_the_loop_ends_it_for_all(native_kernel: Kernel, cluster: Cluster) -> None:
    experiment = submit(native_kernel, cluster, RANKED, **TWO)
    assert_ended_after(experiment, 4)
    for rank in (0, 1):
        assert f"[rank {rank}] INFO: A slot has left the loop over context.train(): all end after batch 4." in str(
            experiment.logs()
        )


def test_a_full_disk_of_another_slot_is_the_clusters_error(native_kernel: Kernel, cluster: Cluster) -> None:
    once = cluster.folder / "once"
    experiment = submit(native_kernel, cluster, f"once = {str(once)!r}", FULL, **TWO)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert once.exists()
    assert len(experiment.trials[0].metrics()) == 15
    assert "The worker failed." in str(experiment.logs())
    assert "StorageError: The checkpoint of batch" in str(experiment.logs())


def test_a_slot_that_is_lost_while_the_loop_exchanges_something_itself_is_told_in_words(
    native_kernel: Kernel, cluster: Cluster
) -> None:
    once = cluster.folder / "once_lost"
    experiment = submit(native_kernel, cluster, f"once = {str(once)!r}", LOST, **TWO)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert once.exists()
    assert "[rank 0] RankLostError: Another process of this trial has ended" in str(experiment.logs()).replace(
        "det_native.errors.", ""
    )


UNVALIDATED = """
import os
for batch in context.train(loader(True)):
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(d_loss=loss, g_loss=float("nan") if context.batch_idx % 2 else 1.0)
    if context.role == "worker" and context.batch_idx == 8 and not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(9)
"""


def test_a_killed_loop_without_validation_is_compared_by_its_first_metric(
    native_kernel: Kernel, cluster: Cluster, tmp_path: Path
) -> None:
    native_kernel.run(f"marker = {str(tmp_path / 'killed')!r}")
    experiment = submit(native_kernel, cluster, UNVALIDATED, searcher={"metric": None})
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert (trial.batches, trial.restarts) == (15, 1)
    detail = experiment.detail()
    assert (detail.metric, detail.validates) == ("d_loss", False)
    means = experiment.metrics("validation")
    assert [row["batch"] for row in means] == [5, 10, 15]
    assert detail.best_validation == min(row["d_loss"] for row in means)
    assert list(experiment.history) == ["d_loss", "g_loss"]
    assert experiment.history["d_loss"] == pytest.approx([row["d_loss"] for row in means])
    assert [row["batch"] for row in experiment.metrics()] == list(range(1, 16))
    curves = experiment.source.curves(experiment.id) or []
    assert {curve.kind for curve in curves} == {MetricKind.TRAINING}
    (drawn,) = [curve for curve in curves if curve.name == "g_loss"]
    assert drawn.mean == [None if batch % 2 == 0 else 1.0 for batch in drawn.batch]
