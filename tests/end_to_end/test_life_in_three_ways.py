"""The life of an experiment, told by Python, by the shell and over REST, ends the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest
from faults import Cluster, Kernel
from test_forks import LINE, PLAIN, SETTINGS

import det_native as det
from det_native.client.connect import connect
from det_native.client.session import Session
from det_native.errors import NotFoundError, RequestError
from det_native.schema import routes
from det_native.schema.life import ExperimentContinuation, ExperimentFork
from det_native.schema.registry import ModelCreate, VersionCreate
from det_native.schema.rest import Experiment, ExperimentChange

pytestmark = [pytest.mark.slow, pytest.mark.long]


class Teller(Protocol):
    """One way to say what is to happen. Experiments are numbers, checkpoints uuids."""

    def describe(self, number: int, name: str) -> None:
        """Name, describe, label and note an experiment, and put it into a project."""

    def fork(self, number: int) -> int:
        """Train the same program for two epochs with lr=0.01; return the new experiment once it has ended."""

    def continued(self, number: int) -> int:
        """Train one epoch more."""

    def query(self, query: str) -> list[int]:
        """Return what is found, newest first."""

    def last_checkpoint(self, number: int) -> str:
        """Return the uuid of the last checkpoint of an experiment with one trial."""

    def register(self, model: str, uuid: str) -> int:
        """Make a model, and a checkpoint its first version."""

    def unregister(self, model: str) -> None:
        """Delete the model with its versions."""

    def delete(self, number: int) -> str:
        """Delete an experiment; return why it is refused, empty if it is gone."""

    def archive(self, number: int) -> None:
        """Have it listed no more."""


class Python:
    """``import det_native as det``."""

    def describe(self, number: int, name: str) -> None:
        experiment = det.experiment(number)
        experiment.rename(name)
        experiment.set_description("A line.")
        experiment.add_labels("baseline", "line")
        experiment.remove_labels("line")
        experiment.notes = "# What we saw\n\nIt is *straight*."
        experiment.move_to("lines/straight")

    def fork(self, number: int) -> int:
        shorter = {"searcher": {"max_length": {"epochs": 2}}}
        made = det.experiment(number).fork(hyperparameters={"lr": 0.01}, config=shorter)
        return int(made.wait(show="none").id)

    def continued(self, number: int) -> int:
        return int(det.experiment(number).continue_(epochs=1).wait(show="none").id)

    def query(self, query: str) -> list[int]:
        return [int(experiment.id) for experiment in det.experiments(query=query)]

    def last_checkpoint(self, number: int) -> str:
        return det.experiment(number).select_checkpoint(latest=True).uuid

    def register(self, model: str, uuid: str) -> int:
        return int(det.create_model(model).register_version(uuid).version)

    def unregister(self, model: str) -> None:
        for version in det.model(model).versions:
            version.delete()
        det.model(model).delete()

    def delete(self, number: int) -> str:
        try:
            det.experiment(number).delete(yes=True)
        except RequestError as error:
            return str(error)
        return ""

    def archive(self, number: int) -> None:
        det.experiment(number).archive()


class Shell:
    """``det``, each command in a process of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def _det(self, *words: str) -> str:
        return self._cluster.command("-m", "det_native.client.command", *words)

    def describe(self, number: int, name: str) -> None:
        self._det("experiment", "rename", str(number), name)
        self._det("experiment", "set", "description", str(number), "A line.")
        self._det("experiment", "label", "add", str(number), "baseline", "line")
        self._det("experiment", "label", "remove", str(number), "line")
        self._det("experiment", "set", "notes", str(number), "# What we saw\n\nIt is *straight*.")
        self._det("experiment", "set", "project", str(number), "lines/straight")

    def fork(self, number: int) -> int:
        options = ("--hp", "lr=0.01", "--config", "searcher.max_length.epochs=2", "--json")
        return self._ended(json.loads(self._det("experiment", "fork", str(number), *options))["id"])

    def continued(self, number: int) -> int:
        return self._ended(
            json.loads(self._det("experiment", "continue", str(number), "--epochs", "1", "--json"))["id"]
        )

    def _ended(self, number: int) -> int:
        self._det("experiment", "wait", str(number))
        return number

    def query(self, query: str) -> list[int]:
        return [found["id"] for found in json.loads(self._det("experiment", "list", "--query", query, "--json"))]

    def last_checkpoint(self, number: int) -> str:
        checkpoints: list[dict[str, Any]] = json.loads(self._det("checkpoint", "list", str(number), "--json"))
        return str(checkpoints[-1]["uuid"])

    def register(self, model: str, uuid: str) -> int:
        self._det("model", "create", model)
        return int(json.loads(self._det("model", "register-version", model, uuid, "--json"))["version"])

    def unregister(self, model: str) -> None:
        self._det("model", "delete", model, "--with-versions", "--yes")

    def delete(self, number: int) -> str:
        try:
            self._det("experiment", "delete", str(number), "--yes")
        except AssertionError as error:  # the exit code was not 0
            return str(error).strip().rpartition("Error: ")[2]
        return ""

    def archive(self, number: int) -> None:
        self._det("experiment", "archive", str(number))


