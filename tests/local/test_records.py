"""Whether a local run goes on, as others see it, and its rows read on as they come."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from det_native.local.curves import GrowingColumns
from local_experiments import write_experiment

from det_native.local.locks import is_locked
from det_native.local.runner import this_process
from det_native.local.store import LocalStore
from det_native.schema.states import ExperimentState, MetricKind, TrialState


def begun() -> LocalStore:
    """Return a run that has begun and not ended."""
    write_experiment()
    store = LocalStore.all()[0]
    store.write_experiment(store.experiment().model_copy(update={"state": ExperimentState.ACTIVE, "ended": None}))
    [trial] = store.trials()
    running = {"state": TrialState.RUNNING, "ended": None, "batches": 3, "target_batches": 9}
    store.write_trial(trial.model_copy(update=running))
    return store


def test_those_who_ask_at_the_same_moment_do_not_take_each_other_for_the_run(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "run.lock"
    path.touch()
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)  # as another one who asks
        assert not is_locked(path)
        fcntl.flock(other, fcntl.LOCK_EX)
        assert is_locked(path)
    assert not is_locked(tmp_path / "none")


def test_a_run_goes_on_as_long_as_its_process_holds_it() -> None:
    store = begun()
    store.write_runner(this_process())
    with store.lock:
        assert store.experiment().state is ExperimentState.ACTIVE
        assert store.trials()[0].state is TrialState.RUNNING
    stopped = store.experiment()
    assert stopped.state is ExperimentState.CANCELED
    assert stopped.error is not None
    assert stopped.ended is not None
    assert store.trials()[0].state is TrialState.CANCELED


def test_a_fork_that_outlives_the_process_does_not_keep_the_run_going() -> None:
    store = begun()
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    store.write_runner(
        this_process().model_copy(update={"pid": int(ended.stdout), "start": "of the process", "in_kernel": True})
    )
    with store.lock:  # held by what it has left
        detail = store.experiment()
    assert detail.state is ExperimentState.CANCELED
    assert detail.error is not None
    reason = "its kernel was restarted or ended in the middle of it, after batch 3 of 9."
    assert detail.error.message == reason


def test_a_process_of_another_container_is_believed_to_live_while_the_run_is_held() -> None:
    store = begun()
    store.write_runner(this_process().model_copy(update={"pid": 2**22 + 1, "namespace": "pid:[1]"}))
    with store.lock:
        assert store.experiment().state is ExperimentState.ACTIVE
    assert store.experiment().state is ExperimentState.CANCELED


def test_rows_are_read_on_from_where_they_were_read_to(tmp_path: Path) -> None:
    path = tmp_path / "training.jsonl"
    columns = GrowingColumns(path)
    assert not columns.read_on()

    def add(*batches: int, end: str = "\n") -> None:
        with path.open("a") as file:
            for batch in batches:
                file.write(json.dumps({"batch": batch, "metrics": {"loss": 1 / batch, "name": "text"}}) + end)

    add(1, 2)
    assert columns.read_on()
    add(3, end="")
    assert not columns.read_on(), "the line is not whole"
    with path.open("a") as file:
        file.write("\n")
    assert columns.read_on()
    assert columns.last_batch == 3
    [curve] = columns.curves(1, MetricKind.TRAINING, 10)
    assert (curve.batch, curve.mean) == ([1, 2, 3], [1.0, 0.5, 1 / 3])
    path.unlink()
    add(7)
    assert columns.read_on(), "another file took its place"
    assert columns.curves(1, MetricKind.TRAINING, 10)[0].batch == [7]
