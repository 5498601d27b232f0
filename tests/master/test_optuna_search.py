"""A search by Optuna on a master that is restarted in its midst."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, MemoryLauncher, Worker, configuration, running_master

from det_native import PROTOCOL
from det_native.errors import MissingDependencyError
from det_native.schema.states import ExitReason

pytestmark = pytest.mark.slow

SEARCH = {"name": "optuna", "sampler": "tpe", "max_trials": 5, "max_concurrent_trials": 2}
CONFIG = {
    "searcher": SEARCH,
    "hyperparameters": {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}},
    "reproducibility": {"experiment_seed": 3},
}


def complete(master: Master, number: int) -> float:
    job = master.world.wait_for_jobs(number)[number - 1]
    x = float(job.hparams["x"])
    Worker(master, job).complete(loss=x * x)
    return x


def found(master: Master) -> list[Any]:
    return [trial["hparams"]["x"] for trial in master.get("/experiments/1/trials")]


def test_a_restarted_master_goes_on_with_the_same_trials(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path / "one", slots=1) as whole:
        whole.create(CONFIG)
        values = [complete(whole, number) for number in range(1, 6)]
        assert whole.until_state(1, "COMPLETED")["best_validation"] == min(values) ** 2
        expected = found(whole)
    with running_master(tmp_path / "two", slots=1) as first:
        first.create(CONFIG)
        for number in (1, 2):
            complete(first, number)
        first.world.wait_for_jobs(3)
        world = first.world
    with running_master(tmp_path / "two", slots=1, launcher=MemoryLauncher(world)) as second:
        for number in (3, 4, 5):
            complete(second, number)
        second.until_state(1, "COMPLETED")
        assert found(second) == expected


THRESHOLD = {"name": "optuna", "sampler": "random", "max_trials": 3, "max_concurrent_trials": 1}
PRUNED = {**CONFIG, "searcher": THRESHOLD | {"pruner": {"name": "threshold", "upper": 2.0}}}


def job_of(master: Master, number: int) -> Any:
    return master.world.wait_for_jobs(number)[number - 1]


def stopped_run(master: Master, number: int) -> Worker:
    """Have a trial come to a bad value half way; return its worker, which has been told to end."""
    worker = Worker(master, job_of(master, number))
    worker.start()
    worker.train(1, 50)
    worker.validate(50, loss=3.0)
    master.until(f"/trials/{worker.job.trial_id}", lambda trial: bool(trial["notice"]))
    assert worker.send().stop
    return worker


@pytest.mark.long
def test_a_trial_that_the_pruner_stops_is_completed_and_the_next_begins(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path, slots=1) as master:
        master.create(PRUNED)
        worker = Worker(master, job_of(master, 1))
        worker.start()
        worker.train(1, 30)
        worker.validate(30, loss=1.0)
        worker.train(31, 100)
        worker.validate(100, loss=5.0)  # at its end: there is nothing to stop
        worker.exit(batch=100)
        worker = stopped_run(master, 2)
        worker.checkpoint(51)
        worker.exit(ExitReason.STOPPED, batch=51)
        trial = master.until("/trials/2", lambda trial: trial["state"] == "COMPLETED")
        assert trial["notice"] == "stopped early by the search, after 50 batches: others had come to more by then"
        assert (trial["batches"], trial["restarts"], trial["error"]) == (51, 0, None)
        lines = [line["text"] for line in master.get("/trials/2/logs")]
        assert any("This trial is stopped early by the search" in line for line in lines)
        Worker(master, job_of(master, 3)).complete(loss=1.0)
        found = master.until_state(1, "COMPLETED")
        assert (found["failed_trials"], found["progress"]) == (0, 1.0)


@pytest.mark.long
@pytest.mark.parametrize("left", ["worker lives", "worker is gone"])
def test_a_master_that_restarts_knows_whom_the_pruner_has_stopped(tmp_path: Path, left: str) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path, slots=1) as first:
        first.create(PRUNED)
        worker = stopped_run(first, 1)
        world = first.world
    if left == "worker is gone":
        world.alive.clear()
    with running_master(tmp_path, slots=1, launcher=MemoryLauncher(world)) as second:
        worker.master = second
        if left == "worker lives":
            assert worker.send().stop
            worker.exit(ExitReason.STOPPED, batch=50)
        second.until("/trials/1", lambda trial: trial["state"] == "COMPLETED")
        for number in (2, 3):
            Worker(second, job_of(second, number)).complete(loss=1.0)
        assert second.until_state(1, "COMPLETED")["trials"] == 3


@pytest.mark.long
def test_a_validation_that_no_master_has_told_the_pruner_is_told_by_the_next(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path, slots=1) as first:
        first.create(PRUNED)
        worker = Worker(first, job_of(first, 1))
        worker.start()
        worker.train(1, 50)
        world = first.world
        first.service._experiments.watches = lambda experiment_id: False  # type: ignore[method-assign]
        worker.validate(50, loss=3.0)
    with running_master(tmp_path, slots=1, launcher=MemoryLauncher(world)) as second:
        second.until("/trials/1", lambda trial: bool(trial["notice"]))
        worker.master = second
        assert worker.send().stop
        worker.exit(ExitReason.STOPPED, batch=50)
        second.until("/trials/1", lambda trial: trial["state"] == "COMPLETED")


@pytest.mark.long
def test_several_metrics_are_told_and_the_first_is_the_experiments(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    metrics = ["loss", {"name": "speed", "smaller_is_better": False}]
    searcher = {"name": "optuna", "sampler": "nsga2", "max_trials": 3, "max_concurrent_trials": 1, "metrics": metrics}
    with running_master(tmp_path, slots=1) as master:
        created = master.create({**CONFIG, "searcher": searcher})
        assert (created["metric"], created["smaller_is_better"]) == ("loss", True)
        for number, values in enumerate(({"loss": 0.5, "speed": 3.0}, {"loss": 0.2, "speed": 1.0}, {"loss": 0.9}), 1):
            worker = Worker(master, job_of(master, number))
            worker.start()
            worker.train(1, 100)
            worker.validate(100, **values)
            worker.exit(batch=100)
        found = master.until_state(1, "COMPLETED")
        assert found["best_validation"] == 0.2


@pytest.mark.long
@pytest.mark.parametrize(
    ("searcher", "what"),
    [
        ({"pruner": "medium"}, "searcher.pruner: is 'medium', which is no pruner of Optuna. Did you mean median?"),
        ({"sampler": {"name": "tpe", "n": 1}}, "searcher.sampler.n: is no option of tpe."),
        ({"sampler": "cmaes", "metrics": ["loss", "speed"]}, "the sampler cmaes looks at one"),
    ],
)
def test_what_optuna_cannot_run_is_refused_at_submit(tmp_path: Path, searcher: dict[str, Any], what: str) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path, slots=1) as master:
        config = configuration(**{**CONFIG, "searcher": SEARCH | searcher})
        body = {"protocol": PROTOCOL, "config": config, "bundle_id": master.bundle()}
        response = master.client.post("/api/v1/experiments", json=body)
        assert response.status_code in (400, 422)
        assert what in response.text


@pytest.mark.long
def test_a_search_that_is_ended_has_not_done_the_trials_that_never_began(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path, slots=1) as master:
        master.create({**CONFIG, "searcher": SEARCH})
        Worker(master, job_of(master, 1)).complete()
        master.until("/experiments/1", lambda found: found["trials"] == 3)
        master.client.post("/api/v1/experiments/1/kill")
        assert master.until_state(1, "CANCELED")["progress"] == pytest.approx(0.2)


def breaks(sampler: str, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a sampler of Optuna's raise an exception."""
    optuna = pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")

    def refuse(*_: Any) -> None:
        raise RuntimeError("no such branch")

    monkeypatch.setattr(getattr(optuna.samplers, sampler), when, refuse)


