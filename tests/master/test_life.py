"""The life of an experiment by the master's interface: described, archived, forked, continued, deleted."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from master_parts import Master, MemoryLauncher, Worker, configuration, manifest, publish, running_master
from sqlalchemy import func, insert, select

from det_native import PROTOCOL
from det_native.master.store.columns import metadata
from det_native.master.store.encoding import now
from det_native.master.store.tables import deleted_experiments, events
from det_native.master.store.user_tables import model_versions, models
from det_native.schema.manifests import FileEntry
from det_native.storage.blobs import BlobStore

pytestmark = pytest.mark.slow  # a whole master for each test

SPACE = {"hyperparameters": {"global_batch_size": 32, "lr": 0.1, "optimizer": {"name": "sgd", "momentum": 0.9}}}


@pytest.fixture
def any_master(tmp_path: Path, migrated_url: str) -> Iterator[Master]:
    """Give a running master on every kind of database."""
    with running_master(tmp_path / "home", database_url=migrated_url) as running:
        yield running


def patch(master: Master, experiment_id: int, **change: Any) -> httpx.Response:
    return master.client.patch(f"/api/v1/experiments/{experiment_id}", json=change)


def post(master: Master, path: str, **body: Any) -> httpx.Response:
    return master.client.post(f"/api/v1/experiments/{path}", json=body)


def delete(master: Master, experiment_id: int) -> httpx.Response:
    return master.client.delete(f"/api/v1/experiments/{experiment_id}")


def error(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    return str(response.json()["error"])


def trained(master: Master, config: dict[str, Any] | None = None, **fields: Any) -> tuple[int, str]:
    """Train an experiment of one trial; return it and its checkpoint."""
    before = len(master.world.jobs)
    number: int = master.create(config, **fields)["id"]
    job = master.world.wait_for_jobs(before + 1)[-1]
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 100)
    uuid = worker.checkpoint(100)
    worker.validate(100, loss=0.5)
    worker.exit(batch=100)
    master.until_state(number, "COMPLETED")
    return number, uuid


def bundle_of(master: Master, *contents: bytes) -> str:
    """Send a bundle with files of these contents."""
    files = []
    for content in contents:
        sha256 = hashlib.sha256(content).hexdigest()
        master.service.blobs.put(sha256, content)
        files.append(FileEntry(path=f"{sha256[:8]}.txt", sha256=sha256, size=len(content)))
    body = manifest().model_copy(update={"files": tuple(files)})
    response = master.client.post("/api/v1/bundles", json=body.model_dump(mode="json"))
    assert response.status_code == 200, response.text
    return str(response.json()["id"])


def stored(master: Master) -> set[str]:
    return {path.name for path in Path(master.service.places.blobs).glob("??/*")}


def rows_of(master: Master, experiment_id: int, trial_ids: set[int]) -> dict[str, int]:
    """Return how many rows of each table name an experiment or one of its trials."""
    found = {}
    with master.service.database.read() as connection:
        for table in metadata.sorted_tables:
            conditions = []
            if "trial_id" in table.c:
                conditions.append(table.c.trial_id.in_(trial_ids))
            if "experiment_id" in table.c:
                conditions.append(table.c.experiment_id == experiment_id)
            for condition in conditions:
                query = select(func.count()).select_from(table).where(condition)
                found[table.name] = found.get(table.name, 0) + connection.execute(query).scalar_one()
    return {name: count for name, count in found.items() if count}


def test_notes_are_not_written_over_those_of_somebody_else(any_master: Master) -> None:
    number, _ = trained(any_master)
    assert patch(any_master, number, notes="first", notes_before="").status_code == 200
    assert "changed them meanwhile" in error(patch(any_master, number, notes="mine", notes_before=""), 409)
    assert any_master.get(f"/experiments/{number}")["notes"] == "first"
    assert patch(any_master, number, notes="first", notes_before="").status_code == 200, "a repeat of what is there"
    assert patch(any_master, number, notes="mine", notes_before="first").status_code == 200
    assert any_master.get(f"/experiments/{number}")["notes"] == "mine"


def test_a_form_can_be_made_of_the_schema_of_a_configuration(any_master: Master) -> None:
    schema = any_master.get("/configuration-schema")
    assert schema["properties"]["scheduling_unit"] == {
        "default": 100,
        "minimum": 1,
        "title": "Scheduling Unit",
        "type": "integer",
    }
    assert "searcher" in schema["properties"]


@pytest.mark.long
def test_what_people_write_of_an_experiment_is_kept_and_told(any_master: Master) -> None:
    master = any_master
    number, _ = trained(master)
    told = f"/experiments/{number}"
    changed = patch(master, number, name=" digits ", description="d", notes="# Notes", project="/vision/ digits/")
    assert changed.status_code == 200
    assert {name: master.get(told)[name] for name in ("name", "description", "notes", "project")} == {
        "name": "digits",
        "description": "d",
        "notes": "# Notes",
        "project": "vision/digits",
    }
    patch(master, number, labels=["a", "b"])
    assert patch(master, number, add_labels=["c", "a"], remove_labels=["b"]).json()["labels"] == ["a", "c"]
    assert master.get("/experiments")[0]["labels"] == ["a", "c"]
    with master.service.database.read() as connection:
        query = select(events.c.data).where(events.c.type == "experiment").order_by(events.c.id.desc()).limit(1)
        assert connection.execute(query).scalar_one()["labels"] == ["a", "c"]
    assert error(patch(master, number, name="  "), 400).startswith("name: ")
    assert error(patch(master, number, add_labels=[" "]), 400).startswith("labels: ")
    assert error(patch(master, 99, name="x"), 404) == "There is no experiment 99."


def test_only_what_has_ended_is_archived(master: Master) -> None:
    number = master.create()["id"]
    (job,) = master.world.wait_for_jobs(1)
    assert "goes on and cannot be archived" in error(patch(master, number, archived=True), 409)
    assert patch(master, number, labels=["x"], resources={"priority": 7}).json()["labels"] == ["x"]
    assert master.get(f"/experiments/{number}")["config"]["resources"]["priority"] == 7
    Worker(master, job).complete()
    master.until_state(number, "COMPLETED")
    assert patch(master, number, archived=True).json()["archived"] is True
    assert patch(master, number, archived=False).json()["archived"] is False
    assert "has ended" in error(patch(master, number, resources={"priority": 3}), 409)


@pytest.mark.long
def test_a_fork_is_the_same_program_with_another_configuration(master: Master) -> None:
    number, uuid = trained(master, SPACE)
    patch(master, number, name="digits", labels=["baseline"], project="vision")
    made = post(
        master,
        f"{number}/fork",
        hyperparameters={"lr": 0.01, "optimizer": {"momentum": 0.5}},
        config={"max_restarts": 0, "searcher": {"max_length": {"batches": 7}}},
    )
    assert made.status_code == 201, made.text
    fork, first = made.json(), master.get(f"/experiments/{number}")
    assert (fork["name"], fork["forked_from"], fork["bundle_id"]) == ("Fork of digits", number, first["bundle_id"])
    assert (fork["labels"], fork["project"]) == (["baseline"], "vision")
    assert fork["config"]["searcher"]["metric"] == "loss"
    assert fork["config"]["reproducibility"] == first["config"]["reproducibility"]
    job = master.world.wait_for_jobs(2)[-1]
    assert job.hparams == {"global_batch_size": 32, "lr": 0.01, "optimizer": {"name": "sgd", "momentum": 0.5}}
    assert (job.config["searcher"]["max_length"], job.config["max_restarts"]) == ({"batches": 7}, 0)

    search = post(
        master,
        f"{number}/fork",
        name="search",
        hyperparameters={"lr": {"type": "categorical", "vals": [1, 2, 3]}},
        config={"searcher": {"name": "grid", "source_checkpoint_uuid": uuid}, "labels": []},
    ).json()
    assert (search["name"], search["labels"]) == ("search", [])
    Worker(master, job).exit(batch=7)
    jobs = master.world.wait_for_jobs(4)[2:]
    assert {job.hparams["lr"] for job in jobs} == {1, 2}
    assert all(job.warm_start is not None and job.warm_start.manifest.uuid == uuid for job in jobs)
    assert not any(job.warm_start.optimizers for job in jobs if job.warm_start is not None)


def test_a_fork_that_cannot_be_is_refused_with_a_sentence(master: Master) -> None:
    number, _ = trained(master, SPACE)
    assert error(post(master, f"{number}/fork", hyperparameters={"dropout": 0.1}), 400) == (
        "hyperparameters.dropout: the program has no such hyperparameter; it has global_batch_size, lr, optimizer."
    )
    assert "hyperparameters.optimizer.beta" in error(
        post(master, f"{number}/fork", config={"hyperparameters": {"optimizer": {"beta": 1}}}), 400
    )
    assert "max_restart" in error(post(master, f"{number}/fork", config={"max_restart": 1}), 422)
    assert error(post(master, "99/fork"), 404) == "There is no experiment 99."
    assert len(master.get("/experiments")) == 1


@pytest.mark.long
def test_a_continuation_begins_with_the_last_checkpoint_and_its_optimizers(master: Master) -> None:
    number, uuid = trained(master, SPACE)
    made = post(master, f"{number}/continue", unit="batches", length=30)
    assert made.status_code == 201, made.text
    assert made.json()["forked_from"] == number
    job = master.world.wait_for_jobs(2)[-1]
    assert job.warm_start is not None
    assert (job.warm_start.manifest.uuid, job.warm_start.optimizers) == (uuid, True)
    assert job.config["searcher"]["max_length"] == {"batches": 30}
    assert job.hparams["lr"] == 0.1
    assert error(post(master, f"{number}/continue", unit="batches", length=3, checkpoint="5c1e"), 404)
    assert error(post(master, f"{number}/continue", unit="batches", length=3, trial=77), 404) == (
        f"Experiment {number} has no trial 77."
    )
    Worker(master, job).exit(batch=0)
    other = made.json()["id"]
    master.until_state(other, "COMPLETED")
    assert (
        f"Experiment {other} has no checkpoint to continue from."
        in post(master, f"{other}/continue", unit="batches", length=3).text
    )
    (trial,) = master.get(f"/experiments/{other}/trials")
    assert error(post(master, f"{other}/continue", unit="batches", length=3, trial=trial["id"]), 404) == (
        f"Trial {other}.1 has no checkpoint to continue from."
    )


@pytest.mark.long
def test_what_is_made_of_an_experiment_does_not_wait_for_what_that_waited_for(master: Master) -> None:
    first, _ = trained(master)
    second, _ = trained(master, {"after": first})
    assert master.get(f"/experiments/{second}")["config"]["after"] == [first]
    assert delete(master, first).status_code == 200
    made = [
        post(master, f"{second}/continue", unit="batches", length=50),
        post(master, f"{second}/fork"),
        post(master, f"{second}/fork", config={"after": second}),
    ]
    assert [response.status_code for response in made] == [201, 201, 201], [response.text for response in made]
    assert [response.json()["config"]["after"] for response in made] == [[], [], [second]]


def test_deletion_removes_every_trace_but_what_others_need(any_master: Master) -> None:
    master = any_master
    kept, own = b"k" * 500, b"o" * 700
    other = bundle_of(master, kept)
    first, _ = trained(master, bundle_id=other)
    number, uuid = trained(master, bundle_id=bundle_of(master, kept, own))
    trial = master.get(f"/experiments/{number}/trials")[0]["id"]
    job = master.world.wait_for_jobs(2)[-1]
    places = master.service.places
    event_files = places.home / "tensorboard" / str(number) / str(trial)
    event_files.mkdir(parents=True)
    (event_files / "events.1").write_bytes(b"e" * 100)
    (Path(job.directory) / "note").write_bytes(b"n" * 10)
    told = master.get(f"/experiments/{number}/deletion")
    assert (told["trials"], told["checkpoints"], told["event_file_bytes"]) == (1, 1, 100)
    assert (told["blobs"], told["obstacles"], told["deleted"]) == (1, [], None)
    assert told["output_bytes"] >= 10
    before = stored(master)

    freed = delete(master, number)
    assert freed.status_code == 200, freed.text
    assert freed.json()["checkpoint_bytes"] == told["checkpoint_bytes"] > 0
    assert rows_of(master, number, {trial}) == {}
    assert before - stored(master) == {hashlib.sha256(own).hexdigest()}
    assert not (Path(job.checkpoints) / uuid).exists()
    assert not event_files.parent.exists()
    assert not Path(job.directory).exists()
    assert [each["id"] for each in master.get("/experiments")] == [first]
    gone = master.client.get(f"/api/v1/experiments/{number}")
    assert error(gone, 404).startswith(f"Experiment {number} was deleted on 20")
    assert error(delete(master, number), 404).startswith(f"Experiment {number} was deleted on 20")
    assert error(patch(master, number, name="x"), 404).startswith(f"Experiment {number} was deleted on 20")
    assert master.create(bundle_id=other)["id"] > number
    # What the second one alone had is sent again.
    assert bundle_of(master, own)


@pytest.mark.long
def test_what_somebody_needs_is_not_deleted(any_master: Master) -> None:
    master = any_master
    number, uuid = trained(master)
    going = post(master, f"{number}/continue", unit="batches", length=10).json()["id"]
    assert f"experiment {going} began with" in error(delete(master, number), 409)
    job = master.world.wait_for_jobs(2)[-1]
    assert "goes on and cannot be deleted" in error(delete(master, going), 409)
    Worker(master, job).complete(10)
    master.until_state(going, "COMPLETED")
    assert f"experiment {going} began with" in error(delete(master, number), 409)
    assert delete(master, going).status_code == 200
    with master.service.database.write() as transaction:
        times = {"created": now(), "updated": now()}
        model = transaction.connection.execute(insert(models).values(owner="user", name="digits", **times))
        assert model.inserted_primary_key is not None
        values = {"model_id": model.inserted_primary_key[0], "version": 3, "uuid": uuid, **times}
        transaction.connection.execute(insert(model_versions).values(**values))
    assert "is version 3 of the model 'digits'" in error(delete(master, number), 409)
    assert "version 3" in master.get(f"/experiments/{number}/deletion")["obstacles"][0]
    with master.service.database.write() as transaction:
        transaction.connection.execute(model_versions.delete())
    assert delete(master, number).status_code == 200


@pytest.mark.long
def test_two_that_delete_at_once_and_the_second_hears_of_it(master: Master) -> None:
    number, _ = trained(master)
    answers: list[httpx.Response] = []
    threads = [threading.Thread(target=lambda: answers.append(delete(master, number))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.status_code for each in answers) == [200, 404, 404, 404]
    assert all("was deleted on" in each.text for each in answers if each.status_code == 404)


@pytest.mark.long
def test_a_deletion_that_was_cut_off_is_brought_to_its_end(tmp_path: Path, database_url: str) -> None:
    launcher = MemoryLauncher()
    with running_master(tmp_path / "home", database_url=database_url, launcher=launcher) as master:
        number, uuid = trained(master)
        job = master.world.wait_for_jobs(1)[0]
        master.service.deletions.begin(number, "user")
        assert master.get("/experiments") == []
        assert (Path(job.checkpoints) / uuid).exists()
    with running_master(
        tmp_path / "home", database_url=database_url, launcher=MemoryLauncher(launcher.world)
    ) as master:
        done = threading.Event()
        master.service.collector.submit(done.set)
        assert done.wait(60)
        assert not (Path(job.checkpoints) / uuid).exists()
        assert rows_of(master, number, {job.trial_id}) == {}
        with master.service.database.read() as connection:
            assert connection.execute(select(deleted_experiments.c.id)).scalars().all() == [number]


@pytest.mark.long
@pytest.mark.long
def test_a_client_that_was_told_a_blob_is_there_sends_it_again(master: Master) -> None:
    content = b"c" * 900
    sha256 = hashlib.sha256(content).hexdigest()
    number, _ = trained(master, bundle_id=bundle_of(master, content))
    answer = master.client.post("/api/v1/blobs/missing", json={"hashes": [sha256]})
    assert answer.json() == {"hashes": []}
    assert delete(master, number).status_code == 200
    body = manifest().model_copy(update={"files": (FileEntry(path="again", sha256=sha256, size=len(content)),)})
    refused = master.client.post("/api/v1/bundles", json=body.model_dump(mode="json"))
    assert (refused.status_code, refused.json()["missing"]) == (409, [sha256])


@pytest.mark.long
def test_what_a_worker_stores_again_stays_while_it_may_report_it(master: Master) -> None:
    content = b"c" * 900
    sha256 = hashlib.sha256(content).hexdigest()
    number, _ = trained(master, bundle_id=bundle_of(master, content))
    going = master.create()["id"]
    BlobStore(master.service.places.blobs).refresh(sha256)
    assert delete(master, number).status_code == 200
    assert sha256 in stored(master)
    master.client.post(f"/api/v1/experiments/{going}/kill")


@pytest.mark.long
def test_fewer_checkpoints_stay_and_what_that_frees_is_told(any_master: Master) -> None:
    master = any_master
    storage = {"save_trial_latest": 3, "save_trial_best": 3}
    number: int = master.create({"checkpoint_storage": storage})["id"]
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    uuids = []
    for batch in (40, 70, 100):
        uuid, report = publish(job, batch)
        worker.send(report)
        worker.validate(batch, loss=batch / 100)
        uuids.append(uuid)
    worker.exit(batch=100)
    master.until_state(number, "COMPLETED")
    policy = {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 0}
    answer = master.client.put(f"/api/v1/experiments/{number}/gc-policy", json=policy)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["deleted"], answer.json()["stay"], answer.json()["bytes"] > 0) == (2, 1, True)
    there = [each["uuid"] for each in master.get(f"/experiments/{number}/checkpoints") if each["state"] == "COMPLETED"]
    assert there == uuids[:1]
    assert master.get(f"/experiments/{number}")["config"]["checkpoint_storage"]["save_trial_latest"] == 0
    done = threading.Event()
    master.service.collector.submit(done.set)
    assert done.wait(60)
    assert [path.name for path in Path(job.checkpoints).iterdir() if path.name in uuids] == uuids[:1]


def test_storage_that_cannot_be_written_is_refused_at_submit(master: Master, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    storage = {"type": "shared_fs", "host_path": str(tmp_path / "file" / "checkpoints")}
    body = {"protocol": PROTOCOL, "config": configuration(checkpoint_storage=storage), "bundle_id": master.bundle()}
    refused = master.client.post("/api/v1/experiments", json=body)
    assert "checkpoint_storage.host_path: Checkpoints cannot be written to " in error(refused, 422)
    body["config"] = configuration(checkpoint_storage={**storage, "host_path": str(tmp_path / "new")})
    assert master.client.post("/api/v1/experiments", json=body).status_code == 201
    assert list((tmp_path / "new").rglob("*.det-native-writable")) == []


@pytest.mark.long
def test_a_configuration_of_a_newer_version_is_refused_by_its_field(master: Master) -> None:
    body = {"protocol": PROTOCOL, "config": configuration(quantum={"qubits": 3}), "bundle_id": master.bundle()}
    assert "quantum" in error(master.client.post("/api/v1/experiments", json=body), 422)
