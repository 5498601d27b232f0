"""Absolute paths in the notebook's own folder: the workers have that as their working directory."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from det_native.capture.bundle import assemble
from det_native.capture.model import Bundle, Capture, CapturedValue, Request
from det_native.capture.own_folder import own_paths
from det_native.capture.program_files import add_files
from det_native.schema.manifests import Cell, Program

HERE = {"HERE": "."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notebook"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "a.csv").write_text("1")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "big.bin").write_text("2")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "other name").symlink_to(folder)
    return folder


def bundle_of(
    folder: Path, *cells: str, value: str = "", context: Path | None = None, arguments: tuple[str, ...] = ()
) -> Bundle:
    """Return the bundle of cells, in which HERE stands for the folder."""
    sources = [cell.replace("HERE", str(folder)) for cell in cells]
    program = Program(
        kind="cells", framework="keras", cells=tuple(Cell(number=1, cell_id=None, source=one) for one in sources)
    )
    capture = Capture(program)
    if value:
        content = value.replace("HERE", str(folder)).encode()
        capture.values = [CapturedValue("out", content, 0, "str")]
    request = Request("keras", "fit", context_dir=context)
    labelled = [(source, f"[{number}]") for number, source in enumerate(sources, 1)]
    words = [word.replace("HERE", str(folder)) for word in arguments]
    add_files(capture, labelled, request, [context or folder, folder], folder, arguments=words)
    return assemble(capture, context_dir=context, protocol=1)


def places(bundle: Bundle, folder: Path) -> dict[str, str]:
    return {
        place.text.replace(str(folder), "HERE"): place.target.replace(str(folder), "HERE")
        for place in bundle.manifest.places
    }


@pytest.mark.parametrize(
    "cells",
    [
        ("ModelCheckpoint('HERE/out/best.keras')",),
        ("BASE = 'HERE'", "torch.save(m, BASE + '/best.pt')"),
        ("torch.save(m, f'HERE/{name}.pt')",),
        ("os.path.join('HERE', 'log', name)",),
        ("Path('HERE') / 'out'",),
        ("os.makedirs('HERE/out')",),
        ("sys.path.append('HERE/lib')",),
        ("np.load('HERE/data/a.csv')",),
    ],
)
def test_the_folder_of_the_notebook_is_the_working_directory(cells: tuple[str, ...], folder: Path) -> None:
    assert places(bundle_of(folder, *cells), folder) == HERE


@pytest.mark.parametrize(
    "cells", [("x = 'out/best.keras'",), ("open('/data/a.csv')",), ("'see HERE/a'",), ("'HEREabouts/a'",)]
)
def test_other_texts_need_no_place(cells: tuple[str, ...], folder: Path) -> None:
    assert places(bundle_of(folder, *cells), folder) == {}


def test_a_folder_by_another_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = str(folder.parent / "other name")
    assert [(one.text, one.folder) for one in own_paths([(f"save('{named}/a/b')", "[1]")], (), folder)] == [
        (f"{named}/a/b", named)
    ]
    monkeypatch.setenv("HOME", str(folder.parent))
    [found] = own_paths([("np.load('~/notebook/data/a.csv')", "[1]")], (), folder)
    assert found.folder == "~/notebook"
    monkeypatch.setenv("HOME", str(folder))
    [found] = own_paths([("np.load('~/data/a.csv')", "[1]")], (), folder)
    assert found.folder == "~"


def test_values_that_travel_and_words_of_a_command_line(folder: Path) -> None:
    assert places(bundle_of(folder, "x = 1", value="HERE/out"), folder) == HERE
    assert places(bundle_of(folder, "x = 1", value="out"), folder) == {}
    assert places(bundle_of(folder, "x = 1", arguments=("--out=HERE/out",)), folder) == HERE
    assert places(bundle_of(folder, "x = 1", arguments=("--out", "HERE/out")), folder) == HERE


def test_what_does_not_travel_is_read_where_it_is(folder: Path) -> None:
    assert places(bundle_of(folder, "tf.load('HERE/linked/big.bin')"), folder) == {
        "HERE/linked/big.bin": "HERE/linked/big.bin",
        **HERE,
    }
    (folder / ".detignore").write_text("data\n")
    (folder / "empty").mkdir()
    found = places(bundle_of(folder, "open(f'HERE/data/{x}.csv'), open('HERE/empty/x')", context=folder), folder)
    assert found == {"HERE/data": "HERE/data", **HERE}


def test_what_is_written_is_written_into_the_working_directory(folder: Path) -> None:
    (folder / "best.pt").write_text("of an earlier try")
    bundle = bundle_of(folder, "torch.save(m, 'HERE/best.pt')")
    assert places(bundle, folder) == HERE
    assert bundle.manifest.files == ()


def test_the_manifest_says_nothing_of_the_folder_unless_the_program_does(folder: Path) -> None:
    bundle = bundle_of(folder, "np.load('data/a.csv')")
    assert str(folder) not in bundle.manifest.model_dump_json()
    [entry] = bundle.manifest.files
    assert entry.sha256 == hashlib.sha256(b"1").hexdigest()
