"""Superfluous checkpoints are deleted while an experiment goes on; what a trial may continue from is not."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from master_parts import Master, Worker, configuration, manifest

from det_native import PROTOCOL
from det_native.master.store import checkpoints, events, experiments
from det_native.schema.job import TrialJob
from det_native.schema.manifests import CallSite, Cell, EarlierTraining
from det_native.schema.rest import Event
from det_native.storage import backups
from det_native.storage.blobs import BlobStore


def lying(job: TrialJob) -> set[str]:
    return {path.name for path in Path(job.checkpoints).iterdir() if not path.name.startswith(".")}


def until_lying(master: Master, job: TrialJob, *uuids: str) -> None:
    master.until("/master", lambda _: lying(job) == set(uuids))


def begun(master: Master, **policy: int) -> tuple[dict[str, Any], TrialJob, Worker]:
    experiment = master.create({"checkpoint_storage": policy})
    job = master.world.wait_for_jobs(1)[-1]
    worker = Worker(master, job)
    worker.start()
    return experiment, job, worker


def saved(worker: Worker, batch: int, loss: float | None = None) -> str:
    if loss is not None:
        worker.validate(batch, loss=loss)
    return worker.checkpoint(batch)


def test_the_best_and_the_last_two_are_there_while_the_trial_trains(master: Master) -> None:
    experiment, job, worker = begun(master)
    best, *others = [saved(worker, batch, loss) for batch, loss in ((10, 0.1), (20, 0.4), (30, 0.3), (40, 0.5))]
    until_lying(master, job, best, *others[-2:])
    states = {best: "COMPLETED", others[0]: "DELETED", others[1]: "COMPLETED", others[2]: "COMPLETED"}
    path = f"/experiments/{experiment['id']}/checkpoints"
    master.until(path, lambda found: {one["uuid"]: one["state"] for one in found} == states)
    worker.train(1, 100)
    worker.exit(batch=100)
    master.until_state(experiment["id"], "COMPLETED")
    until_lying(master, job, best, others[-1])


def test_a_policy_that_keeps_none_leaves_what_the_trial_continues_from(master: Master) -> None:
    _, job, worker = begun(master, save_trial_best=0, save_trial_latest=0)
    uuids = [saved(worker, batch) for batch in (10, 20, 30)]
    until_lying(master, job, *uuids[-2:])
    master.launcher.end(job.run_id, -9, "killed by SIGKILL")
    again = master.world.wait_for_jobs(2)[-1]
    assert again.resume is not None
    assert again.resume.uuid == uuids[-1]


def test_nothing_goes_that_a_starting_worker_may_read(master: Master) -> None:
    experiment, job, worker = begun(master)
    last = [saved(worker, batch) for batch in (10, 20)]
    for uuid in last:  # damaged, so that the next run begins anew
        (Path(job.checkpoints) / uuid / "weights").write_text("else")
    master.launcher.end(job.run_id, -9, "killed by SIGKILL")
    later = Worker(master, master.world.wait_for_jobs(2)[-1])
    assert later.job.resume is None
    later.post({"seq": 0, "type": "started", "batch": 0})
    later.start()
    fresh = [saved(later, batch) for batch in (3, 6, 9)]
    until_lying(master, job, *last, *fresh[-2:])
    # What lies further is damaged: the last ones of the run itself have to be there.
    master.launcher.end(later.job.run_id, -9, "killed by SIGKILL")
    third = master.world.wait_for_jobs(3)[-1]
    assert third.resume is not None
    assert third.resume.uuid == fresh[-1]
    assert master.get(f"/experiments/{experiment['id']}")["state"] == "ACTIVE"


def test_a_checkpoint_that_another_experiment_begins_with_stays(master: Master) -> None:
    _, job, worker = begun(master)
    source = saved(worker, 10)
    searcher = {"source_checkpoint_uuid": source}
    master.create({"searcher": searcher})
    master.world.wait_for_jobs(2)
    last = [saved(worker, batch) for batch in (20, 30, 40)]
    until_lying(master, job, source, *last[-2:])


def test_one_that_is_being_downloaded_stays(master: Master) -> None:
    _, job, worker = begun(master)
    read = saved(worker, 10)
    assert master.client.get(f"/api/v1/checkpoints/{read}/files/weights").text == "weights after 10"
    last = [saved(worker, batch) for batch in (20, 30, 40)]
    until_lying(master, job, read, *last[-2:])


def test_a_database_that_is_restored_knows_one_of_those_that_are_there(master: Master) -> None:
    _, job, worker = begun(master)
    known = [saved(worker, batch) for batch in (10, 20)]
    assert master.service.database.file is not None
    backups.make(master.service.database.file)
    later = [saved(worker, batch) for batch in (30, 40, 50)]
    until_lying(master, job, known[-1], *later[-2:])


def test_while_the_metric_is_not_known_by_which_trials_are_compared_those_with_metrics_stay(master: Master) -> None:
    _, job, worker = begun(master)
    worker.validate(10, accuracy=0.5)
    first = worker.checkpoint(10)
    last = [saved(worker, batch) for batch in (20, 30, 40)]
    until_lying(master, job, first, *last[-2:])


def test_a_trial_that_waits_for_room_has_all_but_the_last_one_deleted(master: Master) -> None:
    _, job, worker = begun(master)
    best, *others = [saved(worker, batch, loss) for batch, loss in ((10, 0.1), (20, 0.4), (30, 0.3))]
    until_lying(master, job, best, *others)
    response = master.client.post(
        f"/api/v1/runs/{job.run_id}/reports",
        json={"reports": [], "waiting": "waits for disk space in /disk (checkpoint of batch 40)"},
        headers={"Authorization": f"Bearer {job.token}"},
    )
    assert response.status_code == 200
    until_lying(master, job, best, others[-1])


def test_a_checkpoint_that_the_program_of_an_experiment_loads_stays(master: Master) -> None:
    first, job, worker = begun(master, save_trial_latest=0, save_trial_best=0)
    source = saved(worker, 10)
    BlobStore(job.blobs).put(sha256(b"{}").hexdigest(), b"{}")
    site = CallSite(kind="fit", cell=0, line=1, column=0)
    history = {"history": sha256(b"{}").hexdigest(), "size": 2}
    earlier = EarlierTraining(site=site, experiment_id=first["id"], checkpoint=source, batch=10, **history)
    cells = (Cell(number=1, cell_id=None, source="fit()"),)
    program = manifest().program.model_copy(update={"cells": cells, "earlier": (earlier,)})
    bundle = manifest().model_copy(update={"program": program})
    sent = master.client.post("/api/v1/bundles", json=bundle.model_dump(mode="json"))
    assert sent.status_code == 200, sent.text
    master.create(bundle_id=bundle.id)
    assert master.world.wait_for_jobs(2)[-1].earlier[source].manifest.uuid == source
    last = [saved(worker, batch) for batch in (20, 30, 40)]
    until_lying(master, job, source, *last[-2:])
    worker.train(1, 100)
    worker.exit(batch=100)
    master.until_state(first["id"], "COMPLETED")
    until_lying(master, job, source)

    other = earlier.model_copy(update={"checkpoint": last[0]})
    bundle = manifest().model_copy(update={"program": program.model_copy(update={"earlier": (other,)})})
    master.client.post("/api/v1/bundles", json=bundle.model_dump(mode="json"))
    body = {"protocol": PROTOCOL, "config": configuration(), "bundle_id": bundle.id}
    refused = master.client.post("/api/v1/experiments", json=body)
    assert refused.status_code == 404
    assert "from which this training goes on, has been deleted" in refused.text


def test_whoever_hears_of_the_end_is_told_before_which_checkpoints_are_gone(master: Master) -> None:
    experiment, job, worker = begun(master)
    best, *others = [saved(worker, batch, loss) for batch, loss in ((10, 0.1), (20, 0.4), (30, 0.3), (40, 0.5))]
    until_lying(master, job, best, *others[-2:])
    worker.train(1, 100)
    worker.exit(batch=100)
    path = f"/experiments/{experiment['id']}"
    master.until(path, lambda found: found["state"] == "COMPLETED")
    existing = [one["uuid"] for one in master.get(f"{path}/checkpoints") if one["state"] == "COMPLETED"]
    assert existing == [best, others[-1]]
    with master.service.database.read() as connection:
        owner = experiments.owner_of(connection, experiment["id"])
        told = events.after(connection, owner, 0, experiment_id=experiment["id"])
    ended = next(event.id for event in told if event.type == "experiment" and event.data["state"] == "COMPLETED")
    deleted = {event.data["uuid"]: event for event in told if event.type == "checkpoint" and is_deleted(event)}
    assert set(deleted) == set(others[:-1])
    assert all(event.id < ended and event.trial_id == job.trial_id for event in deleted.values())


def is_deleted(event: Event) -> bool:
    return event.data["state"] == "DELETED"


def test_one_that_the_master_could_not_delete_while_the_trial_trained_goes_at_the_end(master: Master) -> None:
    experiment, job, worker = begun(master)
    first, *last = [saved(worker, batch) for batch in (10, 20, 30)]
    until_lying(master, job, *last)
    with master.service.database.read() as connection:
        assert checkpoints.get(connection, first).state == "DELETED"
    (Path(job.checkpoints) / first).mkdir()  # what a master leaves that ends between the note and the deletion
    worker.train(1, 100)
    worker.exit(batch=100)
    master.until_state(experiment["id"], "COMPLETED")
    until_lying(master, job, last[-1])
