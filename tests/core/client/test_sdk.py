"""Determined's Python SDK against a real master: what its users write, and what they get."""

from __future__ import annotations

import itertools
import tarfile
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, Worker

import det_native as det
from det_native.absent import absent_attribute
from det_native.client.connect import connect
from det_native.client.sdk.absent_names import SDK
from det_native.errors import ArgumentError, AuthenticationError, NotFoundError, UnsupportedFeatureError
from det_native.experimental import client
from det_native.schema.states import ExitReason

ROOT = Path(__file__).parents[3]
MEMBERS = ROOT / "docs" / "names" / "sdk_members_0_38_1.tsv"


def trained(master: Master, losses: tuple[float, ...] = (0.3, 0.1, 0.2), **config: Any) -> tuple[int, Worker]:
    """Have an experiment train that has a checkpoint for each loss."""
    storage = {"save_experiment_best": 9, "save_trial_latest": 9}
    before = len(master.world.jobs)
    number = int(master.create({"checkpoint_storage": storage, **config})["id"])
    worker = Worker(master, master.world.wait_for_jobs(before + 1)[-1])
    worker.start()
    for place, loss in enumerate(losses, 1):
        worker.train(10 * place - 9, 10 * place)
        worker.validate(10 * place, loss=loss, accuracy=1 - loss)
        worker.checkpoint(10 * place)
    return number, worker


def test_nothing_but_the_login_names_the_master(sdk_master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    number = int(sdk_master.create()["id"])
    assert client.get_experiment(number).id == number
    assert client.Determined(str(sdk_master.client.base_url)).get_experiment(number).id == number
    client.logout()
    monkeypatch.setenv("DET_MASTER", str(sdk_master.client.base_url))
    with pytest.raises(AuthenticationError, match="DET_TOKEN"):
        connect()
    client.login(password=sdk_master.token)
    assert client.get_experiment(number).id == number


def test_certificates_are_verified(sdk_master: Master) -> None:
    with pytest.raises(ArgumentError, match="REQUESTS_CA_BUNDLE"):
        client.login("https://localhost:1", noverify=True)


def test_waiting_returns_the_state_and_raises_no_failure(sdk_master: Master) -> None:
    number, worker = trained(sdk_master)
    experiment = client.get_experiment(number)
    waited: list[client.ExperimentState] = []
    waiting = threading.Thread(target=lambda: waited.append(experiment.wait(interval=0.1, show="none")))  # type: ignore[call-arg,arg-type]
    waiting.start()
    worker.exit(batch=30)
    waiting.join(60)
    assert waited == [client.ExperimentState.COMPLETED]
    failed = int(sdk_master.create({"max_restarts": 0})["id"])
    worker = Worker(sdk_master, sdk_master.world.wait_for_jobs(2)[-1])
    worker.start()
    worker.exit(ExitReason.USER_ERROR, message="it broke")
    assert client.get_experiment(failed).wait() == client.ExperimentState.ERROR
    paused = client.get_experiment(int(sdk_master.create()["id"]))
    paused.pause()
    with pytest.raises(ArgumentError, match=r"experiment\.activate\(\)"):
        paused.wait()
    paused.kill()


def test_metrics_of_trials_are_records(sdk_master: Master) -> None:
    begun = datetime.now(UTC)
    number, _ = trained(sdk_master)
    trial = client.get_experiment(number).await_first_trial()
    assert trial.get_experiment().id == number
    records = list(trial.iter_metrics("validation"))
    assert [(one.steps_completed, one.metrics["loss"]) for one in records] == [(10, 0.3), (20, 0.1), (30, 0.2)]
    assert {(one.trial_id, one.group, one.total_batches) for one in records[:1]} == {(trial.id, "validation", 10)}
    assert isinstance(records[0], client.ValidationMetrics)
    moment = records[-1].end_time
    assert moment is not None
    assert abs(moment - begun) < timedelta(minutes=2)
    [*training] = client.stream_trials_training_metrics([trial.id])
    assert [one.steps_completed for one in training] == list(range(1, 31))
    assert isinstance(training[0], client.TrainingMetrics)
    assert list(client.iter_trials_metrics([trial.id], "of_mine")) == []
    assert len(list(itertools.chain(trial.stream_training_metrics(), trial.stream_validation_metrics()))) == 33
    with pytest.raises(NotFoundError):
        list(client.stream_trials_validation_metrics([trial.id + 1]))
    with pytest.raises(ArgumentError, match="trial_ids"):
        client.stream_trials_metrics("1", "validation")  # type: ignore[arg-type]
    trial.reload()
    summary = trial.summary_metrics
    assert summary["validation_metrics"]["loss"] == {"last": 0.2, "min": 0.1, "max": 0.3}


def test_checkpoints_are_listed_in_any_order(sdk_master: Master) -> None:
    number, _ = trained(sdk_master)
    experiment = client.get_experiment(number)

    def batches(*order: Any, **options: Any) -> list[int]:
        return [checkpoint.batch for checkpoint in experiment.list_checkpoints(*order, **options)]

    assert batches() == [20, 30, 10]
    assert batches(max_results=1) == [20]
    assert batches("accuracy", client.OrderBy.ASC) == [10, 30, 20]
    assert batches(client.CheckpointSortBy.BATCH_NUMBER, client.OrderBy.DESC) == [30, 20, 10]
    assert batches(client.CheckpointSortBy.END_TIME, client.CheckpointOrderBy.ASC) == [10, 20, 30]
    assert batches("no such metric", client.OrderBy.ASC) == [10, 20, 30]
    trial = experiment.list_trials()[0]
    assert [each.batch for each in trial.list_checkpoints(max_results=2)] == [20, 30]
    assert [each.batch for each in trial.get_checkpoints()] == [20, 30, 10]
    assert experiment.top_checkpoint().uuid == trial.select_checkpoint(best=True).uuid
    with pytest.raises(ArgumentError, match="order_by is missing"):
        experiment.list_checkpoints("accuracy")
    with pytest.raises(ArgumentError, match="CheckpointSortBy"):
        experiment.list_checkpoints(3, client.OrderBy.ASC)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="OrderBy"):
        experiment.list_checkpoints("accuracy", "up")  # type: ignore[arg-type]


