"""Absolute paths of the notebook's folder, in cells, modules, values and scripts, as a worker has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from det_harness.program.placed_paths import PlacedPaths
from det_harness.program.runner import ProgramRunner
from harness_bundles import call_in, make_bundle, write_files
from program_parts import TRAIN, RecordingHost, install_api

from det_native.runtime import hosted
from det_native.schema.manifests import Cell, PlaceEntry
from det_native.storage.blobs import BlobStore

NB = "/nowhere/notebook"


def paths(work: Path, *, here: str = NB) -> PlacedPaths:
    bundle = make_bundle(BlobStore(str(work / "blobs")), [Cell(number=1, cell_id=None, source="")])
    return PlacedPaths(bundle.model_copy(update={"places": (PlaceEntry(text=here, target="."),)}), work)


def test_values_lead_into_the_working_directory(tmp_path: Path) -> None:
    placed = paths(tmp_path).path_in_value
    assert placed(f"{NB}/out") == str(tmp_path / "out")
    assert placed(NB) == str(tmp_path)
    assert placed(f"{NB}abouts/out") == f"{NB}abouts/out"


def test_what_is_here_and_did_not_travel_stays_where_it_is(tmp_path: Path) -> None:
    notebook, work = tmp_path / "notebook", tmp_path / "work"
    write_files(notebook, {"data/a.csv": "1", "sent.csv": "2"})
    (notebook / "empty").mkdir()
    write_files(work, {"sent.csv": "2"})
    placed = paths(work, here=str(notebook)).path_in_value
    assert placed(str(notebook / "data" / "a.csv")) == str(notebook / "data" / "a.csv")
    assert placed(str(notebook / "data")) == str(notebook / "data")
    assert placed(str(notebook / "sent.csv")) == str(work / "sent.csv")
    assert placed(str(notebook / "empty")) == str(work / "empty")
    assert placed(str(notebook / "new.csv")) == str(work / "new.csv")


def test_words_of_a_command_line(tmp_path: Path) -> None:
    word = paths(tmp_path).word
    assert word(f"--out={NB}/out") == f"--out={tmp_path}/out"
    assert word(f"{NB}/a.csv") == f"{tmp_path}/a.csv"
    assert word("--lr=0.1") == "--lr=0.1"


def test_a_program_with_a_module_and_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_api(tmp_path, monkeypatch)
    cells = [
        Cell(number=1, cell_id=None, source=f"{TRAIN}\nimport own_folder_tools as tools\nBASE = {NB!r}"),
        Cell(
            number=2,
            cell_id=None,
            source="open(BASE + '/x.txt', 'w').close()\ntools.write()\ntrain([BASE, out])  # <- call",
        ),
    ]
    blobs = BlobStore(str(tmp_path / "blobs"))
    bundle = make_bundle(blobs, cells, call=call_in(cells), values=[("out", 1, f"{NB}/out")])
    bundle = bundle.model_copy(update={"places": (PlaceEntry(text=NB, target="."),)})
    work = tmp_path / "work"
    write_files(work, {"own_folder_tools.py": f"def write():\n    open('{NB}/y.txt', 'w').close()\n"})
    runner = ProgramRunner(bundle, blobs.read, work)
    host = RecordingHost(runner)
    with hosted(host):
        runner.run()
    assert host.payload == [str(work), str(work / "out")]
    assert (work / "x.txt").exists()
    assert (work / "y.txt").exists()
