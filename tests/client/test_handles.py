"""Experiments, trials and checkpoints, by what their source tells."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from made_experiments import make_experiment, source_of

from det_native.client.logs import Logs
from det_native.client.selection import top_checkpoints
from det_native.display.html import experiment_html
from det_native.display.text import experiment_text
from det_native.errors import (
    ArgumentError,
    CheckpointError,
    CheckpointNotFoundError,
    ExperimentFailedError,
    StorageError,
    UserCodeError,
)
from det_native.schema import rest
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.states import CheckpointState, ExperimentState, TrialState


def checkpoint(uuid: str, trial: int, batch: int, **metrics: float | str) -> rest.Checkpoint:
    manifest = CheckpointManifest(
        uuid=uuid,
        framework="keras",
        framework_version="2.15",
        det_version="0",
        batch=batch,
        experiment_id=1,
        trial_id=trial,
        run_id=None,
        bundle_id=None,
        hparams={},
        created="",
    )
    return rest.Checkpoint(
        uuid=uuid,
        trial_id=trial,
        experiment_id=1,
        batch=batch,
        state=CheckpointState.COMPLETED,
        size=3,
        metrics=metrics,
        location="",
        created="",
        manifest=manifest,
    )


def test_facts_of_an_experiment() -> None:
    experiment = make_experiment(name="digits", trials=3)
    assert experiment.id == 1
    assert experiment.state is ExperimentState.COMPLETED
    assert experiment.name == "digits"
    assert [trial.id for trial in experiment.trials] == [1, 2, 3]
    assert experiment.best_trial.id == 3
    assert experiment.best_trial.hparams == {"lr": pytest.approx(0.3)}
    assert experiment.best_trial.state is TrialState.COMPLETED
    assert experiment.wait() is experiment
    assert repr(experiment) == "Experiment(1)"


def test_metrics_are_dictionaries_with_their_batch() -> None:
    experiment = make_experiment(trials=2)
    trial = experiment.trials[1]
    assert trial.metrics("training")[:2] == [{"batch": 1, "loss": 2.0}, {"batch": 2, "loss": 1.0}]
    assert trial.metrics("validation") == [{"batch": 4, "val_loss": 0.5}]
    assert experiment.metrics() == [
        {"trial": 1, "batch": 4, "val_loss": 1.0},
        {"trial": 2, "batch": 4, "val_loss": 0.5},
    ]
    source_of(experiment).write_samples(2, [rest.SystemSample(time=5.5, rank=1, metrics={"cpu_percent": 50.0})])
    source_of(experiment).write_rows(2, "logged", [rest.MetricRow(batch=3, metrics={"f1": "NaN"})])
    [logged] = trial.metrics("logged")
    assert (logged["batch"], str(logged["f1"])) == (3, "nan")
    assert trial.metrics("system") == [{"time": 5.5, "rank": 1, "cpu_percent": 50.0}]
    assert experiment.metrics("system") == [{"trial": 2, "time": 5.5, "rank": 1, "cpu_percent": 50.0}]
    with pytest.raises(ArgumentError, match='"training", "validation", "logged" or "system"'):
        trial.metrics("test")


def test_history_is_of_the_best_trial() -> None:
    assert make_experiment(trials=2).history == {"loss": [0.5], "val_loss": [0.5]}


def test_failure_is_raised_with_the_traceback() -> None:
    error = rest.UserErrorInfo(type="ValueError", message="bad", traceback="cell [3], line 2\nValueError: bad", cell=3)
    experiment = make_experiment(error=error)
    with pytest.raises(UserCodeError, match=r"Experiment 1 failed.\ncell \[3\], line 2") as caught:
        experiment.wait()
    assert (caught.value.cell, caught.value.traceback) == (3, error.traceback)
    with pytest.raises(ExperimentFailedError):
        experiment.history  # noqa: B018 (the access is the test)


def test_a_worker_that_died_is_no_error_of_the_users_code() -> None:
    error = rest.UserErrorInfo(type="WorkerDied", message="It ended: exit code 3.", traceback="")
    with pytest.raises(ExperimentFailedError, match=r"failed\.\nWorkerDied: It ended: exit code 3\.") as caught:
        make_experiment(error=error).wait()
    assert not isinstance(caught.value, UserCodeError)


def test_best_checkpoints_one_for_each_trial() -> None:
    experiment = make_experiment(trials=2)
    store = source_of(experiment)
    store.write_checkpoints(1, [checkpoint("a", 1, 2, val_loss=0.1, acc=0.2), checkpoint("b", 1, 4, val_loss=0.3)])
    store.write_checkpoints(2, [checkpoint("c", 2, 4, val_loss=0.2, acc=0.9), checkpoint("d", 2, 5)])
    assert [each.uuid for each in experiment.checkpoints] == ["a", "b", "c", "d"]
    assert experiment.top_checkpoint().uuid == "a"
    assert [each.uuid for each in experiment.top_n_checkpoints(5)] == ["a", "c"]
    assert experiment.top_checkpoint(sort_by="acc", smaller_is_better=False).uuid == "c"
    assert experiment.trials[1].top_checkpoint().uuid == "c"
    assert experiment.top_checkpoint().metrics == {"val_loss": 0.1, "acc": 0.2}
    with pytest.raises(CheckpointNotFoundError, match=r"no checkpoint with a metric 'nope'.*acc, val_loss"):
        experiment.top_checkpoint(sort_by="nope")
    with pytest.raises(ArgumentError, match="limit"):
        experiment.top_n_checkpoints(0)


def test_of_equal_trials_all_call_the_same_one_best() -> None:
    experiment = make_experiment(trials=3)
    store = source_of(experiment)
    for number, batches in ((1, (10, 20)), (2, (10, 90)), (3, (50, 99))):
        store.write_checkpoints(
            number, [checkpoint(f"{number}-{batch}", number, batch, val_loss=0.25) for batch in batches]
        )
        store.write_trial(experiment.trials[number - 1].detail().model_copy(update={"best_validation": 0.25}))
    assert experiment.best_trial.id == 1
    top = experiment.top_checkpoint()
    assert (top.trial_id, top.uuid) == (1, "1-10")
    assert [each.uuid for each in experiment.top_n_checkpoints(3)] == ["1-10", "2-10", "3-50"]
    assert experiment.trials[2].top_checkpoint().uuid == "3-50"
    assert "trial 1 (best)" in experiment_text(experiment)
    assert experiment_html(experiment).count("1 (best)") == experiment_html(experiment).count("(best)") == 1


def test_one_checkpoint_by_its_uuid_or_the_beginning_of_it() -> None:
    experiment = make_experiment(trials=2)
    store = source_of(experiment)
    deleted = checkpoint("dead0000", 1, 1).model_copy(update={"state": CheckpointState.DELETED})
    store.write_checkpoints(1, [checkpoint("aabb", 1, 2), checkpoint("aacc", 1, 4), deleted])
    store.write_checkpoints(2, [checkpoint("aa", 2, 4)])
    assert experiment.checkpoint("aabb").batch == 2
    assert experiment.checkpoint("aac").uuid == "aacc"
    assert experiment.checkpoint("aa").trial_id == 2
    with pytest.raises(ArgumentError, match=r"Experiment 1 has several .* begin with 'a': aabb, aacc, aa\."):
        experiment.checkpoint("a")
    with pytest.raises(CheckpointNotFoundError, match="dead0000 of experiment 1 was deleted"):
        experiment.checkpoint("dead")
    with pytest.raises(CheckpointNotFoundError, match=r"has no checkpoint 'x'; experiment\.checkpoints lists"):
        experiment.checkpoint("x")
    with pytest.raises(ArgumentError, match="not None"):
        experiment.checkpoint(None)  # type: ignore[arg-type]


def test_without_any_checkpoint_the_error_says_so() -> None:
    with pytest.raises(CheckpointNotFoundError, match="has no checkpoint; it is Completed"):
        make_experiment().top_checkpoint()


def test_unvalidated_checkpoints_count_only_where_there_are_no_others() -> None:
    found = [checkpoint("a", 1, 2), checkpoint("b", 1, 4)]
    top = top_checkpoints(found, metric="loss", smaller_is_better=True, limit=3)
    assert [each.uuid for each in top] == ["b"]
    found.append(checkpoint("c", 2, 1, loss="NaN"))
    top = top_checkpoints(found, metric="loss", smaller_is_better=True, limit=3)
    assert [each.uuid for each in top] == ["c"]


def test_logs_read_as_text() -> None:
    lines = [
        rest.LogLine(id=number, trial_id=number % 2, run_id="r", time="", stream="stdout", text=f"line {number}")
        for number in range(4)
    ]
    logs = Logs(lines)
    assert str(logs.tail(2)) == "[trial 0] line 2\n[trial 1] line 3"
    assert str(Logs(lines[:1])) == "line 0"
    assert len(logs.tail(0)) == 0
    assert [line.id for line in logs] == [0, 1, 2, 3]


@pytest.mark.parametrize("limit", [0, "two", None])
def test_a_limit_is_a_number(limit: object) -> None:
    with pytest.raises(ArgumentError, match="limit must be a number, at least 1"):
        make_experiment().top_n_checkpoints(limit)  # type: ignore[arg-type]


def test_a_download_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    experiment = make_experiment()
    source_of(experiment).write_checkpoints(1, [checkpoint("a", 1, 2, val_loss=0.1)])
    found = experiment.top_checkpoint()
    file = tmp_path / "model.h5"
    file.write_text("mine")
    for path in (file, file / "inside"):
        with pytest.raises(ArgumentError, match=r"model\.h5.* is a file; give download\(\) a folder"):
            found.download(path)
    assert file.read_text() == "mine"
    with pytest.raises(ArgumentError, match="path of a folder, not 5"):
        found.download(5)  # type: ignore[arg-type]
    with pytest.raises(StorageError, match=r"could not be written to .*: File name too long\. Give download"):
        found.download(tmp_path / ("x" * 300))
    with pytest.raises(CheckpointError, match="is not empty"):
        found.download(tmp_path)
    with pytest.raises(RuntimeError, match="is not empty"):  # as code for Determined takes it
        found.download(tmp_path)


def test_a_run_that_goes_on_can_be_waited_for_and_given_up() -> None:
    handle = make_experiment()
    source_of(handle).write(state=ExperimentState.ACTIVE)
    assert handle.state is ExperimentState.ACTIVE
    with pytest.raises(TimeoutError, match=r"has not ended after 0\.05 s"):
        handle.wait(timeout=0.05)
    source_of(handle).write(state=ExperimentState.COMPLETED)
    assert handle.wait(timeout=30).state is ExperimentState.COMPLETED


def test_an_interrupt_of_the_first_request_ends_the_waiting_with_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make_experiment()
    monkeypatch.setattr(experiment.source, "experiment", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as caught:
        experiment.wait()
    assert caught.value.__suppress_context__
    assert "goes on running" in capsys.readouterr().out
