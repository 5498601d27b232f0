"""Compares two ways to choose what is sent: the slice, and the plan by which what ran runs again.

With ``DET_TEST_BOTH=points.jsonl`` in the environment, each call that a test has captured is captured the other way,
too, and both programs are replayed. A line of that file says how each fared: right, refused, or wrong. With
``DET_TEST_SLOW=1``, too, each is captured by the plan once more for each cell, as if that had taken a minute.
``python tests/capture/both_ways.py points.jsonl`` adds them up.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from kernels import Found, Kernel, Worker, answer_of

VARIABLE = "DET_TEST_BOTH"


def compare(worker: Worker, found: Found, kernel: Kernel, folder: Path, show: tuple[str, ...], wanted: Any) -> None:
    """Replay a call that was captured the other way, and note how both fared.

    Parameters
    ----------
    worker : Worker
    found : Found
        What the way under test gave; `other` has the other one.
    kernel : Kernel
    folder : Path
        See ``replay``.
    show : tuple of str
        What the test looks at.
    wanted : dict or None
        What the way under test gave there; None if it was refused, or not replayed.
    """
    path, other = os.environ.get(VARIABLE), found.other
    if not path or other is None:
        return
    _note(path, worker, found, other, kernel, folder, show, wanted)
    for number, variant in enumerate(found.slow):
        _note(path, worker, found, variant, kernel, folder.with_name(f"{folder.name}-{number}"), show, wanted)


def _note(
    path: str,
    worker: Worker,
    found: Found,
    other: Found,
    kernel: Kernel,
    folder: Path,
    show: tuple[str, ...],
    wanted: Any,
) -> None:
    outcome, detail = "refused", other.error
    if other.kind == "crash":
        outcome = "crash"
    elif not other.error:
        outcome, detail = _replayed(worker, found, other, kernel, folder, show, wanted)
    line = {
        "test": os.environ.get("PYTEST_CURRENT_TEST", "").partition(" (")[0],
        "this": "refused" if found.error else "right",
        "other": outcome,
        "detail": detail,
        "this_error": found.error,
        "cells": [_cells(found), _cells(other)],
        "values": [_bytes(found), _bytes(other)],
        "seconds": [found.seconds, other.seconds],
        "slow": other.slow_cell,
        "slow_again": [_has_whole(found, other.slow_cell), _has_whole(other, other.slow_cell)],
    }
    with open(path, "a") as file:
        file.write(json.dumps(line) + "\n")


def _has_whole(found: Found, number: int | None) -> bool:
    """Whether a cell runs again as a whole."""
    if number is None or found.program is None:
        return False
    whole = [cell for cell in found.program.cells if cell.number == number]
    return bool(whole) and not whole[0].reason.startswith("settings only")


def _replayed(
    worker: Worker, found: Found, other: Found, kernel: Kernel, folder: Path, show: tuple[str, ...], wanted: Any
) -> tuple[str, str]:
    answer = answer_of(worker, other, kernel.shared, folder, *show)
    outcome, detail = _judged(answer, found, kernel, wanted)
    if outcome != "right" and not found.error:
        this = answer_of(worker, found, kernel.shared, folder.with_name(f"{folder.name}-this"), *show)
        if _judged(this, found, kernel, wanted)[0] == outcome:  # a module that was edited; files of a context directory
            return "as this way", detail
    return outcome, detail


def _judged(answer: dict[str, Any], found: Found, kernel: Kernel, wanted: Any) -> tuple[str, str]:
    if "error" in answer:
        return "failed", str(answer["error"])
    if not answer["reached"]:
        return "failed", "the call was not reached"
    differing = {one: [value, wanted.get(one)] for one, value in answer["names"].items() if wanted}
    differing = {one: both for one, both in differing.items() if both[0] != both[1]}
    if differing:  # of what the call does not read, there is what the notebook has
        live = kernel.live(*differing)
        differing = {one: both for one, both in differing.items() if both[0] != live[one]}
    if differing:
        return "wrong", json.dumps(differing)[:2000]
    if not wanted and answer["given"] != found.given:
        return "wrong", json.dumps([answer["given"], found.given])[:2000]
    return "right", "; ".join(answer["passed"])


def _cells(found: Found) -> int:
    return 0 if found.program is None else len(found.program.cells)


def _bytes(found: Found) -> int:
    return sum(len(value[2]) * 3 // 4 for value in found.values)


def main(path: str) -> None:
    """Print how both ways fared, and each point at which the other one is not right."""
    points = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for outcomes, count in sorted(Counter((one["this"], one["other"]) for one in points).items()):
        print(f"{count:5}  this way {outcomes[0]}, the other way {outcomes[1]}")
    variants = [one for one in points if one["slow"] is not None]
    again = [sum(one["slow_again"][way] for one in variants) for way in (0, 1)]
    print(
        f"{len(variants):5}  variants with a slow cell: it runs again in {again[0]} this way, {again[1]} the other way"
    )
    for one in points:
        if one["other"] not in ("right", "as this way"):
            print(f"\n{one['this']} / {one['other']}: {one['test']} slow={one['slow']}")
            print("   ", one["detail"].strip()[-700:])


if __name__ == "__main__":
    main(sys.argv[1])
