"""One process of a trial on several slots that uses Horovod, or would: writes down what it meets, and what it leaves.

Started as ``python horovod_program.py <specification.json> <rank>``; see `test_horovod_group`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
from det_harness.ranks.group import joined

from det_native.errors import DetError
from det_native.schema.job import Gang


def variables() -> dict[str, str]:
    """Return the environment variables of Horovod and gloo."""
    return {name: value for name, value in os.environ.items() if name.startswith(("HOROVOD_", "GLOO_"))}


def surroundings() -> dict[str, Any]:
    """Return the variables, threads of Python and addresses on which this process listens."""
    return {
        "variables": variables(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "listening": [each.laddr.ip for each in psutil.Process().net_connections() if each.status == "LISTEN"],
    }


def run(told: dict[str, Any], folder: Path, rank: int) -> dict[str, Any]:
    """Join the other processes with Horovod, add something up, and part."""
    import horovod.torch as horovod
    import torch

    found: dict[str, Any] = {"before": surroundings()}
    original = horovod.init

    def watched() -> None:
        found["at_init"] = surroundings()
        original()

    horovod.init = watched
    gang = Gang(rank=rank, size=2, local_rank=rank, local_size=2, rendezvous=str(folder / "meeting"))
    with joined(gang, config=told["config"], deadline=60.0):
        found["within"] = surroundings()
        found["place"] = [horovod.rank(), horovod.size(), horovod.local_rank(), horovod.cross_size()]
        found["sum"] = horovod.allreduce(torch.tensor([1.0 + rank]), op=horovod.Sum, name="sum").tolist()
    found["after"] = surroundings()
    found["ended"] = not horovod.is_initialized()
    return found


def missed(told: dict[str, Any], folder: Path, rank: int) -> dict[str, Any]:
    """Do the same where Horovod is not installed; return the error."""
    sys.modules["horovod"] = None  # type: ignore[assignment]  # which is how Python is told that there is none
    gang = Gang(rank=rank, size=2, local_rank=rank, local_size=2, rendezvous=str(folder / "meeting"))
    try:
        with joined(gang, config=told["config"], deadline=60.0):
            return {}
    except DetError as error:
        return {"error": type(error).__name__, "text": str(error), "left": surroundings()}


def main(specification: Path, rank: int) -> None:
    """Write what was found beside the specification."""
    told = json.loads(specification.read_text())
    found = (missed if told["missing"] else run)(told, specification.parent, rank)
    (specification.parent / f"found.{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
