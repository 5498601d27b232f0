"""The jobs of the processes that run one trial together: who is who, on which device, in which folder. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from det_native.schema.job import CheckJob, Gang, TrialJob
from det_native.schema.roles import role_title

RENDEZVOUS_NAME = "rendezvous"
#: Files in the folder of a run, as patterns of ``fnmatch``, by which its processes find each other and tell each other
#: how they are; each is written by one process. On several machines the launcher copies them to the others.
SHARED_FILES = (
    RENDEZVOUS_NAME,
    f"{RENDEZVOUS_NAME}.failed",
    "roles/*",
    "exit.json",
    "system.json",
    "rank-*/exit.json",
    "rank-*/system.json",
)

Job = TypeVar("Job", TrialJob, CheckJob, TrialJob | CheckJob)


def rank_folder(run_folder: Path, rank: int) -> Path:
    """Return the folder of one process of a run: the first one has the run's own."""
    return run_folder if rank == 0 else run_folder / f"rank-{rank}"


def rank_jobs(job: Job, size: int) -> list[Job]:
    """Return the job of each of `size` processes on this machine, by rank; of one alone it is `job` itself.

    Each gets one of the devices, and its share of the threads.
    """
    if size == 1 or isinstance(job, CheckJob):
        return [job]
    folder = Path(job.directory)
    rendezvous = str(folder / RENDEZVOUS_NAME)
    return [
        job.model_copy(
            update={
                "directory": str(rank_folder(folder, rank)),
                "gang": Gang(
                    rank=rank,
                    size=size,
                    local_rank=rank,
                    local_size=size,
                    rendezvous=rendezvous,
                    role=role_title(job.config, rank),
                ),
                "devices": job.devices[rank : rank + 1],
                "threads": max(1, job.threads // size) if job.threads else 0,
            }
        )
        for rank in range(size)
    ]
