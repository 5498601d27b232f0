"""Files that a local run writes, listed where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from det_harness.local import written_files
from det_harness.local.written_files import WorkingDirectory

from det_native.schema.outputs import Artifact


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