@pytest.mark.long
def test_a_search_whose_sampler_breaks_ends_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_master(tmp_path, slots=3) as master:
        master.create({**CONFIG, "searcher": SEARCH})
        first, second = Worker(master, job_of(master, 1)), Worker(master, job_of(master, 2))
        second.start()
        second.train(1, 10)
        breaks("TPESampler", "after_trial", monkeypatch)
        first.complete()
        master.until(f"/trials/{second.job.trial_id}", lambda trial: trial["state"] == "CANCELED")
        ended = master.until_state(1, "ERROR")
        assert ended["error"]["message"].startswith("The searcher optuna cannot go on: RuntimeError: no such branch.")
        assert [trial["state"] for trial in master.get("/experiments/1/trials")] == ["COMPLETED", "CANCELED"]
        monkeypatch.undo()
        master.create({**CONFIG, "searcher": SEARCH})
        job_of(master, 3)


@pytest.mark.long
def test_a_search_whose_pruner_breaks_ends_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    optuna = pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path, slots=1) as master:
        master.create(PRUNED)
        worker = Worker(master, job_of(master, 1))
        worker.start()

        def refuse(*_: Any) -> bool:
            raise ZeroDivisionError("division by zero")

        monkeypatch.setattr(optuna.pruners.ThresholdPruner, "prune", refuse)
        worker.train(1, 50)
        worker.validate(50, loss=1.0)
        ended = master.until_state(1, "ERROR")
        assert "ZeroDivisionError: division by zero" in ended["error"]["message"]


@pytest.mark.long
def test_a_search_that_cannot_be_continued_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    with running_master(tmp_path, slots=1) as first:
        first.create(CONFIG)
        first.create()
        job_of(first, 1)
        world = first.world

    def missing(*_: Any) -> None:
        raise MissingDependencyError("searcher.sampler: tpe needs optuna")

    monkeypatch.setattr("det_native.search.ask_tell.check_installed", missing)
    with running_master(tmp_path, slots=2, launcher=MemoryLauncher(world)) as second:
        other = next(job for job in second.world.wait_for_jobs(2) if job.experiment_id == 2)
        Worker(second, other).complete()
        second.until_state(2, "COMPLETED")
        assert second.get("/experiments/1")["state"] == "ACTIVE"
    assert "Experiment 1 is not continued." in caplog.text
    assert "A step of the master failed" not in caplog.text
