"""What an agent knows of the runs that have processes on its machine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from det_native.master.launch.ray.agent.job_paths import Job, MasterPlaces
from det_native.schema.job import TrialJob


class Phase(Enum):
    """Where a process is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"


@dataclass
class RankHere:
    """One process of a run.

    Attributes
    ----------
    job : TrialJob or CheckJob
        As it runs here.
    start : asyncio.Task
        Its start, which gives what ``NodeAgent.start`` returns.
    killed : bool
        Whether it was to be ended, before it had begun or while what it has left is brought to the master.
    output, punched : int
        Bytes of its output that are at the master, and those of them whose disk space was given back here.
    """

    rank: int
    job: Job
    start: asyncio.Task[dict[str, Any]] | None = None
    phase: Phase = Phase.STARTING
    killed: bool = False
    output: int = 0
    punched: int = 0


@dataclass
class RunHere:
    """A run with processes here.

    Attributes
    ----------
    token : str
        Of the run.
    shares : bool
        Whether it has processes on other machines.
    trial : tuple of int or None
        Experiment and trial, of which it writes event files; None for a check.
    needs : set of str
        Checkpoints that it continues from.
    reporting : asyncio.Lock
        Held while reports are passed on: they come in order.
    mirroring : asyncio.Lock
        Held while its files are looked at.
    prepared : dict of int to asyncio.Task
        Reports by their number that name something, on their way: what they name is brought to the master first.
    uploaded : list of str
        Its own checkpoints that the master has, oldest first.
    shared : dict of str to bytes
        Hashes of the files that the processes of the run share, as they were sent or have come last.
    events : dict of str to int
        Bytes of event files that are at the master.
    untaken : str
        Why the master does not take now what the run reports, if that is not for want of room there.
    gives_up : bool
        Whether what it does not take is left out of the reports, with a warning in its place.
    """

    run_id: str
    places: MasterPlaces
    token: str = ""
    shares: bool = False
    trial: tuple[int, int] | None = None
    ranks: dict[int, RankHere] = field(default_factory=dict)
    needs: set[str] = field(default_factory=set)
    reporting: asyncio.Lock = field(default_factory=asyncio.Lock)
    mirroring: asyncio.Lock = field(default_factory=asyncio.Lock)
    prepared: dict[int, asyncio.Task[dict[str, Any]]] = field(default_factory=dict)
    uploaded: list[str] = field(default_factory=list)
    shared: dict[str, bytes] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    untaken: str = ""
    gives_up: bool = False
    mirror: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, run_id: str, job: Job) -> RunHere:
        """Return a run without processes yet; `job` is as the master has made it."""
        run = cls(run_id, MasterPlaces.of(job))
        if isinstance(job, TrialJob):
            run.token = job.token
            run.shares = job.gang is not None and job.gang.cross_size > 1
            run.trial = (job.experiment_id, job.trial_id)
        return run

    def need(self, job: Job) -> None:
        """Note which checkpoints a process continues from."""
        if isinstance(job, TrialJob) and job.resume is not None:
            self.needs |= {job.resume.uuid, *job.manifests}
