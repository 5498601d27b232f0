"""Which paths lines name that are no Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from det_native.capture.path_texts import HOLE
from det_native.capture.transform import transform
from det_native.files_home.commands import command_lines, paths_of_command

NAMESPACE: dict[str, Any] = {"LOG": "log.csv", "OUT": Path("out"), "number": 3}


def paths_in(cell: str, after: int = 0) -> list[str]:
    lines = command_lines(cell, transform(cell), after)
    return [path.replace(HOLE, "*") for line in lines for path in paths_of_command(line, NAMESPACE.get)]


@pytest.mark.parametrize(
    ("cell", "paths"),
    [
        ("!cat log.csv", ["log.csv"]),
        ("%cat log.csv", ["log.csv"]),
        ("!head -3 'my log.csv' | grep loss && ls out/*.png > list.txt", ["my log.csv", "loss", "out/*.png"]),
        ("lines = !tail -n 1 train.log", ["1", "train.log"]),
        ("!cat {LOG} $OUT/a.txt {OUT}/b_{number}.txt", ["log.csv", "out/a.txt", "out/b_*.txt"]),
        ("%tensorboard --logdir=logs/fit", ["logs/fit"]),
        ("get_ipython().system('cat log.csv')", ["log.csv"]),
        ("%%bash\n# of the run\nwc -l log.csv\nmkdir -p out", ["log.csv"]),
        ("!mkdir -p out", []),
        ("!nvidia-smi", []),
        ("%matplotlib inline", ["inline"]),
        ("!echo 'not closed", []),
        ("log.csv", []),
        ("import os\nos.path?", []),
    ],
)
def test_words_of_commands(cell: str, paths: list[str]) -> None:
    found = paths_in(cell)
    assert [path for path in found if path != "list.txt"] == paths


def test_lines_above_a_call_are_left_out() -> None:
    assert paths_in("!cat before.txt\nmodel.fit(x, y)\n!cat after.txt", after=2) == ["after.txt"]