def test_a_checkpoint_tells_its_metrics_and_keeps_notes(sdk_master: Master, tmp_path: Path) -> None:
    number, _ = trained(sdk_master)
    checkpoint = client.get_checkpoint(client.get_experiment(number).list_checkpoints()[0].uuid)
    [training, validation] = checkpoint.get_metrics()
    assert (training.group, training.steps_completed) == ("training", 20)
    assert validation.metrics["loss"] == 0.1
    assert checkpoint.training.validation_metrics["avgMetrics"]["loss"] == 0.1
    assert (checkpoint.training.experiment_id, checkpoint.training.hparams) == (number, checkpoint.hparams)
    checkpoint.add_metadata({"by": "me"})
    again = client.get_checkpoint(checkpoint.uuid)
    checkpoint.remove_metadata(["by"])
    again.reload()
    assert again.metadata == {}
    folder = checkpoint.download(str(tmp_path / "files"), mode=client.DownloadMode.MASTER)
    checkpoint.write_metadata_file(str(folder / "notes.json"))
    assert checkpoint.uuid in (folder / "notes.json").read_text()


def test_experiments_are_listed_chosen_and_ordered(sdk_master: Master) -> None:
    first, worker = trained(sdk_master, (0.5,), name="digits", labels=["a"])
    worker.exit(batch=10)
    second, _ = trained(sdk_master, (0.3, 0.2), name="Figures", labels=["b", "c"])
    third = int(sdk_master.create({"name": "more digits"})["id"])

    def listed(**options: Any) -> list[int]:
        return [experiment.id for experiment in client.list_experiments(**options)]

    client.get_experiment(first).archive()
    assert listed() == [first, second, third]
    assert listed(order_by=client.OrderBy.DESCENDING) == [third, second, first]
    assert listed(name="DIGITS") == [first, third]
    assert listed(labels=["a", "c"]) == [first, second]
    assert listed(experiment_ids=[third, first]) == [first, third]
    assert listed(states=[client.ExperimentState.COMPLETED]) == [first]
    assert listed(states=[client.ExperimentState.ACTIVE]) == [second, third]
    assert listed(states=[client.ExperimentState.PAUSED, client.ExperimentState.PULLING]) == []
    for sort_by, order in {
        "SEARCHER_METRIC_VAL": [second, first, third],
        "CHECKPOINT_COUNT": [third, first, second],
        "CHECKPOINT_SIZE": [third, first, second],
        "NAME": [first, second, third],
        "END_TIME": [first, second, third],
        "USER": [first, second, third],
    }.items():
        assert listed(sort_by=client.ExperimentSortBy[sort_by]) == order, sort_by
    with pytest.raises(ArgumentError, match="all experiments of a master are yours"):
        client.list_experiments(users=["determined"])
    with pytest.raises(ArgumentError, match=r"client\.ExperimentSortBy"):
        client.list_experiments(sort_by="name")  # type: ignore[arg-type]


