"""The life of an experiment from Python and from the shell: one master without processes."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from master_parts import Master, Worker, running_master

from det_native.client.command import cli
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.errors import (
    ArgumentError,
    CheckpointNotFoundError,
    ConfigurationError,
    NotFoundError,
    RequestError,
)
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow  # a whole master

Det = Callable[..., str]
CONFIG = {"hyperparameters": {"global_batch_size": 32, "lr": 0.1}}


@pytest.fixture(scope="module")
def shared_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    with running_master(tmp_path_factory.mktemp("life") / "home") as running:
        yield running


@pytest.fixture
def master(shared_master: Master, monkeypatch: pytest.MonkeyPatch) -> Master:
    """Give the master, which commands find, too."""
    monkeypatch.setenv("DET_MASTER", str(shared_master.client.base_url).rstrip("/"))
    monkeypatch.setenv("DET_TOKEN", shared_master.token)
    return shared_master


@pytest.fixture
def det(master: Master) -> Det:
    """Run ``det experiment`` with words; return what it prints."""

    def run(*words: object, code: int = 0, text: str = "") -> str:
        done = CliRunner().invoke(cli, ["experiment", *map(str, words)], input=text)
        assert (done.exit_code if not isinstance(done.exception, RequestError) else 1) == code, done.output
        return done.output + (str(done.exception) if code else "")

    return run


def handle(master: Master, number: int) -> Experiment:
    return Experiment(HttpSource(Session(str(master.client.base_url), master.token)), number)


def trained(master: Master) -> Experiment:
    before = len(master.world.jobs)
    number: int = master.create(CONFIG)["id"]
    job = master.world.wait_for_jobs(before + 1)[-1]
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 100)
    worker.checkpoint(100)
    worker.validate(100, loss=0.5)
    worker.exit(batch=100)
    master.until_state(number, "COMPLETED")
    return handle(master, number)


def end_new(master: Master, made: Experiment) -> Experiment:
    made.kill()
    master.until_state(int(made.id), "CANCELED")
    return made


def test_what_people_write_of_an_experiment(master: Master) -> None:
    experiment = trained(master)
    assert experiment.state is ExperimentState.COMPLETED  # its facts are kept from here on
    experiment.rename("digits")
    experiment.set_description("a baseline")
    experiment.notes = "# What was seen"
    experiment.add_labels("baseline", "small")
    experiment.add_label("third")
    experiment.remove_labels("small")
    experiment.move_to("vision/digits")
    experiment.archive()
    other = handle(master, int(experiment.id))
    for each in (experiment, other):
        assert (each.name, each.description, each.notes) == ("digits", "a baseline", "# What was seen")
        assert (each.labels, each.project, each.archived) == (["baseline", "third"], "vision/digits", True)
    experiment.unarchive()
    experiment.set_labels("one")
    assert (other.archived, other.labels) == (False, ["one"])
    with pytest.raises(ArgumentError, match="name: "):
        experiment.rename("")
    changes: list[tuple[Callable[..., object], Any, str]] = [
        (experiment.rename, "n" * 3000, "name: a text of at most 1,000 characters is wanted, not 3,000 ('nnn"),
        (experiment.set_labels, ["x" * 3000], "labels: a label of at most 200 characters is wanted, not 3,000 ('xxx"),
        (experiment.set_description, ["word"] * 3000, "description: ['word', 'word'"),
        (lambda name: experiment.fork(name=name), "n" * 3000, "name: a text of at most 1,000 characters is wanted"),
    ]
    for change, value, said in changes:
        with pytest.raises(ArgumentError) as long:
            change(value)
        assert str(long.value).startswith(said)
        assert len(str(long.value)) < 150
    with pytest.raises(ArgumentError, match="description: 3 will not do"):
        experiment.set_description(3)  # type: ignore[arg-type]


def test_delete_shows_what_it_frees_and_asks(
    master: Master, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = trained(master)
    asked: list[str] = []

    def answer(text: str) -> Callable[[str], str]:
        return lambda question: (asked.append(question), text)[1]

    monkeypatch.setattr(builtins, "input", answer("n"))
    experiment.delete()
    shown = capsys.readouterr().out
    assert f"Deleting experiment {experiment.id} frees " in shown
    assert "1 checkpoint (" in shown
    assert f"Experiment {experiment.id} stays." in shown
    assert asked == [f"Delete experiment {experiment.id}? [y/N] "]

    def nobody(question: str) -> str:
        raise EOFError

    monkeypatch.setattr(builtins, "input", nobody)
    with pytest.raises(ArgumentError, match=r"delete\(yes=True\) does not ask"):
        experiment.delete()
    experiment.delete(yes=True)
    assert f"Experiment {experiment.id} is deleted; " in capsys.readouterr().out
    with pytest.raises(NotFoundError, match=f"Experiment {experiment.id} was deleted on 20"):
        experiment.wait(show="none")
    with pytest.raises(NotFoundError, match="was deleted on"):
        experiment.delete()


def test_a_running_experiment_is_neither_deleted_nor_archived(
    master: Master, capsys: pytest.CaptureFixture[str]
) -> None:
    running = handle(master, master.create(CONFIG)["id"])
    with pytest.raises(RequestError, match=rf"det\.experiment\({running.id}\)\.kill\(\)"):
        running.delete()
    with pytest.raises(RequestError, match="cannot be archived"):
        running.archive()
    end_new(master, running)
    running.kill()
    running.stop()
    printed = capsys.readouterr().out
    assert f"Experiment {running.id} has ended: it is Stopped. There is nothing to kill." in printed
    assert "There is nothing to stop." in printed
    with pytest.raises(RequestError, match="has ended"):
        running.pause()


def test_fork_and_continue_return_the_new_experiment(master: Master, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = trained(master)
    fork = experiment.fork({"lr": 0.5}, "max_restarts: 0", name="faster")
    assert f"Experiment {fork.id}: faster is submitted." in capsys.readouterr().out
    assert (fork.forked_from, fork.config["max_restarts"]) == (experiment.id, 0)
    assert fork.config["hyperparameters"]["lr"]["val"] == 0.5
    end_new(master, fork)
    checkpoint = experiment.checkpoints[0]
    longer = experiment.continue_(batches=20, checkpoint=checkpoint.uuid[:-2], trial=experiment.trials[0])
    assert longer.config["searcher"]["source_checkpoint_uuid"] == checkpoint.uuid
    assert longer.config["searcher"]["max_length"] == {"batches": 20}
    assert longer.name.startswith("Continuation of ")
    end_new(master, longer)
    with pytest.raises(ArgumentError, match="epochs=0: a whole number above 0"):
        experiment.continue_(epochs=0)
    with pytest.raises(CheckpointNotFoundError):
        experiment.continue_(epochs=1, checkpoint="zzz")
    with pytest.raises(ArgumentError, match="hyperparameters must be values by name"):
        experiment.fork([1])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        experiment.fork(config={"data": {"x": object()}})
    with pytest.raises(RequestError, match="no_such_field"):
        experiment.fork(config={"no_such_field": 1})


@pytest.fixture
def two_trials(master: Master) -> Experiment:
    """Give an experiment with two trials, of which both have a checkpoint and the first is the best."""
    trained(master)  # so that numbers inside the experiment are not the master's ids
    before = len(master.world.jobs)
    searcher = {"name": "random", "max_trials": 2, "metric": "loss", "max_length": {"batches": 100}}
    number: int = master.create({**CONFIG, "searcher": searcher})["id"]
    for place in (1, 2):
        worker = Worker(master, master.world.wait_for_jobs(before + place)[-1])
        worker.start()
        worker.train(1, 100)
        worker.checkpoint(100)
        worker.validate(100, loss=0.5 * place)
        worker.exit(batch=100)
    master.until_state(number, "COMPLETED")
    return handle(master, number)


def began_with(master: Master, made: Experiment) -> str:
    source: str = end_new(master, made).config["searcher"]["source_checkpoint_uuid"]
    return source


def test_the_trial_that_is_continued_is_named_by_its_number(master: Master, det: Det, two_trials: Experiment) -> None:
    number, (_, second) = int(two_trials.id), two_trials.trials
    assert (second.number, second.id > 2) == (2, True)
    (checkpoint,) = (one.uuid for one in two_trials.checkpoints if one.trial_id == second.id)
    for trial in (2, second, second.id):
        assert began_with(master, two_trials.continue_(batches=5, trial=trial)) == checkpoint
    for word in (f"{number}.2", 2, second.id):
        made = json.loads(det("continue", number, "--batches", 5, "--trial", word, "--json"))
        assert began_with(master, handle(master, made["id"])) == checkpoint
    other = trained(master)
    with pytest.raises(NotFoundError, match=rf"Experiment {number} has no trial {other.id}\.1\."):
        two_trials.continue_(batches=5, trial=other.trials[0])
    with pytest.raises(NotFoundError, match=f"Experiment {number} has no trial 99999"):
        two_trials.continue_(batches=5, trial=99_999)
    with pytest.raises(ArgumentError, match="named by its number inside the experiment"):
        two_trials.continue_(batches=5, trial="2")  # type: ignore[arg-type]
    assert f"has no trial {other.id}.1" in det("continue", number, "--batches", 5, "--trial", f"{other.id}.1", code=1)
    assert "local runs have numbers like all experiments now" in det(
        "continue", number, "--batches", 5, "--trial", "local-1/1", code=2
    )
    assert "write 7.2 for the second trial" in det("continue", number, "--batches", 5, "--trial", "x", code=2)


def test_the_same_from_the_shell(master: Master, det: Det) -> None:
    number = int(trained(master).id)
    assert json.loads(det("rename", number, "digits", "--json"))["name"] == "digits"
    assert "baseline, b" in det("label", "add", number, "baseline", "b")
    assert json.loads(det("label", "remove", number, "b", "--json"))["labels"] == ["baseline"]
    for field, text in (("notes", "# N"), ("description", "d"), ("project", "vision"), ("name", "again")):
        det("set", field, number, text)
    found = master.get(f"/experiments/{number}")
    assert [found[field] for field in ("notes", "description", "project", "name")] == ["# N", "d", "vision", "again"]
    assert "name,value" in det("archive", number, "--csv")
    assert json.loads(det("unarchive", number, "--json"))["archived"] is False

    made = json.loads(det("fork", number, "--hp", "lr=0.5", "--config", "max_restarts=0", "--name", "f", "--json"))
    assert (made["name"], made["config"]["hyperparameters"]["lr"]["val"]) == ("f", 0.5)
    end_new(master, handle(master, made["id"]))
    assert "is submitted" in det("continue", number, "--batches", 5)
    longer = master.get("/experiments")[0]["id"]
    end_new(master, handle(master, longer))
    policy = ["--save-experiment-best", 0, "--save-trial-best", 1, "--save-trial-latest", 0]
    assert "0 checkpoints deleted (0 bytes), 1 stay." in det("set", "gc-policy", number, *policy)

    assert "began with" in det("delete", number, "--yes", code=1)
    shown = det("delete", number, longer, text="n\n", code=1)
    assert f"Deleting experiment {longer}" in shown
    gone = json.loads(det("delete", number, longer, made["id"], "--yes", "--json"))
    assert [one["experiment_id"] for one in gone] == sorted([number, longer, made["id"]], reverse=True)
    assert "was deleted on" in det("rename", number, "x", code=1)
    assert "There is no experiment 9999" in det("delete", 9999, "--yes", code=1)
