"""Files that cells make: those that run again make them again, all others travel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Found, Kernel

pytest.importorskip("torch", reason="kernels here are forked from a process with PyTorch")

Replayed = Callable[..., dict[str, Any]]
IMPORTS = "import os, shutil, tarfile\nfrom pathlib import Path\nimport numpy as np"
SAVED = "np.save('d/x.npy', np.arange(3))\nx = np.load('d/x.npy')"


def sent(found: Found) -> list[str]:
    return sorted(file[1] for file in found.files)


def captured(kernel: Kernel, *cells: str, shown: str = "x") -> Found:
    kernel.cells(IMPORTS, *cells)
    kernel.run(f"fit({shown})")
    return kernel.found()


@pytest.mark.parametrize(
    "cell",
    [
        f"os.makedirs('d')\n{SAVED}",
        f"os.mkdir('d')\n{SAVED}",
        f"Path('d').mkdir()\n{SAVED}",
        f"os.makedirs('d', exist_ok=True)\n{SAVED}",
        "os.makedirs('a/b/c')\nx = Path('a/b/c/x.txt').write_text('1') + len(Path('a/b/c/x.txt').read_text())",
        "with open('x.txt', 'x') as file:\n    file.write('1')\nx = open('x.txt').read()",
        "with open('x.txt', 'a') as file:\n    file.write('1')\nx = open('x.txt').read()",
        "Path('y.txt').write_text('1')\nos.replace('y.txt', 'x.txt')\nx = Path('x.txt').read_text()",
        "Path('x.txt').unlink(missing_ok=True)\nPath('x.txt').write_text('1')\nx = Path('x.txt').read_text()",
        "os.mkdir('d')\nPath('d/a.txt').write_text('1')\nwith tarfile.open('d.tar', 'w') as tar:\n"
        "    tar.add('d/a.txt')\nshutil.rmtree('d')\nwith tarfile.open('d.tar') as tar:\n"
        "    tar.extractall('e', filter='data')\n"
        "x = Path('e/d/a.txt').read_text()",
        "os.mkdir('d')\nfor i in range(3):\n    Path(f'd/{i}.txt').write_text(str(i))\n"
        "x = [Path(f'd/{i}.txt').read_text() for i in range(3)]",
        "if os.path.exists('d'):\n    shutil.rmtree('d')\nos.makedirs('d')\n" + SAVED,
    ],
)
def test_what_the_cell_made_is_made_again(cell: str, kernel: Kernel, replayed: Replayed) -> None:
    found = captured(kernel, cell)
    assert sent(found) == []
    assert replayed(found, "x") == kernel.live("x")


def test_the_report_says_which_cell_makes_it(kernel: Kernel) -> None:
    row = captured(kernel, f"os.makedirs('d')\n{SAVED}").row("d/x.npy")
    assert (row.status, row.note) == ("not sent", "made by cell [3], which runs again")


def test_several_cells_fill_a_folder(kernel: Kernel, replayed: Replayed) -> None:
    found = captured(
        kernel,
        "d = Path('d')\nd.mkdir()",
        "d.joinpath('a.txt').write_text('1')\na = d / 'a.txt'",
        "d.joinpath('b.txt').write_text('2')\nb = d / 'b.txt'",
        "x = [a.read_text(), b.read_text(), len(list(Path('d').iterdir()))]",
    )
    assert sent(found) == []
    assert replayed(found, "x") == kernel.live("x")


def test_many_cells_that_write_at_once_fill_a_folder(kernel: Kernel) -> None:
    """A tick of the clock by which files have their times is longer than such a cell."""
    names = [f"{number}.txt" for number in range(12)]
    cells = [f"file = os.open('d/{name}', os.O_WRONLY | os.O_CREAT)\nos.write(file, b'1')" for name in names]
    found = captured(kernel, "os.mkdir('d')", *cells, "os.close(file)\nx = sorted(os.listdir('d'))")
    assert sent(found) == [], found.rows


def test_what_a_cell_made_that_stays_behind_travels(kernel: Kernel, replayed: Replayed) -> None:
    found = captured(kernel, f"# det-skip\nos.makedirs('d')\n{SAVED.replace('x =', 'y =')}", "x = np.load('d/x.npy')")
    assert found.needs_none_of(3)
    assert sent(found) == ["d/x.npy"]
    assert replayed(found, "x") == kernel.live("x")


def test_what_a_cell_has_written_since_that_stays_behind_travels(kernel: Kernel, replayed: Replayed) -> None:
    made = "d = 'd'\nos.makedirs(d, exist_ok=True)\nopen('d/x.txt', 'w').write('1')"
    found = captured(kernel, made, "# det-skip\nopen('d/x.txt', 'w').write('2')", "x = d, open('d/x.txt').read()")
    assert found.needs_none_of(4)
    assert sent(found) == ["d/x.txt"]


@pytest.mark.long
@pytest.mark.parametrize(
    "cell",
    [
        "x = open('x.txt').read()\nopen('x.txt', 'w').write('2')",
        "open('x.txt', 'a').write('2')\nx = open('x.txt').read()",
    ],
)
def test_what_was_there_before_travels(cell: str, kernel: Kernel) -> None:
    (kernel.folder / "x.txt").write_text("1")
    assert sent(captured(kernel, cell)) == ["x.txt"]


@pytest.mark.long
@pytest.mark.parametrize(
    "cell",
    [
        "x = open('x.txt').read()\nos.remove('x.txt')\nopen('x.txt', 'w').write('2')",
        "x = open('x.txt').read()\nPath('y.txt').write_text('2')\nos.replace('y.txt', 'x.txt')",
        "import subprocess\nsubprocess.run('echo 1 >> x.txt', shell=True)\nx = open('x.txt').read()",
    ],
)
def test_what_a_cell_read_that_removed_files_or_ran_commands_travels_itself(
    cell: str, kernel: Kernel, replayed: Replayed
) -> None:
    (kernel.folder / "x.txt").write_text("1")
    found = captured(kernel, cell)
    assert sent(found) == []
    assert found.needs_none_of(3)
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    "removal",
    [
        "os.remove('d/b.txt')",
        "os.rename('d/b.txt', 'c.txt')",
        "[path.unlink() for path in Path('d').glob('b*')]",
        "os.remove(os.path.abspath('d/b.txt'))",
        "import shutil\nshutil.rmtree('d/deep')",
    ],
)
def test_what_cells_made_is_removed_again(removal: str, kernel: Kernel, replayed: Replayed) -> None:
    making = "os.makedirs('d/deep')\nfor name in ('a', 'b', 'deep/c'):\n    Path(f'd/{name}.txt').write_text('1')"
    making += "\nimport time; time.sleep(1.2)"
    found = captured(kernel, making, removal, "x = sorted(os.listdir('d'))")
    assert sent(found) == []
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    "cells",
    [
        ["os.rename('d/in', 'd/all')", "os.remove('d/all/b.txt')", "os.rename('d/all/c.txt', 'd/all/x.txt')"],
        ["os.rename('d/in', 'd/all')", "shutil.rmtree('d/all')\nos.remove('d/log.txt')"],
        ["# det-skip\nos.rename('d/in', 'd/all')", "os.remove('d/all/b.txt')"],
        ["# det-skip\nshutil.rmtree('d/in')\nos.remove('d/log.txt')", "open('d/log.txt', 'a').write('2')"],
        [
            "os.rename('d/in', 'd/all')",
            "# det-skip\nos.remove('d/all/b.txt')\nos.replace('d/all/c.txt', 'd/all/x.txt')",
        ],
        ["# det-skip\nopen('d/log.txt', 'w').write('2')"],
        ["!rm -r d/in"],
    ],
)
def test_the_folder_is_what_it_is_here_whatever_removed_and_moved(
    cells: list[str], kernel: Kernel, replayed: Replayed
) -> None:
    making = "os.makedirs('d/in')\nfor name in 'abc':\n    Path(f'd/in/{name}.txt').write_text(name)"
    making += "\nPath('d/log.txt').write_text('1')"
    shown = "x = {str(path): path.is_dir() or path.read_text() for path in sorted(Path('d').rglob('*'))}\nfit(x)"
    kernel.cells(IMPORTS, making, *cells)
    kernel.run(shown)
    found = kernel.found()
    assert replayed(found, "x") == kernel.live("x")


def test_a_file_of_the_user_is_not_removed_again(kernel: Kernel) -> None:
    (kernel.folder / "b.txt").write_text("1")
    assert captured(kernel, "os.remove('b.txt')", "x = 1").needs_none_of(3)


def test_a_folder_that_was_there_before_travels(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "d").mkdir()
    (kernel.folder / "d" / "y.txt").write_text("1")
    found = captured(kernel, f"os.makedirs('d', exist_ok=True)\n{SAVED}\ny = len(os.listdir('d'))", shown="x, y")
    assert sent(found) == ["d/y.txt"]
    assert replayed(found, "x", "y") == kernel.live("x", "y")


@pytest.mark.long
def test_what_somebody_else_has_written_since_travels(kernel: Kernel) -> None:
    kernel.cells(
        IMPORTS, "os.makedirs('d', exist_ok=True)\nopen('d/x.txt', 'w').write('1')\nx = open('d/x.txt').read()"
    )
    file = kernel.folder / "d" / "x.txt"
    before = file.stat().st_mtime_ns
    while file.stat().st_mtime_ns == before:  # the clock of files goes on every few milliseconds
        file.write_text("2")
    kernel.run("fit(x)")
    assert sent(kernel.found()) == ["d/x.txt"]


@pytest.mark.long
def test_what_a_command_made_travels(kernel: Kernel, replayed: Replayed) -> None:
    found = captured(kernel, "os.makedirs('d', exist_ok=True)\n!echo 1 > d/x.txt\nx = open('d/x.txt').read()")
    assert sent(found) == ["d/x.txt"]
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.long
def test_what_a_training_made_travels(kernel: Kernel) -> None:
    cell = "os.makedirs('d', exist_ok=True)\nfit(None, local=True)\nopen('d/x.txt', 'w').write('1')\nd = 'd'"
    assert sent(captured(kernel, cell, "x = d, open('d/x.txt').read()")) == ["d/x.txt"]


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "cell",
    [
        "if not os.path.exists('d'):\n    os.mkdir('d')\n    np.save('d/x.npy', np.arange(3))\nx = np.load('d/x.npy')",
        f"os.makedirs('d', exist_ok=True)\n{SAVED}",
        f"shutil.rmtree('d', ignore_errors=True)\nos.makedirs('d')\n{SAVED}",
        f"if os.path.exists('d'):\n    shutil.rmtree('d')\nos.mkdir('d')\n{SAVED}",
        "open('x.txt', 'w').write('1')\nx = open('x.txt').read()",
        "if not os.path.exists('x.npy'):\n    np.save('x.npy', np.random.rand(3))\nx = np.load('x.npy')",
    ],
)
def test_a_cell_that_is_run_again_can_be_submitted_again(
    cell: str, times: int, kernel: Kernel, replayed: Replayed
) -> None:
    kernel.run(IMPORTS)
    for _ in range(times):
        kernel.run(cell, cell="again")
        kernel.run("fit(x)", cell="fit")
        found = kernel.found()
        assert replayed(found, "x") == kernel.live("x")


@pytest.mark.long
def test_everything_in_one_cell(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run(f"{IMPORTS}\nos.makedirs('d')\n{SAVED}\nfit(x)")
    found = kernel.found()
    assert sent(found) == []
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.long
def test_a_folder_elsewhere_is_not_named_as_missing_there(kernel: Kernel) -> None:
    folder = kernel.folder.parent / "elsewhere"
    cell = f"os.makedirs({str(folder)!r})\nPath({str(folder / 'x.txt')!r}).write_text('1')"
    found = captured(kernel, f"{cell}\nx = Path({str(folder / 'x.txt')!r}).read_text()")
    assert [row.what for row in found.rows if row.status == "not sent"] == []


@pytest.mark.long
def test_a_cell_whose_file_is_read_says_so_and_of_one_that_stays_behind_the_file_travels(kernel: Kernel) -> None:
    kernel.cells("open('quick.txt', 'w').write('7')", "n = open('quick.txt').read()")
    kernel.slowly("open('slow.txt', 'w').write('8')")
    kernel.cells("m = open('slow.txt').read()", "fit(n, m)")
    found = kernel.found()
    assert found.row("cell [2]").note.startswith("writes quick.txt, which cell [3] reads; took")
    assert "stays behind" in found.row("cell [4]").note
    assert sent(found) == ["slow.txt"]
