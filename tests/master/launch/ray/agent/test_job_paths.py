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
