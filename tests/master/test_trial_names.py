"""People read the number of a trial inside its experiment, 7.2; ids are for programs. Ids and numbers differ here."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from master_parts import Master, Worker, running_master

from det_native.client.command import cli
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.errors import ArgumentError, NotFoundError
from det_native.schema.states import ExitReason

SEARCH = {
    "name": "digits",
    "searcher": {"name": "random", "max_trials": 2},
    "hyperparameters": {"global_batch_size": 32, "rate": {"type": "double", "minval": 0.1, "maxval": 0.9}},
    "reproducibility": {"experiment_seed": 3},
    "max_restarts": 0,
}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """A master with an experiment of one trial, and a search whose two trials have the ids 2 and 3."""
    with running_master(tmp_path_factory.mktemp("home"), slots=2) as found:
        first = found.create({"name": "alone"})
        Worker(found, found.world.wait_for_jobs(1)[0]).complete()
        found.until_state(first["id"], "COMPLETED")
        found.create(SEARCH)
        _, one, two = found.world.wait_for_jobs(3)
        worker = Worker(found, one)
        worker.start()
        worker.train(1, 3)
        worker.validate(3, loss=0.25)
        worker.checkpoint(3)
        Worker(found, two).start()
        yield found


def det(master: Master, *words: str) -> Result:
    url = str(master.client.base_url)
    return CliRunner().invoke(cli, ["--master", url, *words], env={"DET_TOKEN": master.token}, catch_exceptions=False)


def source_of(master: Master) -> HttpSource:
    return HttpSource(Session(str(master.client.base_url), master.token))


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_tables_have_names_that_the_commands_take_and_json_has_ids(master: Master) -> None:
    listed = det(master, "trial", "list", "2").output.splitlines()
    assert [line.split()[0] for line in listed[1:]] == ["2.1", "2.2"]
    found = json.loads(det(master, "trial", "list", "2", "--json").output)
    assert [(trial["id"], trial["number"]) for trial in found] == [(2, 1), (3, 2)]
    by_csv = rows_of(det(master, "trial", "list", "2", "--csv").output)
    assert [(row["trial"], row["id"], row["batches"]) for row in by_csv] == [("1", "2", "3"), ("2", "3", "0")]
    assert by_csv[0]["best loss"] == "0.25"
    described = det(master, "experiment", "describe", "2").output
    assert "\n2.1 " in described
    assert "\n2.2 " in described


def test_a_trial_is_named_by_its_number_or_its_id(master: Master) -> None:
    by_number = det(master, "trial", "describe", "2.1")
    assert by_number.output.startswith("trial            1 of experiment 2: digits\nid               2\n")
    assert det(master, "trial", "describe", "2").output == by_number.output
    assert det(master, "trial", "metrics", "2.1", "--csv").output == "batch,loss\n3,0.25\n"
    assert "Trial 2.2 has reported no validation metrics." in det(master, "trial", "metrics", "3").output
    facts = dict(row.values() for row in rows_of(det(master, "trial", "describe", "2.1", "--csv").output))
    assert (facts["id"], facts["batches"], facts["target_batches"]) == ("2", "3", "100")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("2.3", "Experiment 2 has no trial 3; it has trials 1 to 2."),
        ("1.2", "Experiment 1 has no trial 2; it has only trial 1."),
        ("9.1", "There is no experiment 9."),
        ("9", "There is no trial 9."),
    ],
)
def test_a_trial_that_is_not_there_is_one_sentence(master: Master, name: str, said: str) -> None:
    with pytest.raises(NotFoundError) as told:
        det(master, "trial", "describe", name)
    assert str(told.value).startswith(said)


def test_slots_queue_status_and_checkpoints_tell_it(master: Master) -> None:
    assert [line.split()[-1] for line in det(master, "slot", "list").output.splitlines()] == ["trial", "2.1", "2.2"]
    [slot, _] = json.loads(det(master, "slot", "list", "--json").output)
    assert (slot["trial_id"], slot["trial_number"], slot["experiment_id"]) == (2, 1, 2)
    assert "  trial 2.1 " in det(master, "status").output
    queued = rows_of(det(master, "queue", "list", "--csv").output)
    assert [(row["trial"], row["experiment"], row["state"]) for row in queued] == [
        ("2.1", "digits", "Running"),
        ("2.2", "digits", "Running"),
    ]
    [checkpoint] = json.loads(det(master, "checkpoint", "list", "2", "--json").output)
    assert (checkpoint["trial_id"], checkpoint["trial_number"]) == (2, 1)
    assert det(master, "checkpoint", "list", "2").output.splitlines()[1].split()[1:3] == ["2.1", "3"]
    described = det(master, "checkpoint", "describe", checkpoint["uuid"]).output
    assert "trial            2.1, batch 3\n" in described


def test_handles_tell_it_and_find_a_trial_by_it(master: Master) -> None:
    experiment = Experiment(source_of(master), 2)
    second = experiment.trial(2)
    assert (second.id, second.number) == (3, 2)
    assert repr(second).startswith("Trial(2.2: running")
    assert repr(experiment.trials[0].checkpoints[0]).split(": ", 1)[1].startswith("trial 1, batch 3")
    with pytest.raises(NotFoundError, match=r"^Experiment 2 has no trial 3; it has trials 1 to 2.$"):
        experiment.trial(3)
    with pytest.raises(ArgumentError, match="by its number inside the experiment"):
        experiment.trial("2")  # type: ignore[arg-type]


def test_all_metrics_of_all_trials_are_rows(master: Master) -> None:
    rows = rows_of(det(master, "experiment", "describe", "2", "--metrics", "--csv").output)
    assert [(row["trial"], row["trial_id"], row["kind"], row["batch"]) for row in rows] == [
        *(("1", "2", "training", str(batch)) for batch in (1, 2, 3)),
        ("1", "2", "validation", "3"),
    ]
    assert [float(row["loss"]) for row in rows] == [1.0, 1 / 2, 1 / 3, 0.25]
    told = json.loads(det(master, "experiment", "describe", "2", "--metrics", "--json").output)
    assert (told["id"], len(told["trials"])) == (2, 2)
    assert told["metrics"][-1] == {"trial": 1, "trial_id": 2, "kind": "validation", "batch": 3, "loss": 0.25}
    assert "metrics" not in json.loads(det(master, "experiment", "describe", "2", "--json").output)
    assert det(master, "experiment", "describe", "2", "--metrics").output.splitlines()[-1].split()[:4] == [
        "1",
        "2",
        "validation",
        "3",
    ]


def test_logs_and_errors_tell_it(tmp_path: Path) -> None:
    with running_master(tmp_path, slots=2) as master:
        master.create({"name": "alone"})
        Worker(master, master.world.wait_for_jobs(1)[0]).complete()
        experiment = master.create(SEARCH)
        for job in master.world.wait_for_jobs(3)[1:]:
            worker = Worker(master, job)
            worker.start()
            worker.exit(ExitReason.USER_ERROR, batch=1, message=f"bad {job.trial_id}")
        master.until(f"/experiments/{experiment['id']}", lambda found: found["state"] == "ERROR")
        lines = det(master, "logs", "2").output.splitlines()
        assert lines
        assert {line.split("]")[0] for line in lines} <= {"[trial 1", "[trial 2"}
        said: Any = str(Experiment(source_of(master), 2).logs())
        assert "[trial 2]" in said
        assert "[trial 3]" not in said
        assert det(master, "logs", "2.2").output == det(master, "logs", "3", "--trial").output
