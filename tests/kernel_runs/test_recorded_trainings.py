"""Trainings in processes of the user's, and what a master has of them, whatever is killed meanwhile."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from recording import end_master, recording_master, until_sent  # noqa: E402 (after the check for torch)
from trained_here import BATCHES, SAVED_AT, losses_of, newest, training, until  # noqa: E402

import det_native as det  # noqa: E402
from det_native.client.starting import ensure_master  # noqa: E402
from det_native.errors import NotRecordedError, RequestError  # noqa: E402
from det_native.schema.home import Home  # noqa: E402
from det_native.schema.kernel_runs import REQUEST_NAME  # noqa: E402
from det_native.schema.states import ExperimentState  # noqa: E402

pytestmark = pytest.mark.slow

STEPS = 6


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


@pytest.fixture
def own_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A master that the test may kill; those that follow it end with the test."""
    monkeypatch.setenv("DET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DET_SLOTS", "cpu:1")
    with recording_master(Home(tmp_path / "home")) as home:
        yield home


def train(
    after: Callable[[int], None] = lambda step: None, *, width: int = 1, **arguments: Any
) -> tuple[list[float], Any]:
    """Train here; return the losses that the loop saw, and the weights."""
    torch.manual_seed(3)
    x = torch.linspace(-1, 1, 4 * STEPS).reshape(-1, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=4)
    context = det.experimental.pytorch.init(local=True, **arguments)
    model = context.wrap_model(torch.nn.Linear(width, 1))
    optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    seen = []
    for step, (inputs, targets) in enumerate(context.train(loader), 1):
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        context.backward(loss)
        context.step_optimizer(optimizer)
        context.report(loss=loss)
        seen.append(loss.item())
        after(step)
    return seen, model.weight.item()


def facts_of(experiment: Any) -> list[Any]:
    """Return what somebody asks right after a training, but for what tells one run from another."""
    trial, checkpoint = experiment.wait().best_trial, experiment.top_checkpoint()
    return [
        experiment.state,
        experiment.history,
        losses_of(experiment),
        [row | {"trial": 1} for row in experiment.metrics()],
        (trial.state, trial.best_validation, trial.number, trial.detail().batches, trial.detail().target_batches),
        (checkpoint.batch, checkpoint.metrics, [each.batch for each in experiment.checkpoints]),
    ]


def test_a_master_has_what_the_loop_saw_and_what_it_printed_and_logged(
    recorded: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after(step: int) -> None:
        print("at step", step)
        det.log_text("words", f"step {step}")

    monkeypatch.chdir(tmp_path)
    seen, _ = train(after)
    experiment = det.last_experiment()
    assert experiment.state is ExperimentState.COMPLETED
    assert losses_of(experiment) == seen
    assert [line.text for line in experiment.logs()] == [f"at step {step}" for step in range(1, STEPS + 1)]
    assert [medium.load() for medium in experiment.media] == [f"step {step}" for step in range(1, STEPS + 1)]
    assert det.experiment(experiment.id).top_checkpoint().batch == STEPS


def test_ctrl_c_ends_it_after_the_batch_with_a_checkpoint(recorded: Home) -> None:
    seen, _ = train(lambda step: signal.raise_signal(signal.SIGINT) if step == 3 else None)
    experiment = det.last_experiment()
    assert (len(seen), experiment.state) == (3, ExperimentState.CANCELED)
    assert [checkpoint.batch for checkpoint in experiment.checkpoints] == [3]
    assert "interrupted (by Ctrl-C" in str(experiment.trials[0].detail().error)


def test_a_stop_reaches_it_with_its_next_report(recorded: Home) -> None:
    stopped = []

    def after(step: int) -> None:
        if step == 2:
            experiment = det.last_experiment()
            det.experiment(experiment.id).stop()
            stopped.append(experiment)
            until(lambda: experiment.source._recording.numbers is not None)

    x = torch.ones(4, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x), batch_size=1)
    context = det.experimental.pytorch.init({"searcher": {"max_length": {"epochs": 10**6}}}, local=True)
    model = context.wrap_model(torch.nn.Linear(1, 1))
    context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    steps = 0
    for _ in context.train(loader):
        context.report(loss=0.5)
        steps += 1
        after(steps)
    assert steps < 4 * 10**6
    assert stopped[0].state is ExperimentState.CANCELED
    with pytest.raises(RequestError, match="paused"):
        stopped[0].pause()


def test_a_process_that_is_killed_leaves_its_rows(recorded: Home, tmp_path: Path) -> None:
    with training(tmp_path / "work") as running:
        until(lambda: bool(newest()) and len(losses_of(newest()[0])) >= SAVED_AT)
        [experiment] = newest()
        assert experiment.state is ExperimentState.ACTIVE
        running.kill()
        until(lambda: experiment.state is not ExperimentState.ACTIVE)
        assert experiment.state is ExperimentState.CANCELED
        left = losses_of(experiment)
        assert left == running.seen[: len(left)]
        assert len(left) >= SAVED_AT


def test_two_processes_at_once_are_two_experiments(recorded: Home, tmp_path: Path) -> None:
    with training(tmp_path / "one") as one, training(tmp_path / "other") as other:
        assert (one.go_on(), other.go_on()) == (0, 0)
        until(lambda: [each.state for each in newest(2)] == [ExperimentState.COMPLETED] * 2)
        found = sorted(map(losses_of, newest(2)))
        assert found == sorted([one.seen, other.seen])
        assert {len(losses) for losses in found} == {BATCHES}


