"""One process of a trial on several slots whose loop over ``context.train()`` goes another way on some of them.

Started as ``python loop_program.py <specification.json> <rank>``; see `rank_rig`. A case names one of the functions
below, and what it is given.
"""

from __future__ import annotations

import json
import resource
import sys
import traceback
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[1] / "experimental"))

from det_harness.ranks.group import joined
from loop_run import LoopRun, ProgramStop

from det_native.errors import DetError
from det_native.schema.job import Gang


def leaves_after(run: LoopRun, batches: list[int]) -> None:
    """Break at the end of the body in the batch that is this rank's."""
    own = batches[run.communicator.rank]
    for batch in run.batches():
        run.step(batch)
        if run.context.batch_idx + 1 == own:
            break


def leaves_before(run: LoopRun, batches: list[int], report: bool = False) -> None:
    """Break at the beginning of the body."""
    own = batches[run.communicator.rank]
    for batch in run.batches():
        if report:
            run.context.report(loss=run.loss(batch))
        if run.context.batch_idx + 1 == own:
            break
        run.step(batch, report=not report)


def sliced(run: LoopRun, batches: list[int]) -> None:
    for batch in islice(run.batches(), batches[run.communicator.rank]):
        run.step(batch)


def named(run: LoopRun, batches: list[int]) -> None:
    """The batches have a name, and outlive their loop."""
    own, given = batches[run.communicator.rank], run.batches()
    try:
        for batch in given:
            run.step(batch)
            if run.context.batch_idx + 1 == own:
                break
    finally:
        run.controller.on_purpose = True
        given.close()


def passes(run: LoopRun, batches: list[int]) -> None:
    """Go on to the next batch without training on the one that is this rank's."""
    own = batches[run.communicator.rank]
    for batch in run.batches():
        if run.context.batch_idx + 1 == own:
            continue
        run.step(batch)


def steps_by_hand(run: LoopRun) -> None:
    """Step as without det_native."""
    for batch in run.batches():
        _step_by_hand(run, batch)


def leaves_before_by_hand(run: LoopRun, batches: list[int]) -> None:
    """Break at the beginning of the body; step as without det_native."""
    for batch in run.batches():
        if run.context.batch_idx + 1 == batches[run.communicator.rank]:
            break
        _step_by_hand(run, batch)


def leaves_after_by_hand(run: LoopRun, batches: list[int]) -> None:
    """Break at the end of the body; step as without det_native."""
    for batch in run.batches():
        _step_by_hand(run, batch)
        if run.context.batch_idx + 1 == batches[run.communicator.rank]:
            break


def _step_by_hand(run: LoopRun, batch: Any) -> None:
    run.optimizer.zero_grad()
    loss = run.loss(batch)
    loss.backward()
    run.optimizer.step()
    run.context.report(loss=loss)


def reports_on_one(run: LoopRun, rank: int, every: int) -> None:
    """Report on one rank only."""
    for batch in run.batches():
        here = run.communicator.rank == rank and run.context.batch_idx % every == 0
        run.step(batch, report=here)


def finds_the_disk_full(run: LoopRun, rank: int) -> None:
    """On one rank no file takes more than a few bytes, from the third batch on."""
    for batch in run.batches():
        run.step(batch)
        if run.context.batch_idx == 2 and run.communicator.rank == rank:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, resource.RLIM_INFINITY))


def goes_through(run: LoopRun) -> None:
    run.train()


WAYS: dict[str, Callable[..., None]] = {
    one.__name__: one
    for one in (
        leaves_after,
        leaves_before,
        sliced,
        named,
        passes,
        steps_by_hand,
        leaves_before_by_hand,
        leaves_after_by_hand,
        reports_on_one,
        finds_the_disk_full,
        goes_through,
    )
}


def train(folder: Path, communicator: Any, case: dict[str, Any]) -> dict[str, Any]:
    """Run one case, as a worker's program would."""
    run = LoopRun(folder, communicator, **case.get("made", {}))
    stopped = False
    try:
        WAYS[case["way"]](run, **case.get("given", {}))
    except ProgramStop:
        stopped = True
    except DetError as error:
        if case.get("fatal"):
            raise
        return {"error": type(error).__name__, "text": str(error)}
    return {**run.result(), "stopped_in_body": stopped}


def main(specification: Path, rank: int) -> None:
    """Run all cases in one process group."""
    told = json.loads(specification.read_text())
    folder, size = specification.parent, told["size"]
    gang = Gang(rank=rank, size=size, local_rank=rank, local_size=size, rendezvous=str(folder / "meeting"))
    with joined(gang, deadline=120.0) as communicator:
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
