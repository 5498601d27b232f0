"""Blobs that nobody needs are deleted; those of experiments, of uploads and of what is reported are not."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Any

from master_parts import Master, Worker, configuration, manifest

from det_native import PROTOCOL
from det_native.master.flow.unneeded_blobs import NEW_SECONDS, new_since, unneeded
from det_native.schema.manifests import FileEntry


def put(master: Master, text: str, *, old: bool = True) -> str:
    found = sha256(text.encode()).hexdigest()
    master.service.blobs.put(found, text.encode())
    if old:
        age(master, found)
    return found


def age(master: Master, *hashes: str) -> None:
    for found in hashes:
        path = master.service.places.home / "blobs" / found[:2] / found
        os.utime(path, (0, path.stat().st_mtime - NEW_SECONDS - 60))


def submitted(master: Master, *texts: str) -> dict[str, Any]:
    files = tuple(FileEntry(path=f"{text}.txt", sha256=put(master, text), size=len(text), mode=0o644) for text in texts)
    bundle = manifest().model_copy(update={"files": files})
    sent = master.client.post("/api/v1/bundles", json=bundle.model_dump(mode="json"))
    assert sent.status_code == 200, sent.text
    body = {"protocol": PROTOCOL, "config": configuration(), "bundle_id": sent.json()["id"]}
    created = master.client.post("/api/v1/experiments", json=body)
    assert created.status_code == 201, created.text
    answer: dict[str, Any] = created.json()
    return answer


def look(master: Master) -> set[str]:
    with master.service.database.read() as connection:
        return unneeded(connection, master.service.blobs)


def hash_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_only_what_no_experiment_has_goes(master: Master) -> None:
    submitted(master, "ours")
    stray = put(master, "stray")
    put(master, "just sent", old=False)
    assert look(master) == {stray}
    deleted = master.service.guard.delete(look(master), new_since())
    assert set(deleted) == {stray}
    assert stray not in master.service.blobs
    assert hash_of("ours") in master.service.blobs


def test_what_a_client_was_told_is_here_stays_until_it_has_submitted(master: Master) -> None:
    stray = put(master, "stray")
    asked = master.client.post("/api/v1/blobs/missing", json={"hashes": [stray]})
    assert asked.json() == {"hashes": []}
    assert master.service.guard.delete(look(master), new_since()) == {}
    assert stray in master.service.blobs


def test_a_file_that_is_reported_again_while_blobs_are_collected_stays(master: Master) -> None:
    stray = put(master, "stray")
    doomed, since = look(master), new_since()
    assert master.service.blobs.refresh(stray)  # a worker finds it, and is about to report it
    assert master.service.guard.delete(doomed, since) == {}


def test_what_a_trial_has_written_stays_as_long_as_its_experiment(master: Master) -> None:
    master.create()
    worker = Worker(master, master.world.wait_for_jobs(1)[0])
    worker.start()
    written = put(master, "result")
    file = {"path": "out.txt", "sha256": written, "size": 6, "batch": 0}
    worker.send({"type": "artifacts", "files": [file], "removed": []})
    assert look(master) == set()


def test_a_bundle_whose_blobs_have_gone_is_asked_for_again(master: Master) -> None:
    experiment = submitted(master, "ours")
    bundle = master.get(f"/experiments/{experiment['id']}")["bundle_id"]
    master.service.blobs.delete(hash_of("ours"))
    master.service.blobs.tell_loss()
    answer = master.client.post(
        "/api/v1/experiments", json={"protocol": PROTOCOL, "config": configuration(), "bundle_id": bundle}
    )
    assert answer.status_code == 404
    assert "send it again" in answer.text
