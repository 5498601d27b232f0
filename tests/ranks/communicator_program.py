"""One rank of several: calls the verbs of a communicator, and writes down what came of them.

Started as ``python communicator_program.py <implementation> <folder> <rank> <size> <what>``; see
`test_communicator_contract`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_harness.ranks.brought_files import PIECE, bring
from det_harness.ranks.communicator import Communicator
from det_harness.ranks.group import joined
from det_harness.ranks.ring_meeting import joined_in_ring
from two_machines import enter

from det_native.errors import RankLostError
from det_native.schema.job import Gang

SECONDS = 60.0
FRAMEWORKS = ("torch", "tensorflow", "horovod")


@contextmanager
def connected(implementation: str, gang: Gang, deadline: float) -> Iterator[Communicator]:
    """Join the others by an implementation."""
    if implementation == "torch":
        with joined(gang, deadline=deadline) as communicator:
            yield communicator
    else:
        with joined_in_ring(gang, deadline=deadline) as communicator:
            yield communicator


def verbs(communicator: Communicator) -> dict[str, Any]:
    """Call every verb."""
    rank = communicator.rank
    found: dict[str, Any] = {"place": [rank, communicator.size]}
    found["gathered"] = communicator.all_gather_object(rank)
    found["lengths"] = [len(each) for each in communicator.all_gather_object("x" * (rank * 100_000))]
    parts = communicator.gather_object("y" * (rank * 100_000))
    found["on the first"] = communicator.broadcast_object(parts and [len(part) for part in parts])
    found["function"] = communicator.all_gather_object(lambda: rank)[-1]()
    found["nothing"] = communicator.all_gather_object(None)
    found["sent"] = communicator.broadcast_object(["of rank", rank] if rank == 0 else "never sent")
    found["any"] = communicator.all_reduce_any(rank == 0, rank == 1, False)()
    answer = communicator.all_reduce_any(rank == 1)  # on its way, while others are made
    found["meanwhile"] = communicator.all_gather_object(rank)
    found["late answer"] = answer()
    found["many"] = sum(communicator.broadcast_object(number) for number in range(150))
    return found


def barrier(communicator: Communicator, folder: Path) -> dict[str, Any]:
    """Wait for a rank that comes late, and look for what it has written by then."""
    arrived = folder / "arrived"
    communicator.barrier()
    if communicator.rank == 1:
        time.sleep(0.5)  # who does not wait comes by before that
        arrived.touch()
    communicator.barrier()
    return {"all arrived": arrived.exists()}


def groups(communicator: Communicator) -> dict[str, Any]:
    """Let another thread talk meanwhile."""
    other, found = communicator.new_group(), []

    def talk() -> None:
        found.extend(other.all_gather_object(number) for number in range(20))

    thread = threading.Thread(target=talk)
    thread.start()
    own = [communicator.all_gather_object(-number) for number in range(20)]
    thread.join()
    return {"own": own, "other": found}


def losing(communicator: Communicator) -> dict[str, Any]:
    """Lose a rank, and say how that is told."""
    communicator.barrier()
    if communicator.rank == 1:
        os._exit(9)
    try:
        communicator.all_gather_object(1)
    except RankLostError as error:
        return {"lost": str(error)}
    return {}


def files(communicator: Communicator, folder: Path) -> dict[str, Any]:
    """Bring files of the last rank to the first, in several pieces."""
    sent = None
    if communicator.rank == communicator.size - 1:
        sent = folder / "sent"
        (sent / "inner").mkdir(parents=True)
        (sent / "large").write_bytes(bytes(range(256)) * (PIECE // 100))
        (sent / "inner" / "empty").write_bytes(b"")
    target = folder / "brought"
    bring(communicator, sent, target)
    there = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    return {
        "sizes": {name: len(content) for name, content in there.items()},
        "equal": there["large"] == bytes(range(256)) * (PIECE // 100),
    }


CALLS = {"verbs": verbs, "groups": groups, "losing": losing}
IN_FOLDER = {"barrier": barrier, "files": files}


def main(implementation: str, folder: Path, rank: int, size: int, what: str) -> None:
    """Write what was found, and which frameworks were imported for it."""
    gang = Gang(rank=rank, size=size, local_rank=rank, local_size=size, rendezvous=str(folder / "meeting"))
    machines = folder / "machines.json"
    if machines.exists():
        told = json.loads(machines.read_text())
        gang = Gang.model_validate(told["gangs"][rank])
        enter(*told["machines"][rank])
    # Nobody waits for so long: that a rank is lost is told by its end, not by what has not come from it in time.
    deadline = 3600.0 if what == "losing" else SECONDS
    with connected(implementation, gang, deadline) as communicator:
        found = IN_FOLDER[what](communicator, folder) if what in IN_FOLDER else CALLS[what](communicator)
        found["imported"] = [name for name in FRAMEWORKS if name in sys.modules]
        (folder / f"found.{rank}.json").write_text(json.dumps(found))
        if what == "losing":
            os._exit(0)  # nobody is left to part from


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
