"""Starts the processes of a trial on several slots, for real, and reads what they wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from forked_programs import ForkedPrograms

from det_native.frameworks import has_horovod

PROGRAM = Path(__file__).with_name("rank_program.py")
NEEDS_HOROVOD = pytest.mark.skipif(
    not has_horovod(), reason="Horovod is not installed here: sh tools/horovod.sh builds it."
)
# What gradients travel by, for the tests that have to hold over both. That Horovod ends with the weights of torch is
# tested in `make test` too.
BACKENDS = ["torch", pytest.param("horovod", marks=[NEEDS_HOROVOD, pytest.mark.long])]


@dataclass
class Ended:
    """How the processes ended.

    Attributes
    ----------
    folder : Path
        Where their results are.
    codes : list of int
        Exit codes by rank.
    outputs : list of str
    """

    folder: Path
    codes: list[int]
    outputs: list[str]

    def results(self, case: str) -> list[dict[str, Any]]:
        """Return what every rank wrote about a case."""
        paths = [self.folder / f"{case}.{rank}.pt" for rank in range(len(self.codes))]
        assert all(path.exists() for path in paths), "\n".join(self.outputs)
        return [torch.load(path, weights_only=False) for path in paths]

    def error(self, rank: int) -> tuple[str, str]:
        """Return type and text of the error that a rank ended with."""
        kind, text = json.loads((self.folder / f"error.{rank}.json").read_text())
        return kind, text


def run_ranks(
    folder: Path,
    cases: dict[str, dict[str, Any]],
    *,
    size: int = 2,
    deadline: float = 120.0,
    long_seconds: float = 60.0,
    ranks: list[int] | None = None,
    backend: str = "torch",
) -> Ended:
    """Run cases in `size` processes (or only in those of `ranks`) that share a process group; wait for their ends."""
    specification = folder / "specification.json"
    waits = {"deadline": deadline, "long_seconds": long_seconds}
    specification.write_text(json.dumps({"size": size, "cases": cases, "backend": backend, **waits}))
    commands = [[str(PROGRAM), str(specification), str(rank)] for rank in (ranks if ranks is not None else range(size))]
    # The compiler's folder would be made in the temporary folder otherwise, by any optimizer.
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    with ForkedPrograms.there("torch") as programs:
        return Ended(folder, *programs.run(folder, commands, variables))


def largest_difference(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> float:
    """Return the largest difference between the tensors of two lists of models' states."""
    assert [one.keys() for one in first] == [one.keys() for one in second]
    return max(
        float((mine[name].double() - theirs[name].double()).abs().max())
        for mine, theirs in zip(first, second, strict=True)
        for name in mine
    )


def equal_on_both(pair: Ended, name: str) -> dict[str, Any]:
    """Return what the first slot has, once it is known that the second has the same weights."""
    first, second = pair.results(name)
    assert largest_difference(first["models"], second["models"]) == 0
    assert first["batches"] == second["batches"]
    return first
