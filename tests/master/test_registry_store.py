"""The model registry in the database, and over the routes: names, versions that are never given twice, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from master_parts import Master, Worker
from store_parts import OWNER, Fixture

from det_native.errors import NotFoundError, RequestError
from det_native.master.store import checkpoints, protection, registry
from det_native.master.store.database import Database
from det_native.schema.registry import (
    ModelChange,
    ModelCreate,
    ModelOrderBy,
    ModelSortBy,
    VersionChange,
    VersionCreate,
)


def checkpoint_report(fixture: Fixture, run_id: str, number: int) -> dict[str, Any]:
    uuid = f"00000000-0000-4000-8000-{number:012d}"
    return {
        "type": "checkpoint",
        "location": f"/nowhere/{uuid}",
        "manifest": {
            "uuid": uuid,
            "framework": "torch",
            "framework_version": "2",
            "det_version": "0",
            "batch": number,
            "experiment_id": fixture.experiment_id,
            "trial_id": fixture.trial_id,
            "run_id": run_id,
            "bundle_id": "0" * 64,
            "hparams": {},
            "created": "2026-01-01T00:00:00Z",
            "files": [],
        },
    }


def saved(fixture: Fixture, count: int) -> list[str]:
    voice = fixture.run()
    voice.say(*(checkpoint_report(fixture, voice.run_id, number) for number in range(1, count + 1)))
    with fixture.database.read() as connection:
        return [one.uuid for one in checkpoints.of_trial(connection, fixture.trial_id)]


def test_versions_count_up_and_no_number_is_given_twice(database: Database) -> None:
    first, second, third = saved(Fixture(database), 3)
    with database.write() as transaction:
        registry.create(transaction, OWNER, ModelCreate(name="digits", labels=["a", "a"], metadata={"x": 1}))
        for uuid in (first, second):
            registry.register(transaction, "digits", OWNER, VersionCreate(uuid=uuid))
        freed = registry.remove_version(transaction, "digits", OWNER, 2)
        assert freed == 1
        version = registry.register(transaction, "digits", OWNER, VersionCreate(uuid=third, stage="staging"))
        assert (version.version, version.stage, version.checkpoint.uuid) == (3, "staging", third)
    with database.read() as connection:
        model = registry.get(connection, "digits", OWNER)
        assert (model.versions, model.last_version, model.labels, model.metadata) == (2, 3, ["a"], {"x": 1})
        assert [one.version for one in registry.versions(connection, "digits", OWNER)] == [3, 1]
        ascending = registry.versions(connection, "digits", OWNER, ModelOrderBy.ASCENDING)
        assert [one.version for one in ascending] == [1, 3]
        assert protection.protected(connection).keys() == {first, third}
        with pytest.raises(NotFoundError, match="has no version 2 any more: it was deleted"):
            registry.get_version(connection, "digits", OWNER, 2)
        with pytest.raises(NotFoundError, match="has no version 9"):
            registry.get_version(connection, "digits", OWNER, 9)
        with pytest.raises(NotFoundError, match="no model 'digits'"):
            registry.get(connection, "digits", "another")


def test_models_and_versions_are_changed_in_parts(database: Database) -> None:
    [uuid] = saved(Fixture(database), 1)
    with database.write() as transaction:
        registry.create(transaction, OWNER, ModelCreate(name="digits", metadata={"a": 1, "b": 2}, labels=["x"]))
        change = ModelChange(
            name="figures", notes="# Notes", add_metadata={"c": [3]}, remove_metadata=["a", "z"], add_labels=["y"]
        )
        model = registry.change(transaction, "digits", OWNER, change)
        assert (model.name, model.notes, model.metadata, model.labels) == (
            "figures",
            "# Notes",
            {"b": 2, "c": [3]},
            ["x", "y"],
        )
        registry.register(transaction, "figures", OWNER, VersionCreate(uuid=uuid, metadata={"a": 1}))
        edited = registry.change_version(
            transaction, "figures", OWNER, 1, VersionChange(stage="production", labels=["l"], remove_metadata=["a"])
        )
        assert (edited.stage, edited.labels, edited.metadata, edited.notes) == ("production", ["l"], {}, "")
        assert [one.model for one in registry.of_checkpoint(transaction.connection, uuid, OWNER)] == ["figures"]


def test_what_cannot_be_is_refused_in_a_sentence(database: Database) -> None:
    first, second = saved(Fixture(database), 2)
    with database.write() as transaction:
        registry.create(transaction, OWNER, ModelCreate(name="digits"))
        registry.register(transaction, "digits", OWNER, VersionCreate(uuid=first))
        checkpoints.set_deleted(transaction, [second])
        refusals = [
            (lambda: registry.create(transaction, OWNER, ModelCreate(name="digits")), "There is a model 'digits'"),
            (
                lambda: registry.register(transaction, "digits", OWNER, VersionCreate(uuid=first)),
                "is version 1 of the model 'digits' already",
            ),
            (lambda: registry.register(transaction, "digits", OWNER, VersionCreate(uuid=second)), "was deleted"),
            (lambda: registry.remove(transaction, "digits", OWNER, versions=False), "has a version; delete these"),
        ]
        for step, text in refusals:
            with pytest.raises(RequestError, match=text):
                step()
        registry.change(transaction, "digits", OWNER, ModelChange(archived=True))
        with pytest.raises(RequestError, match="is archived; unarchive it"):
            registry.register(transaction, "digits", OWNER, VersionCreate(uuid=first))
        assert registry.remove(transaction, "digits", OWNER, versions=True) == [1]
        assert protection.protected(transaction.connection) == {}


def test_models_are_listed_by_what_they_are_called(database: Database) -> None:
    with database.write() as transaction:
        for name, description in (("b", "Second_one"), ("A", "first"), ("c%", "third")):
            registry.create(transaction, OWNER, ModelCreate(name=name, description=description, labels=[name]))
        registry.change(transaction, "b", OWNER, ModelChange(archived=True))

    def names(**options: Any) -> list[str]:
        with database.read() as connection:
            return [model.name for model in registry.listing(connection, OWNER, **options)]

    down = ModelOrderBy.DESCENDING
    assert sorted(names()) == ["A", "b", "c%"]
    assert names(sort_by=ModelSortBy.CREATION_TIME, limit=2, offset=1) in (["A", "c%"], ["b", "c%"], ["b", "A"])
    assert names(sort_by=ModelSortBy.DESCRIPTION, order_by=down)[0] == "c%"
    assert names(name="%") == ["c%"]
    assert names(description="second_") == ["b"]
    assert names(label="A") == ["A"]
    assert names(archived=True) == ["b"]


def test_the_routes_tell_what_is_wrong(master: Master) -> None:
    master.create({})
    worker = Worker(master, master.world.wait_for_jobs(1)[-1])
    worker.start()
    uuid = worker.checkpoint(10)

    def ask(method: str, path: str, status: int, json: Any = None) -> Any:
        answer = master.client.request(method, f"/api/v1{path}", json=json)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    ask("POST", "/models", 201, {"name": "my digits?"})
    assert ask("GET", "/models/my%20digits%3F", 200)["last_version"] is None
    for name in ("a/b", "", " a", "..", "x" * 201):
        told = ask("POST", "/models", 422, {"name": name})
        assert told["problems"][0]["where"] == "body.name", told
    ask("POST", "/models", 422, {"name": "n", "labels": [3]})
    ask("POST", "/models", 422, {"name": "n", "metadata": {"x": "y" * 1_000_001}})
    ask("POST", "/models/none/versions", 404, {"uuid": uuid})
    ask("POST", "/models/my%20digits%3F/versions", 404, {"uuid": "0" * 32})
    ask("POST", "/models/my%20digits%3F/versions", 201, {"uuid": uuid})
    ask("PATCH", "/models/my%20digits%3F/versions/1", 422, {"stage": 7})
    assert "version 1 of the model 'my digits?'" in ask("DELETE", f"/checkpoints/{uuid}", 409)["error"]
    assert ask("GET", f"/checkpoints/{uuid}/models", 200)[0]["version"] == 1
    assert ask("POST", f"/checkpoints/{uuid}/verify", 200)["ok"]
    ask("DELETE", "/models/my%20digits%3F/versions/1", 204)
    assert "may have to continue from it" in ask("DELETE", f"/checkpoints/{uuid}", 409)["error"]
    worker.checkpoint(20)
    worker.checkpoint(30)
