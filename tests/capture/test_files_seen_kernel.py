"""Data files that cells were seen to read travel, whatever their names come from; what nobody reads does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernels import Found, Kernel

pytest.importorskip("torch", reason="kernels here are forked from a process with PyTorch")

Replayed = Callable[..., dict[str, Any]]
IMPORTS = "import glob, json, os, sqlite3\nfrom pathlib import Path\nimport numpy as np"


@pytest.fixture
def folder(kernel: Kernel) -> Path:
    """Files beside the notebook: settings that name others, a folder, and what nobody reads."""
    folder = kernel.folder
    for name in ("data/a.txt", "data/b.txt", "data/deep/c.txt", "more/d.bin", "more/e.bin", "other.csv", "text.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"of {name[:3]}")
    (folder / "cfg.json").write_text(
        json.dumps({"data": "other.csv", "lists": "more", "in": "data", "one": "more/d.bin"})
    )
    return folder


def sent(found: Found) -> list[str]:
    assert not found.error
    return sorted(file[1] for file in found.files)


def captured(kernel: Kernel, *cells: str, shown: str = "x") -> Found:
    kernel.cells(IMPORTS, *cells)
    kernel.run(f"fit({shown})")
    return kernel.found()


LOAD = "cfg = json.load(open('cfg.json'))"
FOLDER = ["data/a.txt", "data/b.txt", "data/deep/c.txt"]
OPENED = [
    ([LOAD, "x = open(cfg['data']).read()"], ["cfg.json", "other.csv"]),
    (["p = Path(chr(100) + 'ata')", "x = sorted(f.read_text() for f in p.iterdir() if f.is_file())"], FOLDER),
    (["x = sorted(open(f).read() for f in glob.glob('da' 'ta/[ab].txt'))"], ["data/a.txt", "data/b.txt"]),
    (["x = sorted(f.read_text() for f in Path('.').glob('*/?.txt'))"], ["data/a.txt", "data/b.txt"]),
    ([LOAD, "x = len(os.listdir(cfg['lists']))"], ["cfg.json", "more/d.bin", "more/e.bin"]),
    ([LOAD, "x = np.fromfile(cfg['data'], np.uint8)"], ["cfg.json", "other.csv"]),
    ([LOAD, "x = bytes(np.memmap(cfg['data'], np.uint8, 'r'))"], ["cfg.json", "other.csv"]),
    (
        [LOAD, "os.chdir(cfg['in'])", "x = open('a.txt').read() + open('../text.txt').read()"],
        ["cfg.json", "data/a.txt", "text.txt"],
    ),
    (["exec(open('te' 'xt.txt').read().replace('of tex', 'x = 3'))"], ["text.txt"]),
    (
        [
            "from concurrent.futures import ThreadPoolExecutor\nnames = sorted(Path('more').glob('*'))",
            "with ThreadPoolExecutor(2) as pool:\n    x = list(pool.map(np.fromfile, names))",
        ],
        ["more/d.bin", "more/e.bin"],
    ),
]


@pytest.mark.parametrize(("cells", "files"), OPENED)
def test_what_cells_were_seen_to_read_travels(
    cells: list[str], files: list[str], kernel: Kernel, folder: Path, replayed: Replayed
) -> None:
    found = captured(kernel, *cells)
    assert sent(found) == files
    assert found.warnings == []
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    "cells",
    [
        ["label = 'other.csv'; print(label)", "x = 1"],
        ["names = ['other.csv', 'data/a.txt']\nx = len(names[0])"],
        ["x = 'other.csv' in {'text.txt': 1}"],
        ["x = sorted(os.listdir('.'))[:0]"],
        ["x = len(open('/proc/self/status').read()) > 0, len(open('/dev/null').read())"],
        ["import tempfile\nwith tempfile.TemporaryFile() as f:\n    x = f.write(b'1')"],
        ["import email.mime.audio, wave\nx = wave.__name__"],
    ],
)
def test_what_no_cell_reads_stays(cells: list[str], kernel: Kernel, folder: Path, replayed: Replayed) -> None:
    found = captured(kernel, *cells)
    assert sent(found) == []
    assert [row.what for row in found.rows if row.how == "path"] == []
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    "cell",
    [
        "n = 'ma' + 'de.txt'\nopen(n, 'w').write('1')\nx = open(n).read()",
        "n = 'oth' + 'er.csv'\nopen(n, 'w').write('1')\nx = open(n).read()",
        "b = sqlite3.connect('b' + '.db')\n_ = b.execute('create table t (a)')\nb.close()\nx = 1",
        "n = 'new'\nos.mkdir(n)\nPath(n, 'a').write_text('1')\nx = os.listdir(n)",
    ],
)
def test_what_a_cell_writes_itself_is_none_of_its_inputs(
    cell: str, kernel: Kernel, folder: Path, replayed: Replayed
) -> None:
    found = captured(kernel, cell)
    assert sent(found) == []
    assert found.warnings == []
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    ("cell", "is_changed"),
    [
        ("with open(n, 'r+') as f:\n    x = f.read()", False),
        ("with open(n, 'r+') as f:\n    f.write('changed')\nx = 1", True),
        ("with open(n, 'a') as f:\n    f.write('more')\nx = 1", True),
        ("x = open(n).read()\nopen(n, 'w').write('2')", True),
    ],
)
def test_a_file_that_a_cell_finds_and_changes_travels_and_is_told(
    cell: str, is_changed: bool, kernel: Kernel, folder: Path
) -> None:
    found = captured(kernel, "n = 'other' + '.csv'", cell)
    assert sent(found) == ["other.csv"]
    assert [one for one in found.warnings if "other.csv was changed after cell [4] had begun to use it" in one] == (
        found.warnings if is_changed else []
    )
    assert bool(found.warnings) == is_changed


def test_a_file_that_is_gone_is_told(kernel: Kernel, folder: Path) -> None:
    kernel.cells(IMPORTS, "n = 'other' + '.csv'\nx = open(n).read()")
    (folder / "other.csv").unlink()
    kernel.run("fit(x)")
    [warning] = kernel.found().warnings
    assert "Cell [3] has read 'other.csv', which is not there any more" in warning


def test_a_file_that_was_asked_for_in_vain_is_not_told(kernel: Kernel, folder: Path, replayed: Replayed) -> None:
    cell = "try:\n    x = open('none' + '.csv').read()\nexcept OSError:\n    x = 'none'"
    found = captured(kernel, cell)
    assert (sent(found), found.warnings) == ([], [])
    assert replayed(found, "x") == kernel.live("x")


def test_what_the_calls_own_cell_reads_before_the_call_travels(
    kernel: Kernel, folder: Path, replayed: Replayed
) -> None:
    kernel.cells(IMPORTS, f"{LOAD}\nx = open(cfg['data']).read()\nfit(x)\nopen(cfg['one']).read()")
    found = kernel.found()
    assert sent(found) == ["cfg.json", "other.csv"]
    assert replayed(found, "x") == kernel.live("x")


LAZY = "class Files:\n    def __init__(self, names):\n        self.names = names\n    def __getitem__(self, i):\n" + (
    "        return open(self.names[i]).read()"
)


@pytest.mark.parametrize(
    ("cell", "files"),
    [
        (f"{LOAD}\nx = Files([cfg['one']])", ["cfg.json", "more/d.bin"]),
        (f"{LOAD}\nx = Files([Path(cfg['data'])])", ["cfg.json", "other.csv"]),
        ("x = Files(['other.csv'])", ["other.csv"]),
        (
            "import pandas as pd\ntable = pd.DataFrame({'name': [f'more/{n}.bin' for n in 'de']})\n"
            "x = Files(table.name)",
            ["more/d.bin", "more/e.bin"],
        ),
        ("x = Files(sorted(os.path.join('more', n) for n in os.listdir('more')))", ["more/d.bin", "more/e.bin"]),
        ("def load():\n    return open('other.csv').read()\nx = Files([load])", ["other.csv"]),
    ],
)
def test_files_that_are_opened_later_travel(
    cell: str, files: list[str], kernel: Kernel, folder: Path, replayed: Replayed
) -> None:
    found = captured(kernel, LAZY, cell)
    assert sent(found) == files
    assert replayed(found, "type(x).__name__") == {"type(x).__name__": "'Files'"}


@pytest.mark.parametrize(
    ("module", "made", "read"),
    [
        (
            "h5py",
            "h5py.File('t.bin', 'w').create_dataset('a', data=[1, 2])",
            "h5py.File(cfg['table'])['a'][:].tolist()",
        ),
        (
            "pyarrow.parquet",
            "pyarrow.parquet.write_table(pyarrow.table({'a': [1, 2]}), 't.bin')",
            "pyarrow.parquet.read_table(cfg['table'])['a'].to_pylist()",
        ),
    ],
)
@pytest.mark.parametrize("name", ["cfg['table']", "'t.bin'"])
def test_what_a_library_opens_out_of_pythons_sight_travels_by_its_name(
    module: str, made: str, read: str, name: str, kernel: Kernel, folder: Path, replayed: Replayed
) -> None:
    pytest.importorskip(module)
    (folder / "cfg.json").write_text(json.dumps({"table": "t.bin", "other": "other.csv"}))
    kernel.run(f"import {module}\n{made}", silent=True)
    found = captured(kernel, f"import {module}\n{LOAD}", "x = " + read.replace("cfg['table']", name))
    assert sent(found) == ["cfg.json", "t.bin"]
    assert replayed(found, "x") == kernel.live("x")


def test_files_of_a_dataset_in_a_loader_travel(kernel: Kernel, folder: Path) -> None:
    dataset = LAZY.replace("class Files:", "class Files(torch.utils.data.Dataset):")
    found = captured(
        kernel,
        f"import torch\n{dataset}\n    def __len__(self):\n        return len(self.names)",
        f"{LOAD}\nx = torch.utils.data.DataLoader(Files([cfg['one'], cfg['data']]), shuffle=True)",
    )
    assert sent(found) == ["cfg.json", "more/d.bin", "other.csv"]


def test_keys_and_files_of_variables_do_not_travel_by_being_read(kernel: Kernel, folder: Path) -> None:
    for name in (".env", "server.pem", ".cache/x.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("1")
    (folder / "cfg.json").write_text(json.dumps([".env", "server.pem", ".cache/x.txt"]))
    found = captured(kernel, f"{LOAD}\nx = [open(n).read() for n in cfg]")
    assert sent(found) == ["cfg.json"]
    assert found.row(".env").status == found.row("server.pem").status == "not sent"


def test_a_file_elsewhere_is_named_without_a_text_of_its_own(kernel: Kernel, folder: Path) -> None:
    (folder / "cfg.json").write_text(json.dumps({"data": str(folder.parent / "far.csv")}))
    (folder.parent / "far.csv").write_text("1")
    kernel.run(f"import tempfile; tempfile.tempdir = {str(folder / 'tmp')!r}", silent=True)
    found = captured(kernel, LOAD, "x = open(cfg['data']).read()")
    assert sent(found) == ["cfg.json"]


def test_a_large_file_that_only_an_unneeded_cell_reads_keeps_it_here(kernel: Kernel, folder: Path) -> None:
    (folder / "big.bin").write_bytes(bytes(2 << 20))
    found = captured(kernel, "n = 'big' + '.bin'\nfirst = open(n, 'rb').read(1)", "x = 1")
    assert sent(found) == []
    [row] = [row for row in found.rows if row.what == "cell [3]" and row.how == "stays"]
    settings = "but for its imports, definitions and plain settings"  # the name of the file
    assert row.note == f"stays behind, {settings}: needs files of 2.10 MB"


def test_a_large_file_that_a_class_names_which_nothing_needs_is_not_sent(kernel: Kernel, folder: Path) -> None:
    (folder / "big.bin").write_bytes(bytes(2 << 20))
    reads = "class Unused:\n    def read(self):\n        return open('big.bin').read()"
    assert sent(captured(kernel, reads, "x = 1")) == []
    assert sent(captured(kernel, "x = Unused()")) == ["big.bin"]


def test_a_missing_file_that_only_an_unneeded_class_names_is_no_warning(kernel: Kernel, folder: Path) -> None:
    reads = "class Unused:\n    def read(self):\n        return open('nowhere.txt').read()"
    assert captured(kernel, reads, "x = 1").warnings == []
    [warning] = captured(kernel, "x = Unused()").warnings
    assert "reads 'nowhere.txt', which is not there" in warning
