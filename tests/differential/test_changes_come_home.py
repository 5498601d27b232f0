"""Whatever a training changes has afterwards, in the notebook, the value that the plain notebook has.

A program changes drawn values in drawn places; its plain run says what they become. It runs here, on a cluster, and on
a cluster where its worker is killed in the middle; each value is read alone, in a cell of its own.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from change_programs import TRAININGS, Change, Framework, Mode, all_changes, cells_of

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "end_to_end"))

from faults import Cluster, Kernel  # noqa: E402 (a folder of tests is no package)
from figures import note  # noqa: E402

pytestmark = pytest.mark.slow

#: How many changes a program has in the soak: more would make its cells unlike any notebook.
TOGETHER = 60
_PLAIN = """
import json, sys, types
sys.modules["helper_of_changes"] = types.ModuleType("helper_of_changes")
names = vars(sys.modules["__main__"])
cells, reads = json.loads(sys.stdin.read())
for cell in cells:
    exec(compile(cell, "<cell>", "exec"), names)
print("READ" + json.dumps([repr(eval(read, names)) for read in reads]))
"""
#: A cell that reads one value.
_READ = """
try:
    print("READ" + repr({}))
except Exception as error:
    print("READ" + repr(error))
"""


def drawn(framework: Framework, count: int, seed: int) -> list[Change]:
    """Return some of all changes of a framework."""
    chosen = random.Random(seed).sample(all_changes(framework), count)
    return [Change(number, way, place) for number, (way, place) in enumerate(chosen)]


def plain_values(framework: Framework, changes: Sequence[Change], folder: Path) -> list[str]:
    """Return what the values become without us."""
    cells, training = cells_of(framework, [*changes], "plain")
    given = json.dumps([[*cells, training], [change.read() for change in changes]])
    ran = subprocess.run(
        [sys.executable, "-c", _PLAIN],
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "TMPDIR": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert not ran.returncode, ran.stderr
    return list(json.loads(ran.stdout.rpartition("READ")[2]))


def differences(kernel: Kernel, framework: Framework, changes: Sequence[Change], mode: Mode) -> list[str]:
    """Return where a run differs from the plain one without a line that names the value."""
    expected = plain_values(framework, changes, kernel.folder)
    (kernel.folder / "helper_of_changes.py").write_text("")
    cells, training = cells_of(framework, [*changes], mode)
    for cell in cells:
        kernel.run(cell)
    said = kernel.run(training).text
    wrong, named = [], 0
    for change, plain in zip(changes, expected, strict=True):
        value = kernel.run(_READ.format(change.read())).text.rpartition("READ")[2].rstrip("\n")
        if value == plain:
            continue
        if re.search(rf"`[^`]*\b[a-zA-Z_]+{change.number}\b[^`]*`", said):
            named += 1
        else:
            wrong.append(f"{change.title}: {value} where plain has {plain}")
    besides = {"named in a line:": named} if named else {}
    equal = len(changes) - len(wrong) - named
    note(f"changes of a {framework} training, {mode}", tries=len(changes), survived=equal, lost=len(wrong), **besides)
    return wrong


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.take_down()


@pytest.fixture
def kernel(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    """A kernel in a folder of its own; where it is named, a worker notes there that it was killed."""
    monkeypatch.setenv("CHANGES_KILLED", str(tmp_path / "killed"))
    kernel = Kernel(cluster, tmp_path / "notebook")
    yield kernel
    kernel.close()


@pytest.mark.parametrize(
    ("framework", "mode"),
    [
        ("torch loop", "cluster"),
        pytest.param("torch fit", "killed", marks=pytest.mark.long),
        pytest.param("keras fit", "killed", marks=pytest.mark.long),
        ("keras step", "cluster"),
    ],
)
def test_fifty_drawn_changes(kernel: Kernel, framework: Framework, mode: Mode) -> None:
    seed = int(os.environ.get("DET_SOAK_SEED") or random.randrange(1_000_000))
    wrong = differences(kernel, framework, drawn(framework, 50, seed), mode)
    assert not wrong, f"DET_SOAK_SEED={seed}"


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["local", "cluster", "killed"])
@pytest.mark.parametrize("framework", TRAININGS)
def test_all_changes(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, framework: Framework, mode: Mode
) -> None:
    every = [Change(number, way, place) for number, (way, place) in enumerate(all_changes(framework))]
    wrong = []
    for start in range(0, len(every), TOGETHER):
        folder = tmp_path / str(start)
        folder.mkdir()
        monkeypatch.setenv("CHANGES_KILLED", str(folder / "killed"))
        kernel = Kernel(cluster, folder / "notebook")
        try:
            wrong += differences(kernel, framework, every[start : start + TOGETHER], mode)
        finally:
            kernel.close()
    assert not wrong
