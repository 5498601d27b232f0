"""Folders that cells make and fill: on the worker no cell finds there what it made, and what it writes has a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytest.importorskip("torch", reason="kernels here are forked from a process with PyTorch")

Replayed = Callable[..., dict[str, Any]]
IMPORTS = "import os, shutil, tempfile, zipfile\nfrom pathlib import Path"
SAVE = "def save(path):\n    open(path, 'w').write('1')"

#: What cells do, what the call is given, and the files that travel.
HISTORIES: dict[str, tuple[list[str], list[str]]] = {
    "made and filled": (["os.makedirs('d')\nsave('d/x')", "x = open('d/x').read()"], []),
    "made and filled in cells of their own": (["os.makedirs('d')", "save('d/x')", "x = open('d/x').read()"], []),
    "made, with those above it": (["Path('d/e').mkdir(parents=True)", "save('d/e/x')", "x = os.listdir('d/e')"], []),
    "removed and made": (["save('old')\nos.makedirs('d')", "shutil.rmtree('d')\nos.makedirs('d')", "x = 1"], []),
    "made, and filled by a shell": (["os.makedirs('d')", "!echo 3 > d/x", "x = open('d/x').read()"], ["d/x"]),
    "made by pathlib, deep, and filled by a shell": (
        ["d = Path('d')\nd.mkdir()\n(d / 'e').mkdir()", "!echo 3 > d/e/x", "x = (d / 'e' / 'x').read_text()"],
        ["d/e/x"],
    ),
    "made, and filled by a training": (
        ["os.makedirs('d')", "fit(local=True)\nsave('d/best')", "x = [os.path.isdir, ['d/best']][1]"],
        ["d/best"],
    ),
    "made by a shell, written to": (["!mkdir d", "save('d/x')\nx = 1"], []),
    "made by a shell, named for what trains": (["!mkdir d", "x = ['d/best.pt']"], []),
    "made by the cell of a training": (["os.makedirs('d')\nfit(local=True)", "x = ['d/best.pt']"], []),
    "a temporary one": (["d = tempfile.mkdtemp(dir='.')\nsave(d + '/x')", "x = open(d + '/x').read()"], []),
    "copied": (["os.makedirs('s')\nsave('s/x')", "shutil.copytree('s', 'd')", "x = open('d/x').read()"], []),
    "unpacked": (
        [
            "with zipfile.ZipFile('d.zip', 'w') as file:\n    file.writestr('e/x', '5')",
            "zipfile.ZipFile('d.zip').extractall('d')",
            "x = open('d/e/x').read()",
        ],
        [],
    ),
    "made twice": (["os.makedirs('d')", "os.makedirs('d')", "save('d/x')\nx = open('d/x').read()"], []),
    "of a value": (["!mkdir -p runs/a", "x = {'out': 'runs/a'}"], []),
}


@pytest.mark.parametrize("title", HISTORIES)
def test_folders_of_cells(title: str, kernel: Kernel, replayed: Replayed) -> None:
    cells, files = HISTORIES[title]
    kernel.cells(IMPORTS, SAVE, *cells, "fit(x)")
    found = kernel.found()
    assert found.error == ""
    assert found.warnings == []
    assert sorted(target for _, target, *_ in found.files) == files
    asked = [f"__import__('os').path.isdir({folder!r})" for folder in ("d", "runs/a")]
    there, here = replayed(found, "x", *asked), kernel.live("x", *asked)
    assert there["x"] == here["x"]
    assert all(there[one] == here[one] for one in asked if "removed" not in title)


def test_a_folder_of_an_earlier_session_travels_if_it_is_read(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "d").mkdir()
    (kernel.folder / "d" / "x").write_text("old")
    kernel.cells(
        IMPORTS,
        "if not os.path.exists('d'):\n    os.makedirs('d')\n    open('d/x', 'w').write('new')",
        "os.makedirs('d')",  # fails
        "x = open('d/x').read()",
        "fit(x)",
    )
    found = kernel.found()
    assert [target for _, target, *_ in found.files] == ["d/x"]
    assert replayed(found, "x") == {"x": "'old'"}


def test_files_that_are_only_written_do_not_travel(kernel: Kernel) -> None:
    for name in ("fig.png", "m.pt", "best.pt", "log.csv"):
        (kernel.folder / name).write_text("of an earlier try")
    kernel.cells(
        "class lib:\n    @staticmethod\n    def save(thing, path):\n        pass\n    savefig = to_csv = save",
        "fit(local=True)",
        "lib.savefig(1, 'fig.png')\nlib.save(1, 'm.pt')",
        "PATH = 'best.pt'\nLOG = 'log.csv'",
        "def train():\n    lib.save(1, PATH)\n    lib.to_csv(1, LOG)",
        "fit(train)",
    )
    assert kernel.found().files == []
