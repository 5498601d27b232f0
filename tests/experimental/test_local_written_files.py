"""Files that a local run writes: listed where they lie, and brought from processes of its own to where they belong."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from det_harness.local import written_files
from det_harness.local.report import LocalReporter
from det_harness.local.written_files import WorkingDirectory, take_files

from det_native.schema.outputs import Artifact, WrittenFile
from det_native.storage.blobs import BlobStore
from det_native.storage.file_states import Baseline, walk

CONTENTS = {"log.csv": "theirs", "deep/er/best.pt": "weights"}


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


def stored(folder: Path) -> tuple[BlobStore, list[WrittenFile]]:
    blobs = BlobStore(str(folder / "blobs"))
    files = []
    for path, text in CONTENTS.items():
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        blobs.put(sha256, text.encode())
        files.append(WrittenFile(path=path, sha256=sha256, size=len(text), batch=3))
    return blobs, files


def contents(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name, _ in walk(folder)}


def test_files_of_processes_are_put_where_plain_code_puts_them(work: Path, tmp_path: Path) -> None:
    (work / "log.csv").write_text("stale")
    place = WorkingDirectory.now()
    blobs, files = stored(tmp_path)
    placed = place.bring(files, blobs, "local-7")
    assert contents(work) == {"data.csv": "before", **CONTENTS}
    assert placed == {path: path for path in CONTENTS}
    assert oct((work / "log.csv").stat().st_mode & 0o777) == oct(0o666 & ~_umask())


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def test_a_file_that_somebody_else_has_changed_meanwhile_stays(
    work: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = WorkingDirectory.now()
    (work / "log.csv").write_text("mine")
    blobs, files = stored(tmp_path)
    with caplog.at_level(logging.WARNING):
        placed = place.bring(files, blobs, "local-7")
    assert contents(work) == {
        "data.csv": "before",
        "log.csv": "mine",
        "log (experiment local-7).csv": "theirs",
        "deep/er/best.pt": "weights",
    }
    assert placed["log.csv"] == "log (experiment local-7).csv"
    assert "log.csv has changed since the training began and stays" in caplog.text


def test_nothing_is_put_outside_and_a_folder_in_the_way_is_told(
    work: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "outside").mkdir()
    (work / "deep").symlink_to(tmp_path / "outside")
    place = WorkingDirectory.now()
    (work / "log.csv").mkdir()
    blobs, files = stored(tmp_path)
    place.bring(files, blobs, "local-7")
    assert list((tmp_path / "outside").iterdir()) == []
    assert caplog.text.count("cannot be put here") == 2


def test_what_killed_processes_had_written_is_brought_too(work: Path, tmp_path: Path) -> None:
    run = tmp_path / "run" / "1"
    for rank, folder in enumerate((run, run / "rank-1")):
        (folder / "work").mkdir(parents=True)
        Baseline(dict(walk(folder / "work"))).write(folder)
        (folder / "work" / f"of-{rank}.txt").write_text(f"{rank}")
    job = SimpleNamespace(directory=str(run), outputs=str(tmp_path / "outputs"), trial_id=1)
    files = take_files(job, 2, WorkingDirectory.now(), LocalReporter(), 12, "local-7")  # type: ignore[arg-type]
    assert contents(work) == {"data.csv": "before", "of-0.txt": "0", "of-1.txt": "1"}
    assert {file.path: (file.batch, at) for file, at in files} == {
        f"of-{rank}.txt": (12, work / f"of-{rank}.txt") for rank in (0, 1)
    }
