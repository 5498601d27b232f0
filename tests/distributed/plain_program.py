"""One process of a trial on two slots that trains as torch alone does; see `plain_loops`.

Started as ``python plain_program.py <specification.json> <rank>``; see `rank_rig`.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[1] / "experimental"))

import plain_loops
from det_harness.ranks.group import joined

from det_native.errors import DetError
from det_native.schema.job import Gang


def train(folder: Path, communicator: Any, case: dict[str, Any]) -> dict[str, Any]:
    """Run one case."""
    if "batch" not in case:
        return plain_loops.trained(folder, case["loop"], communicator)
    run = plain_loops.PlainRun(folder, communicator, epochs=1)
    plain_loops.PARTING[case["loop"]](run, case["batch"])
    return run.result()


def main(specification: Path, rank: int) -> None:
    """Run all cases in one process group."""
    told = json.loads(specification.read_text())
    folder, size = specification.parent, told["size"]
    gang = Gang(rank=rank, size=size, local_rank=rank, local_size=size, rendezvous=str(folder / "meeting"))
    backend = {"distributed": {"backend": told["backend"]}}
    with joined(gang, config=backend, deadline=told["deadline"], long_seconds=told["long_seconds"]) as communicator:
        for name, case in told["cases"].items():
            torch.save(train(folder / name, communicator, case), folder / f"{name}.{rank}.pt")


if __name__ == "__main__":
    own = int(sys.argv[2])
    try:
        main(Path(sys.argv[1]), own)
    except DetError as error:
        traceback.print_exc()
        (Path(sys.argv[1]).parent / f"error.{own}.json").write_text(json.dumps([type(error).__name__, str(error)]))
        sys.exit(3)
