"""Files that a local run writes: listed where they lie, and brought from processes of its own to where they belong."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
from det_harness.local import written_files
from det_harness.local.written_files import WorkingDirectory
from rows_reporter import RowsReporter

from det_native.experimental.local.written_files import bringing_files
from det_native.local.artifacts import WrittenHere, written_here
from det_native.schema.outputs import Artifact
from det_native.storage.file_states import Baseline, walk


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "data.csv").write_text("before")
    monkeypatch.chdir(folder)
    return folder


def listed(files: list[Artifact]) -> dict[str, str]:
    return {file.path: file.note for file in files}


def test_only_what_is_new_or_has_changed_is_listed(work: Path) -> None:
    (work / "log.csv").write_text("before")
    place = WorkingDirectory.now()
    (work / "log.csv").write_text("now, longer")
    (work / "sub").mkdir()
    (work / "sub" / "best.pt").write_text("1")
    files = place.written(1, 40)
    assert listed(files) == {"log.csv": "", "sub/best.pt": ""}
    assert {(file.trial_id, file.batch, len(file.sha256 or "")) for file in files} == {(1, 40, 64)}


def test_what_is_still_in_a_buffer_is_written_first(work: Path) -> None:
    place = WorkingDirectory.now()
    with open("log.csv", "w") as log:
        log.write("in a buffer")
        (file,) = place.written(1, 40)
        assert file.size == 11


def test_in_a_folder_with_very_many_files_none_is_looked_for(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "MOST_WALKED", 3)
    for number in range(5):
        (work / f"{number}").touch()
    place = WorkingDirectory.now()
    (work / "log.csv").touch()
    (row,) = place.written(1, 40)
    assert (row.path, row.sha256) == (".", None)
    assert "more than 3 files" in row.note


def test_the_home_of_det_native_is_not_looked_at(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(work / "deep" / "home"))
    place = WorkingDirectory.now()
    for folder in ("deep/home/local/1", "deep/other"):
        (work / folder).mkdir(parents=True)
        (work / folder / "file").touch()
    assert listed(place.written(1, 40)) == {"deep/other/file": ""}


def contents(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name, _ in walk(folder)}


def brought(work: Path, trial: Path, reporter: RowsReporter) -> list[WrittenHere]:
    """Return what two processes, which have begun when this was called, have written, once it is brought here."""
    run = trial / "run" / "1"
    job = SimpleNamespace(directory=str(run), outputs=str(trial / "outputs"), trial_id=1)
    store = SimpleNamespace(id="local-7", trial_folder=lambda trial_id: trial)
    for folder in (run, run / "rank-1"):
        (folder / "work").mkdir(parents=True)
        Baseline({}).write(folder)
    bring = bringing_files(store, job, 2, reporter)  # type: ignore[arg-type]
    (work / "log.csv").write_text("mine")
    for rank, folder in enumerate((run, run / "rank-1")):
        (folder / "work" / f"of-{rank}.txt").write_text(f"{rank}")
        (folder / "work" / "log.csv").write_text("theirs")
    bring()
    return written_here(trial)


def test_what_processes_have_written_is_brought_and_what_somebody_has_changed_stays(
    work: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "trial").mkdir()
    with caplog.at_level(logging.WARNING):
        files = brought(work, tmp_path / "trial", RowsReporter())
    beside = "log (experiment local-7).csv"
    assert contents(work) == {
        "data.csv": "before",
        "of-0.txt": "0",
        "of-1.txt": "1",
        "log.csv": "mine",
        beside: "theirs",
    }
    assert {Path(file.location).name for file in files} == {"of-0.txt", "of-1.txt", beside}
    assert "log.csv has changed since the training began and stays" in caplog.text