def test_a_master_that_is_killed_meanwhile_loses_nothing(own_master: Home, tmp_path: Path) -> None:
    with training(tmp_path / "work") as running:
        until(lambda: bool(newest()) and len(losses_of(newest()[0])) >= SAVED_AT)
        end_master(own_master, signal.SIGKILL)
        assert running.go_on() == 0
        ensure_master(own_master)
        [experiment] = newest()
        until(lambda: experiment.state is ExperimentState.COMPLETED)
        assert losses_of(experiment) == running.seen
        assert len(running.seen) == BATCHES


def test_where_the_home_cannot_be_written_the_next_master_takes_it_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    temporary = tmp_path / "home/temporary"
    temporary.mkdir(parents=True)
    with training(tmp_path / "work", DET_HOME=str(tmp_path / "file/home"), TMPDIR=str(temporary)) as running:
        assert running.go_on() == 0
        seen = running.seen
        assert running.facts == {"state": "COMPLETED", "losses": seen, "saved": BATCHES}
    monkeypatch.setenv("DET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("DET_SLOTS", "cpu:1")
    home = Home(tmp_path / "home")
    try:
        ensure_master(home)
        until(lambda: bool(newest()) and newest()[0].state is ExperimentState.COMPLETED)
        [experiment] = newest()
        assert losses_of(experiment) == seen
        assert len(seen) == BATCHES
        assert experiment.top_checkpoint().download(tmp_path / "checkpoint").is_dir()
    finally:
        end_master(home)


def test_a_named_master_has_the_run_and_what_it_logs_and_this_machine_nothing(
    recording_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DET_RECORD")
    monkeypatch.setenv("DET_MASTER", f"unix:{recording_home.path}/master.sock")
    monkeypatch.setenv("DET_TOKEN", recording_home.token.read_text().strip())
    seen, weight = train(lambda step: det.log_text("words", "some"))
    experiment = det.last_experiment()
    assert losses_of(experiment) == seen
    assert {medium.load() for medium in experiment.media} == {"some"}
    assert not list(Home.default().path.rglob(REQUEST_NAME))
    assert Path(experiment.config["checkpoint_storage"]["url"]).is_relative_to(Home.default().path)
    assert experiment.top_checkpoint().load().weight.item() == weight
    assert not Home.default().runtime.exists()


def test_where_the_named_master_does_not_answer_this_machines_has_the_run(
    recorded: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:9")
    monkeypatch.setenv("DET_TOKEN", "token")
    seen, _ = train()
    experiment = det.last_experiment()
    assert losses_of(experiment) == seen
    experiment.top_checkpoint().verify()
    monkeypatch.delenv("DET_MASTER")
    assert det.attach(experiment.id).state is ExperimentState.COMPLETED


def test_without_a_record_it_trains_the_same_and_answers_what_this_process_knows(
    recording_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    during: list[ExperimentState] = []
    unrecorded = train(lambda step: during.append(det.last_experiment().state) if step == 3 else None)
    experiment = det.last_experiment()
    assert during == [ExperimentState.ACTIVE]
    assert not (Home.default().path / "runs").exists()
    known = facts_of(experiment)
    weights = torch.nn.Linear(1, 1)
    experiment.load_into(weights)
    assert weights.weight.item() == experiment.top_checkpoint().load().weight.item() == unrecorded[1]
    for question in (experiment.logs, experiment.fork, partial(getattr, experiment, "id")):
        with pytest.raises(NotRecordedError, match="DET_RECORD is off"):
            question()
    assert (repr(experiment), str(experiment)) == (
        "Experiment(not recorded)",
        f"Experiment (not recorded): completed, best loss {experiment.best_trial.best_validation:.4g}",
    )
    monkeypatch.setenv("DET_HOME", str(recording_home.path))
    monkeypatch.setenv("DET_RECORD", "on")
    assert train() == unrecorded
    recorded = det.last_experiment()
    assert facts_of(recorded) == known
    assert repr(recorded) == f"Experiment({recorded.id})"
    del experiment, question
    gc.collect()
    assert not list(temporary.glob("det-run-*"))


@pytest.mark.parametrize("named", [None, "http://127.0.0.1:9"])
def test_what_fails_before_its_first_batch_is_recorded_nowhere(
    named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DET_RECORD")
    if named:
        monkeypatch.setenv("DET_MASTER", named)
    with pytest.raises(RuntimeError, match="shapes"):
        train(width=2)
    until_sent()
    experiment = det.last_experiment()
    assert experiment.state is ExperimentState.ERROR
    with pytest.raises(NotRecordedError, match="before its first batch"):
        assert experiment.id
    assert not Home.default().runtime.exists()
    assert not list(Home.default().path.rglob(REQUEST_NAME))


def test_a_fork_that_comes_back_into_the_training_reports_nothing(
    recorded: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    children = []

    def after(step: int) -> None:
        if step == 2:
            child = os.fork()
            children.extend([child] if child else [])

    seen, _ = train(after)
    assert os.waitpid(children[0], 0)[1] == 0
    assert losses_of(det.last_experiment()) == seen
    assert "came back into the training" in capfd.readouterr().err


def test_a_master_goes_on_whose_starter_has_ended_before_it_was_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    (tmp_path / "home/temporary").mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "home/temporary"))
    monkeypatch.setenv("DET_SLOTS", "cpu:1")
    read_end, write_end = os.pipe()
    command = [sys.executable, "-P", "-m", "det_native.master", "--home", str(home.path), "--ready-fd", str(write_end)]
    with subprocess.Popen(command, pass_fds=(write_end,), stderr=subprocess.DEVNULL) as first:
        os.close(write_end)
        os.close(read_end)
        until(home.master_lock.exists)
        try:
            assert ensure_master(home).runtime.pid == first.pid
        finally:
            end_master(home)