class Rest:
    """The master's interface itself."""

    def __init__(self, session: Session, wait: Callable[[int], None]) -> None:
        self._session = session
        self._wait = wait

    def describe(self, number: int, name: str) -> None:
        said = ExperimentChange(
            name=name, description="A line.", add_labels=["baseline", "line"], project="lines/straight"
        )
        self._session.call(routes.CHANGE_EXPERIMENT, said, experiment_id=number)
        notes = ExperimentChange(remove_labels=["line"], notes="# What we saw\n\nIt is *straight*.")
        self._session.call(routes.CHANGE_EXPERIMENT, notes, experiment_id=number)

    def fork(self, number: int) -> int:
        body = ExperimentFork(hyperparameters={"lr": 0.01}, config={"searcher": {"max_length": {"epochs": 2}}})
        return self._made(self._session.call(routes.FORK_EXPERIMENT, body, experiment_id=number))

    def continued(self, number: int) -> int:
        body = ExperimentContinuation(unit="epochs", length=1)
        return self._made(self._session.call(routes.CONTINUE_EXPERIMENT, body, experiment_id=number))

    def _made(self, made: Experiment) -> int:
        self._wait(made.id)
        return made.id

    def query(self, query: str) -> list[int]:
        return [found.id for found in self._session.call(routes.LIST_EXPERIMENTS, query=query)]

    def last_checkpoint(self, number: int) -> str:
        return self._session.call(routes.LIST_CHECKPOINTS, experiment_id=number)[-1].uuid

    def register(self, model: str, uuid: str) -> int:
        self._session.call(routes.CREATE_MODEL, ModelCreate(name=model))
        return self._session.call(routes.REGISTER_VERSION, VersionCreate(uuid=uuid), name=model).version

    def unregister(self, model: str) -> None:
        self._session.call(routes.DELETE_MODEL, name=model, versions=True)

    def delete(self, number: int) -> str:
        try:
            self._session.call(routes.DELETE_EXPERIMENT, experiment_id=number)
        except RequestError as error:
            return str(error)
        return ""

    def archive(self, number: int) -> None:
        self._session.call(routes.CHANGE_EXPERIMENT, ExperimentChange(archived=True), experiment_id=number)


@pytest.fixture
def session(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    session = connect(None, start=False)
    yield session
    session.close()


def test_python_shell_and_rest_come_to_the_same_end(cluster: Cluster, kernel: Kernel, session: Session) -> None:
    def wait(number: int) -> None:
        det.experiment(number).wait(show="none")

    kernel.run(PLAIN + LINE + SETTINGS)
    tellers: dict[str, Teller] = {"python": Python(), "shell": Shell(cluster), "rest": Rest(session, wait)}
    ends = {}
    for way, teller in tellers.items():
        number = kernel.submit("experiment = det.experimental.create(Straight, straight)")
        kernel.run("experiment.wait(show='none')")
        ends[way] = json.loads(json.dumps(_life(teller, session, number, way)).replace(way, "WAY"))
    assert ends["shell"] == ends["python"]
    assert ends["rest"] == ends["python"]
    assert ends["python"] == {
        "name": "life by WAY",
        "description": "A line.",
        "labels": ["baseline"],
        "notes": "# What we saw\n\nIt is *straight*.",
        "project": "lines/straight",
        "archived": True,
        "state": "COMPLETED",
        "fork": ["Fork of life by WAY", True, 0.01, 10, True],
        "continued": [5, True],
        "version": 1,
        "refused": [True, True],
        "gone": [True, True],
        "models": [],
        "listed": [],
    }


def _life(teller: Teller, session: Session, number: int, way: str) -> dict[str, Any]:
    teller.describe(number, f"life by {way}")
    forked = teller.fork(number)
    fork = session.call(routes.GET_EXPERIMENT, experiment_id=forked)
    [trial] = session.call(routes.LIST_TRIALS, experiment_id=forked)
    found = teller.query(f'name:"life by {way}" and lr < 0.02 and val_loss < 1000')
    continued = teller.continued(forked)
    [longer] = session.call(routes.LIST_TRIALS, experiment_id=continued)
    uuid = teller.last_checkpoint(continued)
    version = teller.register(f"lines by {way}", uuid)
    refused = [
        "began with" in teller.delete(forked),
        f"version 1 of the model 'lines by {way}'" in teller.delete(continued),
    ]
    teller.unregister(f"lines by {way}")
    assert (teller.delete(continued), teller.delete(forked)) == ("", "")
    teller.archive(number)
    detail = session.call(routes.GET_EXPERIMENT, experiment_id=number).model_dump(mode="json")
    names = ("name", "description", "labels", "notes", "project", "archived", "state")
    return {name: detail[name] for name in names} | {
        "fork": [
            fork.name,
            fork.forked_from == number,
            trial.hparams["lr"],
            trial.batches,
            found == [forked],
        ],
        "continued": [longer.batches, longer.warm_start is not None],
        "version": version,
        "refused": refused,
        "gone": [_is_deleted(session, forked), _is_deleted(session, continued)],
        "models": session.call(routes.LIST_MODELS),
        "listed": teller.query(f'name:"life by {way}"'),
    }


def _is_deleted(session: Session, number: int) -> bool:
    with pytest.raises(NotFoundError, match=f"Experiment {number} was deleted on "):
        session.call(routes.GET_EXPERIMENT, experiment_id=number)
    return True
