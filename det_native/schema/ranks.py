"""The jobs of the processes that run one trial together: who is who, on which device, in which folder. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from det_native.schema.job import CheckJob, Gang, TrialJob
from det_native.schema.roles import role_title, roles_of

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
#: Within so many seconds, what a process has written there is surely on the other machines, if these can be reached.
SHARED_WITHIN = 1.0

Job = TypeVar("Job", TrialJob, CheckJob, TrialJob | CheckJob)


def rank_folder(run_folder: Path, rank: int) -> Path:
    """Return the folder of one process of a run: the first one has the run's own."""
    return run_folder if rank == 0 else run_folder / f"rank-{rank}"


def is_shared(name: str) -> bool:
    """Return whether a file of a run, by its path in the run's folder, is one of `SHARED_FILES`.

    Files that are being written have names that begin with a dot, until they are complete.
    """
    parts = name.split("/")
    return not parts[-1].startswith(".") and any(
        len(parts) == pattern.count("/") + 1 and all(map(fnmatchcase, parts, pattern.split("/")))
        for pattern in SHARED_FILES
    )


@dataclass(frozen=True)
class Place:
    """Where one process of a run is to be.

    Attributes
    ----------
    node : str
        The machine.
    address : str
        IP address at which the other machines reach that one.
    devices : list of str
        Value of ``CUDA_VISIBLE_DEVICES`` there; empty on CPU slots.
    threads : int
        How many it may use.
    variables : dict
        Environment variables of the machine, where the job has none of that name.
    slots : int
        Slots of the process.
    """

    node: str
    address: str
    devices: list[str] = field(default_factory=list)
    threads: int = 1
    variables: dict[str, str] = field(default_factory=dict)
    slots: int = 1


def placed_rank_jobs(job: Job, places: Sequence[Place]) -> list[Job]:
    """Return the job of each process of a run, by rank, on one machine or several; one place for each.

    The first rank's machine is the first of the machines. Where processes have roles, those without a slot may be on
    any of the machines; otherwise the ranks of a machine are neighbours.

    Raises
    ------
    ValueError
        If the places contradict that, or a machine's address is missing where there are several.
    """
    if isinstance(job, CheckJob):
        return [job]
    nodes = list(dict.fromkeys(place.node for place in places))
    _check(job, places, nodes)
    if len(places) == 1:
        return [job.model_copy(update={**_facts(job, places[0]), "slots": [places[0].slots]})]
    folder = Path(job.directory)
    machines = [nodes.index(place.node) for place in places]
    sizes = [machines.count(number) for number in range(len(nodes))]
    slots = [sum(place.slots for place in places if place.node == node) for node in nodes]
    return [
        job.model_copy(
            update={
                "directory": str(rank_folder(folder, rank)),
                "gang": Gang(
                    rank=rank,
                    size=len(places),
                    local_rank=machines[:rank].count(machine),
                    local_size=sizes[machine],
                    cross_rank=machine,
                    cross_size=len(nodes),
                    local_sizes=sizes,
                    rendezvous=str(folder / RENDEZVOUS_NAME),
                    role=role_title(job.config, rank),
                    address=place.address if len(nodes) > 1 else "",
                ),
                **_facts(job, place),
                "slots": slots,
            }
        )
        for rank, (place, machine) in enumerate(zip(places, machines, strict=True))
    ]


def _facts(job: TrialJob, place: Place) -> dict[str, object]:
    return {"devices": place.devices, "threads": place.threads, "variables": {**place.variables, **job.variables}}


def _check(job: TrialJob, places: Sequence[Place], nodes: Sequence[str]) -> None:
    if not places:
        raise ValueError("A run has one process at least; no place is given.")
    with_slots = [place.node for place, role in zip(places, roles_of(job.config), strict=False) if role.has_slot]
    order = with_slots or [place.node for place in places]
    changes = sum(before != after for before, after in pairwise(order))
    if changes >= len(set(order)):
        raise ValueError(f"The ranks of a machine are not neighbours: {', '.join(order)}.")
    for node in nodes if len(nodes) > 1 else ():
        addresses = {place.address for place in places if place.node == node}
        if len(addresses) > 1 or "" in addresses:
            raise ValueError(f"Machine {node} needs one address; given are: {', '.join(sorted(addresses)) or 'none'}.")


def rank_jobs(job: Job, size: int) -> list[Job]:
    """Return the job of each of `size` processes on this machine, by rank; of one alone it is `job` itself.

    Each gets one of the devices, and its share of the threads.
    """
    if size == 1 or isinstance(job, CheckJob):
        return [job]
    threads = max(1, job.threads // size) if job.threads else 0
    return placed_rank_jobs(job, [Place("", "", job.devices[rank : rank + 1], threads) for rank in range(size)])
