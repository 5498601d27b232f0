"""Files that a training writes in the working directory of this process, reported when it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from det_harness.local import written_files
from det_harness.local.written_files import files_reported

from det_native.schema.outputs import WrittenFile
from det_native.storage.blobs import BlobStore


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "data.csv").write_text("before")
    monkeypatch.chdir(folder)
    return folder


@contextmanager
def reported(tmp_path: Path) -> Iterator[list[WrittenFile]]:
    """Give what is reported once the block has ended."""
    found: list[WrittenFile] = []
    with files_reported(str(tmp_path / "blobs"), lambda files, removed: found.extend(files), lambda: 40):
        yield found


def listed(files: list[WrittenFile]) -> dict[str, str]:
    return {file.path: file.note for file in files}


def test_only_what_is_new_or_has_changed_is_kept(work: Path, tmp_path: Path) -> None:
    (work / "log.csv").write_text("before")
    with reported(tmp_path) as files:
        (work / "log.csv").write_text("now, longer")
        (work / "sub").mkdir()
        (work / "sub" / "best.pt").write_text("1")
    assert listed(files) == {"log.csv": "", "sub/best.pt": ""}
    assert {file.batch for file in files} == {40}
    contents = {file.path: BlobStore(str(tmp_path / "blobs")).read(str(file.sha256)) for file in files}
    assert contents == {"log.csv": b"now, longer", "sub/best.pt": b"1"}


def test_an_exception_of_the_training_hides_no_file(work: Path, tmp_path: Path) -> None:
    with reported(tmp_path) as files, suppress(ZeroDivisionError):
        (work / "log.csv").touch()
        raise ZeroDivisionError
    assert listed(files) == {"log.csv": ""}


def test_what_is_still_in_a_buffer_is_written_first(work: Path, tmp_path: Path) -> None:
    with open("log.csv", "w") as log:
        with reported(tmp_path) as files:
            log.write("in a buffer")
        assert [file.size for file in files] == [11]


def test_in_a_folder_with_very_many_files_none_is_looked_for(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_files, "MOST_WALKED", 3)
    for number in range(5):
        (work / f"{number}").touch()
    with reported(tmp_path) as files:
        (work / "log.csv").touch()
    assert [(file.path, file.sha256) for file in files] == [(".", None)]
    assert "more than 3 files" in files[0].note


def test_the_home_of_det_native_is_not_looked_at(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(work / "deep" / "home"))
    with reported(tmp_path) as files:
        for folder in ("deep/home/runs/1", "deep/other"):
            (work / folder).mkdir(parents=True)
            (work / folder / "file").touch()
    assert listed(files) == {"deep/other/file": ""}