def test_trials_are_listed_in_order_and_end_with_their_experiment(sdk_master: Master) -> None:
    searcher = {"name": "random", "max_trials": 3, "metric": "loss", "max_length": {"batches": 100}}
    number = int(sdk_master.create({"searcher": searcher})["id"])
    jobs = sdk_master.world.wait_for_jobs(2)
    for job, losses in zip(jobs, ((0.3, 0.1), (0.2, 0.4)), strict=False):
        worker = Worker(sdk_master, job)
        worker.start()
        for place, loss in enumerate(losses, 1):
            worker.validate(10 * place, loss=loss)
    experiment = client.get_experiment(number)
    trials = experiment.get_trials()
    a, b = jobs[0].trial_id, jobs[1].trial_id

    def listed(sort_by: client.TrialSortBy, order: client.OrderBy = client.OrderBy.ASC) -> list[int]:
        return [trial.id for trial in experiment.iter_trials(sort_by, order) if trial.id in (a, b)]

    assert [trial.id for trial in trials] == sorted(trial.id for trial in trials)
    assert listed(client.TrialSortBy.BEST_VALIDATION_METRIC) == [a, b]
    assert listed(client.TrialSortBy.LATEST_VALIDATION_METRIC, client.TrialOrderBy.DESC) == [b, a]
    assert listed(client.TrialSortBy.ID, client.OrderBy.DESC) == sorted((a, b), reverse=True)
    for sort_by in client.TrialSortBy:
        assert sorted(listed(sort_by)) == sorted((a, b)), sort_by
    with pytest.raises(UnsupportedFeatureError, match=r"experiment\.kill\(\)"):
        trials[0].kill()
    experiment.kill()
    alone = client.get_experiment(int(sdk_master.create()["id"]))
    alone.await_first_trial().kill()
    assert alone.wait() == client.ExperimentState.CANCELED


def test_lines_of_a_log(sdk_master: Master) -> None:
    number, worker = trained(sdk_master)
    sdk_master.world.output[worker.job.run_id] = "one\nWARNING two\nthree\n"
    trial = client.get_experiment(number).await_first_trial()
    sdk_master.until(f"/trials/{trial.id}/logs", lambda lines: len(lines) >= 3)
    lines = [line for line in trial.iter_logs() if line in ("one\n", "WARNING two\n", "three\n")]
    assert lines == ["one\n", "WARNING two\n", "three\n"]
    assert list(trial.iter_logs(search_text="tw")) == ["WARNING two\n"]
    assert list(trial.iter_logs(min_level="WARNING")) == ["WARNING two\n"]
    assert list(trial.logs(tail=1)) == list(trial.iter_logs())[-1:]
    assert list(trial.iter_logs(timestamp_before=1, stdtypes=["stdout"], rank_ids=[0])) == []
    followed: list[str] = []
    following = threading.Thread(target=lambda: followed.extend(trial.logs(follow=True)))
    following.start()
    worker.exit(batch=30)
    following.join(60)
    assert {"one\n", "three\n"} <= set(followed)
    for wrong in ({"container_ids": ["a"]}, {"head": 1, "tail": 1}, {"timestamp_after": "never"}):
        with pytest.raises(ArgumentError):
            trial.iter_logs(**wrong)  # type: ignore[arg-type]


