"""A job of the master's machine as it is on another one: the same with other paths. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.schema.job import CheckJob, TrialJob, WarmStartSource

Job = TrialJob | CheckJob
JOB: TypeAdapter[Job] = TypeAdapter(Job)


@dataclass(frozen=True)
class MasterPlaces:
    """Where the master keeps what a job names.

    Attributes
    ----------
    home : str
        The master's; empty if the job names none.
    takes_files : bool
        Whether what the code of a trial writes has to be brought to it: where it has another storage, workers write
        there.
    """

    home: str = ""
    takes_files: bool = True

    @classmethod
    def of(cls, job: Job) -> MasterPlaces:
        """Take them from a job."""
        home = job.home if isinstance(job, TrialJob) else ""
        inside = job.cache or (job.blobs if "://" not in job.blobs else "")
        if not home and inside:
            home = str(Path(inside).parent)
        places = cls(home)
        outputs = (job.outputs if isinstance(job, TrialJob) else "") or job.blobs
        return cls(home, takes_files=places.are_own("blobs", outputs))

    @property
    def checkpoints(self) -> str:
        """The folder of checkpoints in its home."""
        return str(Path(self.home) / "checkpoints") if self.home else ""

    def are_own(self, name: str, address: str) -> bool:
        """Whether blobs, data or checkpoints lie in the home, so that they have to be brought to other machines.

        A storage elsewhere is one that every machine reaches, be it a folder that they share.
        """
        return bool(self.home) and address == str(Path(self.home) / name)

    def has(self, checkpoints: str) -> bool:
        """Whether these checkpoints lie in the home."""
        return self.are_own("checkpoints", checkpoints)


def job_here(job: Job, run_id: str, rank: int, folders: AgentFolders, master_url: str) -> Job:
    """Return a job with the paths that it has on this machine.

    Parameters
    ----------
    job : TrialJob or CheckJob
        As the master has made it.
    master_url : str
        Address of the socket that is the master here.
    """
    places = MasterPlaces.of(job)
    changes: dict[str, Any] = {
        "directory": str(folders.rank(run_id, rank)),
        "cache": str(folders.cache),
    }
    if places.are_own("blobs", job.blobs):
        changes["blobs"] = str(folders.blobs)
    if places.are_own("data", job.data):
        changes["data"] = str(folders.data)
    if isinstance(job, CheckJob):
        return job.model_copy(update=changes)
    changes["earlier"] = {uuid: _source_here(source, places, folders) for uuid, source in job.earlier.items()}
    if places.are_own("blobs", job.outputs):
        changes["outputs"] = str(folders.blobs)
    if places.has(job.checkpoints):
        changes["checkpoints"] = str(folders.checkpoints)
    if job.warm_start is not None:
        changes["warm_start"] = _source_here(job.warm_start, places, folders)
    if job.gang is not None:
        name = Path(job.gang.rendezvous).name
        changes["gang"] = job.gang.model_copy(update={"rendezvous": str(folders.run(run_id) / name)})
    changes["master_url"] = master_url
    return job.model_copy(update={**changes, "home": ""})


def _source_here(source: WarmStartSource, places: MasterPlaces, folders: AgentFolders) -> WarmStartSource:
    if not places.has(source.checkpoints):
        return source
    return source.model_copy(update={"checkpoints": str(folders.other_checkpoints)})
