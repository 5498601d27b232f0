"""One process of a trial on two slots with loops over ``context.epochs()``.

Started as ``python epochs_program.py <specification.json> <rank>``; see `rank_rig`.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[1] / "pytorch"))

from det_harness.ranks.group import joined
from epochs_run import EpochsRun, data
from torch.utils.data import DataLoader

from det_native.errors import DetError
from det_native.schema.job import Gang


def loader(run: EpochsRun, loader: Any = None) -> tuple[Any, Any, Any]:
    """Return what a loop of one optimizer has, wrapped."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    batches = loader or DataLoader(data(), batch_size=8, shuffle=True)
    run.model, run.optimizer, wrapped = run.context.wrap(net, torch.optim.Adam(net.parameters(), lr=0.05), batches)
    return run.model, run.optimizer, wrapped


def epoch(run: EpochsRun, batches: Any) -> tuple[float, int]:
    """Train for one pass; return the sum of the losses of its records, and how many they are."""
    total, records = 0.0, 0
    for x, y in batches:
        run.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(run.model(x), y)
        loss.backward()
        run.optimizer.step()
        total, records = total + loss.item() * len(x), records + len(x)
    return total, records


def shuffled(run: EpochsRun) -> None:
    """Sums over the records, divided by the dataset's length as tutorials do; an evaluation over everything."""
    _, _, batches = loader(run)
    held_out = run.context.wrap(DataLoader(data(), batch_size=16))
    for _ in run.context.epochs(3):
        total, records = epoch(run, batches)
        run.sizes.append((records, len(batches.dataset)))
        run.model.eval()
        with torch.no_grad():
            seen = sum(len(x) for x, _ in held_out)
            value = sum(torch.nn.functional.mse_loss(run.model(x), y).item() * len(x) for x, y in held_out)
        run.model.train()
        run.sizes.append((seen, len(held_out.dataset)))
        run.context.report(loss=total / len(batches.dataset), held_out=value / len(held_out.dataset))


def listed(run: EpochsRun) -> None:
    """Batches of a list are cut along their first dimension."""
    x, y = data().tensors
    _, _, batches = loader(run, [{"x": a, "y": b} for a, b in zip(x.split(10), y.split(10), strict=True)])
    for _ in run.context.epochs(3):
        run.context.report(loss=epoch(run, [(batch["x"], batch["y"]) for batch in batches])[0])


def left(run: EpochsRun) -> None:
    """One slot leaves the loop in its second epoch, after it has trained: all end there."""
    _, _, batches = loader(run)
    for number in run.context.epochs(5):
        epoch(run, batches)
        run.context.report(loss=number)
        if number == 1 and run.communicator.rank == run.communicator.size - 1:
            break


LOOPS = {one.__name__: one for one in (shuffled, listed, left)}


def trained(folder: Path, name: str, communicator: Any = None) -> dict[str, Any]:
    """Run a loop; return what came of it."""
    run = EpochsRun(folder, communicator=communicator, epochs=5 if name == "left" else 3)
    run.sizes = []
    run.run(LOOPS[name])
    return {
        "models": [dict(run.model.state_dict())],
        "sizes": run.sizes,
        "batches": run.outcome.batches,
        "rows": [(row.batch, dict(row.metrics)) for row in run.reporter.training_rows],
        "hooks": len(run.optimizer._optimizer_step_pre_hooks),
    }


def main(specification: Path, rank: int) -> None:
    """Run all loops in one process group."""
    told = json.loads(specification.read_text())
    folder, size = specification.parent, told["size"]
    gang = Gang(rank=rank, size=size, local_rank=rank, local_size=size, rendezvous=str(folder / "meeting"))
    backend = {"distributed": {"backend": told["backend"]}}
    with joined(gang, config=backend, deadline=told["deadline"], long_seconds=told["long_seconds"]) as communicator:
        for name, case in told["cases"].items():
            torch.save(trained(folder / name, case["loop"], communicator), folder / f"{name}.{rank}.pt")


if __name__ == "__main__":
    own = int(sys.argv[2])
    try:
        main(Path(sys.argv[1]), own)
    except DetError as error:
        traceback.print_exc()
        (Path(sys.argv[1]).parent / f"error.{own}.json").write_text(json.dumps([type(error).__name__, str(error)]))
        sys.exit(3)