def test_what_people_write_of_an_experiment(sdk_master: Master, tmp_path: Path) -> None:
    experiment = client.get_experiment(int(sdk_master.create({"name": "before"})["id"]))
    experiment.set_name("after")
    experiment.set_description("what")
    experiment.set_notes("# why")
    experiment.set_labels({"a"})
    experiment.add_label("b")
    experiment.remove_label("a")
    with pytest.warns(UserWarning, match="no workspaces"):
        experiment.move_to_project("mine", "vision")
    experiment.reload()
    assert (experiment.name, experiment.description, experiment.notes) == ("after", "what", "# why")
    assert (experiment.labels, experiment.project, experiment.progress) == (["b"], "vision", 0.0)
    with tarfile.open(experiment.download_code(tmp_path / "code")) as archive:
        assert archive.getnames() == []
    experiment.kill()
    experiment.wait()
    experiment.archive()
    experiment.unarchive()
    experiment.delete(yes=True)
    with pytest.raises(NotFoundError):
        client.get_experiment(experiment.id)


def test_models_and_versions(sdk_master: Master) -> None:
    number, _ = trained(sdk_master)
    best, second, *_ = client.get_experiment(number).list_checkpoints()
    model = client.create_model("digits", "Figures", {"data": "v2"})
    client.create_model("empty", None).set_labels(["x"])
    model.register_version(best.uuid)
    version = model.register_version(checkpoint_uuid=second.uuid)
    version.set_name("second")
    version.set_notes("better")
    assert [each.model_version for each in model.list_versions(client.OrderBy.ASC)] == [1, 2]
    newest = model.get_version(-1)
    assert newest is not None
    assert (newest.name, newest.notes, newest.version) == ("second", "better", 2)
    assert [one.metrics["loss"] for one in newest.iter_metrics("validation")] == [0.2]
    model.set_labels(["x", "y"])
    model.set_description("Numbers")
    again = client.get_model("digits")
    again.reload()
    assert (again.description, again.metadata) == ("Numbers", {"data": "v2"})
    assert client.get_model_labels() == ["x", "y"]
    by = {"sort_by": client.ModelSortBy.NUM_VERSIONS, "order_by": client.ModelOrderBy.DESC}
    assert [each.name for each in client.list_models(**by)] == ["digits", "empty"]
    assert [each.name for each in client.get_models(sort_by=client.ModelSortBy.WORKSPACE)] == ["digits", "empty"]
    with pytest.raises(ArgumentError, match="no workspaces"):
        client.list_models(workspace_names=["mine"])


def test_what_is_absent_says_why() -> None:
    for name in ("create_user", "Workspace", "ResourcePool", "list_oauth_clients", "get_model_by_id", "whoami"):
        with pytest.raises(AttributeError, match=rf"client\.{name}\. [A-Z].*\.$"):
            getattr(client, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        client.nonsense  # noqa: B018 (the access is the test)
    assert not hasattr(client, "get_workspace")
    handle: Any = det.Experiment(None, 1)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="Pachyderm"):
        handle.get_pachyderm_config()


def test_every_member_of_the_sdk_is_there_or_says_why() -> None:
    missing = []
    for row in MEMBERS.read_text().splitlines():
        owner, member = row.split("\t")
        kind = getattr(client, owner)
        here = hasattr(kind, member) or member in getattr(kind, "__annotations__", {})
        looked_up = SDK if owner == "Determined" else f"{SDK}.{owner}"
        if not here and absent_attribute(looked_up, member) is None:
            missing.append(f"{owner}.{member}")
    assert missing == []
