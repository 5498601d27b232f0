"""Folders that are there before a program runs, and those that it makes although files in them have travelled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from det_harness.program.made_folders import made_folders
from det_harness.program.settled_paths import SettledPaths

from det_native.schema.manifests import FileEntry, FolderEntry, SettledEntry
from det_native.storage.paths import UnsafePathError


def test_folders_are_there(tmp_path: Path) -> None:
    with made_folders([FolderEntry(path="a/b")], tmp_path):
        assert (tmp_path / "a" / "b").is_dir()
        with pytest.raises(FileExistsError):
            os.mkdir(tmp_path / "a")


@pytest.mark.parametrize("way", ["os.mkdir", "os.makedirs", "Path.mkdir", "relative"])
def test_a_folder_with_files_that_travelled_is_made_once(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "in").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data"
    make = {
        "os.mkdir": lambda: os.mkdir(path),
        "os.makedirs": lambda: os.makedirs(path),
        "Path.mkdir": lambda: path.mkdir(),
        "relative": lambda: os.makedirs("data"),
    }[way]
    before = os.mkdir
    with made_folders([FolderEntry(path="data", made=True)], tmp_path):
        with pytest.raises(FileExistsError):
            os.mkdir("other")
        make()
        with pytest.raises(FileExistsError):
            make()
    assert os.mkdir is before


def test_a_folder_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsafePathError), made_folders([FolderEntry(path="../a")], tmp_path):
        pass


def test_paths_are_put_right_before_their_cell(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "d" / "in").mkdir(parents=True)
    for name in ("d/sent.txt", "d/made.txt", "d/in/made.txt"):
        (work / name).write_text("made there")
    (tmp_path / "mine.txt").write_text("")
    (work / "link").symlink_to(tmp_path)
    entries = [SettledEntry(path=path, before_cell=1) for path in ("d", "d/sent.txt", "link/mine.txt", "link", "none")]
    file = FileEntry(path="d/sent.txt", sha256="0" * 64, size=4)
    paths = SettledPaths(entries, [file], {file.sha256: b"sent"}.__getitem__, work)
    paths.before_cell(0)
    assert len([*(work / "d").rglob("*.txt")]) == 3
    paths.before_cell(1)
    assert [path.name for path in work.rglob("*")] == ["d", "sent.txt"]
    assert (work / "d" / "sent.txt").read_text() == "sent"
    assert (tmp_path / "mine.txt").exists()
