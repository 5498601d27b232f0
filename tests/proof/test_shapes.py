"""Ordinary shapes of cells: a worker refuses none of them, and says of each that is changed there that it differs.

The shapes are in ``shapes``. For each library one process makes the notebooks, and another one, with another hash seed
and in other folders, does what a worker does. Each shape, and each change of it, has a process forked from these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

# A minute on two cores of one's own; a machine that others use, too, may take ten times as long.
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]

SHAPES = Path(__file__).parent / "shapes"
LIBRARIES = ("pytorch", "keras")
SILENT = {"refused": "", "rows": []}
#: How many changes of each shape are tried.
CHANGES = 9
# Small work in many processes: threads of the libraries would only get in each other's way.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")
_SECONDS = 1000

Told = dict[str, Any]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What was said of each shape and its changes, by the library and the name of the shape."""
    folders = [tmp_path_factory.mktemp(library) for library in LIBRARIES]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(partial(_both_sides, most=CHANGES), LIBRARIES, folders))
    pairs = zip(LIBRARIES, found, strict=True)
    return {f"{library}: {name}": shape for library, shapes in pairs for name, shape in shapes.items()}


def _both_sides(library: str, folder: Path, most: int) -> Told:
    _run("notebook", library, folder, hash_seed="1")
    _run("worker", library, folder, str(most), hash_seed="2")
    found: Told = json.loads((folder / "told.json").read_text())
    return found


def _run(side: str, library: str, folder: Path, *arguments: str, hash_seed: str) -> None:
    command = [sys.executable, str(SHAPES / f"{side}_side.py"), library, str(folder), *arguments]
    variables = {**_ONE_THREAD, "PYTHONHASHSEED": hash_seed, "DET_HOME": str(folder / f"{side}-home")}
    environment = {**os.environ, **variables}
    run = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=_SECONDS)
    assert run.returncode == 0, f"{side}:\n{run.stderr[-5000:]}"


def test_every_shape_and_every_change_reaches_its_training_call(told: Told) -> None:
    failed = [f"{name}, in the notebook:\n{one['notebook']['failed']}" for name, one in told.items() if one["notebook"]]
    failed += [
        f"{name}, on the worker, {change or 'unchanged'}:\n{run['failed']}"
        for name, shape in told.items()
        for change, run in shape["runs"].items()
        if "failed" in run
    ]
    assert not failed, _listed(failed, "do not reach it", len(told))


def test_no_ordinary_shape_is_refused_or_said_to_differ(told: Told) -> None:
    differing = []
    for name, shape in told.items():
        run = {**SILENT, **shape["runs"].get("", {})}
        rows = [] if shape["put_right"] else run["rows"]
        if run["refused"] or rows:
            differing.append("\n    ".join([name, *filter(None, [run["refused"]]), *rows]))
    assert not differing, _listed(differing, "are refused, or said to differ", len(told))


def test_no_change_on_the_worker_is_silent(told: Told) -> None:
    changes = [
        (f"{name}: {change}", run, shape["runs"][""])
        for name, shape in told.items()
        for change, run in shape["runs"].items()
        if change
    ]
    # Of a shape that is not equal by itself, a change is to be told beside what is told without it.
    silent = [name for name, run, unchanged in changes if run in (SILENT, unchanged)]
    assert not silent, _listed(silent, "are silent", len(changes))


def _listed(lines: list[str], what: str, of: int) -> str:
    return "\n".join([f"{len(lines)} of {of} {what}:", *lines])
