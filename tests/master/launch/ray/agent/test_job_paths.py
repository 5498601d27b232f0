"""Which paths of a job are others on another machine, and which are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_parts import check_job, trial_job

from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.master.launch.ray.agent.job_paths import JOB, MasterPlaces, job_here
from det_native.schema.job import CheckJob, TrialJob, WarmStartSource
from det_native.schema.manifests import CheckpointManifest

HOME = Path("/home/of/master")
FOLDERS = AgentFolders(Path("/agents/a"))
MANIFEST = CheckpointManifest(
    uuid="00000000-0000-4000-8000-000000000001",
    framework="torch",
    framework_version="2",
    det_version="0",
    batch=8,
    experiment_id=1,
    trial_id=1,
    run_id="r0",
    bundle_id="b",
    hparams={},
    created="",
)


def test_paths_of_a_trial_are_those_of_the_agent() -> None:
    job = trial_job(HOME, "r1", "say", rank=1, machines=2).model_copy(
        update={
            "warm_start": WarmStartSource(checkpoints=str(HOME / "checkpoints"), manifest=MANIFEST),
            "earlier": {MANIFEST.uuid: WarmStartSource(checkpoints="s3://bucket/a", manifest=MANIFEST)},
        }
    )
    here = job_here(job, "r1", 1, FOLDERS, "unix:/agents/a/master.sock")
    assert isinstance(here, TrialJob)
    assert here.directory == "/agents/a/runs/r1/rank-1"
    assert (here.blobs, here.outputs, here.data) == ("/agents/cache/blobs", "", "/agents/cache/data")
    assert here.checkpoints == "/agents/a/checkpoints"
    assert here.gang is not None
    assert here.gang.rendezvous == "/agents/a/runs/r1/rendezvous"
    assert (here.master_url, here.home) == ("unix:/agents/a/master.sock", "")
    assert here.warm_start is not None
    assert here.warm_start.checkpoints == "/agents/cache/checkpoints"
    assert here.earlier[MANIFEST.uuid].checkpoints == "s3://bucket/a"
    assert str(HOME) not in here.model_dump_json()


@pytest.mark.parametrize("address", ["s3://bucket/folder", "file:///shared", "/shared/checkpoints"])
def test_storages_that_every_machine_reaches_stay(address: str) -> None:
    job = trial_job(HOME, "r1", "say").model_copy(update={"checkpoints": address})
    here = job_here(job, "r1", 0, FOLDERS, "unix:/agents/a/master.sock")
    assert isinstance(here, TrialJob)
    assert here.checkpoints == address
    assert not MasterPlaces.of(job).has(address)


def test_a_check_has_its_paths_too() -> None:
    here = job_here(JOB.validate_json(check_job(HOME, "c1").model_dump_json()), "c1", 0, FOLDERS, "unix:/x")
    assert isinstance(here, CheckJob)
    assert (here.directory, here.blobs) == ("/agents/a/runs/c1", "/agents/cache/blobs")
    assert str(HOME) not in here.model_dump_json()


def test_without_a_home_nothing_is_the_masters_own() -> None:
    job = trial_job(HOME, "r1", "say").model_copy(update={"home": "", "blobs": "", "checkpoints": ""})
    assert not MasterPlaces.of(job).has("")


S3 = "s3://bucket/all"


@pytest.mark.parametrize("storage", [S3, "file:///shared/all", "/shared/all"])
def test_with_another_storage_only_what_is_in_the_home_from_before_has_another_path(storage: str) -> None:
    secret = {"key": "k", "secret": "s"}
    there = {"outputs": f"{storage}/blobs", "checkpoints": f"{storage}/checkpoints"}
    options = {"storage_options": secret, "checkpoint_options": secret}
    places = {"cache": str(HOME / "cache"), **options, **there}
    job = trial_job(HOME, "r1", "say").model_copy(
        update={
            **places,
            "warm_start": WarmStartSource(checkpoints=str(HOME / "checkpoints"), manifest=MANIFEST),
            "earlier": {MANIFEST.uuid: WarmStartSource(checkpoints=f"{storage}/checkpoints", manifest=MANIFEST)},
        }
    )
    here = job_here(job, "r1", 0, FOLDERS, "unix:/x")
    assert isinstance(here, TrialJob)
    assert (here.blobs, here.data, here.cache) == ("/agents/cache/blobs", "/agents/cache/data", "/agents/cache")
    assert (here.outputs, here.checkpoints) == (there["outputs"], there["checkpoints"])
    assert (here.storage_options, here.checkpoint_options) == (secret, secret)
    assert here.warm_start is not None
    assert here.warm_start.checkpoints == "/agents/cache/checkpoints"
    assert here.earlier[MANIFEST.uuid].checkpoints == f"{storage}/checkpoints"
    assert MasterPlaces.of(job) == MasterPlaces(str(HOME), takes_files=False)

    new = job.model_copy(update={"blobs": f"{storage}/blobs", "data": f"{storage}/data"})
    here = job_here(new, "r1", 0, FOLDERS, "unix:/x")
    assert isinstance(here, TrialJob)
    assert (here.blobs, here.outputs, here.data) == (f"{storage}/blobs", f"{storage}/blobs", f"{storage}/data")

    older = job.model_copy(update={"checkpoints": str(HOME / "checkpoints")})
    here = job_here(older, "r1", 0, FOLDERS, "unix:/x")
    assert isinstance(here, TrialJob)
    assert here.checkpoints == "/agents/a/checkpoints"
    assert MasterPlaces.of(older).has(older.checkpoints)


@pytest.mark.parametrize("storage", [S3, "/shared/all"])
def test_a_check_reads_there_what_lies_there(storage: str) -> None:
    cache = {"cache": str(HOME / "cache")}
    mixed = check_job(HOME, "c1").model_copy(update={"data": f"{storage}/data", **cache})
    here = job_here(mixed, "c1", 0, FOLDERS, "unix:/x")
    assert (here.blobs, here.data) == ("/agents/cache/blobs", f"{storage}/data")
    away = check_job(HOME, "c1").model_copy(update={"blobs": f"{storage}/blobs", "data": str(HOME / "data"), **cache})
    here = job_here(away, "c1", 0, FOLDERS, "unix:/x")
    assert (here.blobs, here.data, here.cache) == (f"{storage}/blobs", "/agents/cache/data", "/agents/cache")


def test_every_field_of_a_job_that_names_a_place_is_known_here() -> None:
    """Whoever adds a place to a job has to say where it is on another machine."""
    fields = {name for kind in (TrialJob, CheckJob) for name in kind.model_fields}
    assert fields == CARRIED | {"directory", "blobs", "outputs", "data", "cache", "checkpoints", "warm_start"} | {
        "earlier",
        "marks",
        "master_url",
        "home",
        "gang",
    }


CARRIED = {
    *("kind", "protocol", "storage_options", "bundle", "bundle_id", "checkpoint_options", "resume", "manifests"),
    *("token", "run_id", "experiment_id", "trial_id", "config", "hparams", "trial_seed", "stage", "test"),
    *("devices", "threads", "variables", "slots", "attached"),
}
