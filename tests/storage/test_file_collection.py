"""Files that a training writes: what a walk finds, what of it is kept within the limits, and what is reported of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.schema.outputs import DELETED, NAME_LENGTH, WrittenFile
from det_native.storage import written_files
from det_native.storage.blobs import BlobStore
from det_native.storage.file_states import Baseline, Folder, Limits, State, changed_files, walk, written_in
from det_native.storage.written_files import Changes, FileCollection, select

names = st.lists(st.text("ab.é", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)
states = st.dictionaries(names, st.lists(st.integers(0, 50), min_size=5, max_size=5), max_size=12)


def is_usable(name: str) -> bool:
    return not {"", ".", ".."} & set(name.split("/"))


class Training:
    """A working directory, with what is reported of it."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.blobs = BlobStore(str(folder / "blobs"))
        self.limits = limits or Limits()
        self.begin()

    def begin(self) -> None:
        before = dict(walk(self.work, links=True))
        self.collection = FileCollection(self.blobs, lambda: [Folder(self.work, before)], self.limits)

    def write(self, name: str, text: str, *, old: bool = True) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if old:
            os.utime(path, (1, 1))
        return path

    def look(self, batch: int = 7, *, last: bool = True) -> Changes:
        return self.collection.look(batch, last=last)

    def content(self, file: WrittenFile) -> str:
        assert file.sha256 is not None
        return self.blobs.read(file.sha256).decode()


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Training]:
    return lambda **limits: Training(tmp_path, Limits(**limits))


def notes(changes: Changes) -> dict[str, str]:
    return {file.path: file.note for file in changes.files if file.sha256 is None}


@given(states, states)
def test_what_has_changed_is_what_is_in_another_state(before: dict[str, State], now: dict[str, State]) -> None:
    changed = changed_files(before, now)
    assert changed.keys() <= now.keys()
    for name, state in now.items():
        assert (name in changed) == (before.get(name) != state)
    assert changed_files(now, now) == {}


@given(states, st.integers(0, 200), st.integers(0, 8))
def test_what_is_kept_is_within_the_limits_and_the_rest_is_named(now: dict[str, State], size: int, files: int) -> None:
    selection = select(now, Limits(size=size, files=files), 3)
    assert len(selection.kept) <= files
    assert sum(now[name][2] for name in selection.kept) <= size
    assert {*selection.kept, *selection.refused} == set(now)
    assert all(file.note and file.sha256 is None and file.batch == 3 for file in selection.refused.values())
    usable = {name for name in now if is_usable(name)}
    assert set(selection.kept) <= usable
    over = usable - set(selection.kept)
    if over and selection.kept:  # the smallest ones are kept
        assert max(now[name][2] for name in selection.kept) <= min(now[name][2] for name in over)


def test_a_path_that_two_processes_wrote_is_the_first_ones(tmp_path: Path) -> None:
    for folder, names in (("first", ("shared", "a")), ("second", ("shared", "b")), ("elsewhere", ("deep/c",))):
        for name in names:
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).touch()
    before = dict(walk(tmp_path / "first"))
    folders = [Folder(tmp_path / "first"), Folder(tmp_path / "second"), Folder(tmp_path / "elsewhere", {}, "model/")]
    assert {name: path.relative_to(tmp_path).as_posix() for name, (path, _) in written_in(folders).items()} == {
        "shared": "first/shared",
        "a": "first/a",
        "b": "second/b",
        "model/deep/c": "elsewhere/deep/c",
    }
    assert written_in([Folder(tmp_path / "first", before)]) == {}


def test_what_was_there_before_is_not_reported_unless_it_changes(training: Training) -> None:
    training.write("data.csv", "1")
    training.write("log.csv", "1")
    training.begin()
    training.write("log.csv", "12")
    training.write("deep/er/best.pt", "weights")
    changes = training.look()
    assert {file.path: training.content(file) for file in changes.files} == {
        "log.csv": "12",
        "deep/er/best.pt": "weights",
    }
    assert {file.batch for file in changes.files} == {7}
    assert not training.look()


def test_only_what_is_new_is_reported_and_what_is_removed(training: Training) -> None:
    training.write("a", "1")
    training.write("b", "1")
    assert len(training.look().files) == 2
    training.write("a", "22")
    (training.work / "b").unlink()
    changes = training.look(9)
    assert [(file.path, file.size, file.batch) for file in changes.files] == [("a", 2, 9)]
    assert changes.removed == ["b"]
    training.write("b", "1")
    assert [file.path for file in training.look().files] == ["b"]


def test_the_same_content_written_again_is_not_news(training: Training) -> None:
    training.write("a", "1")
    training.look()
    os.utime(training.work / "a", (5, 5))
    assert not training.look()


def test_a_file_that_has_just_changed_waits(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    training.write("a", "1")
    assert not training.look(last=False)
    monkeypatch.setattr(written_files, "STILL_NS", 0)
    assert [file.path for file in training.look(last=False).files] == ["a"]


def test_a_file_that_always_changes_is_stored_seldom(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "STILL_NS", 0)
    training.write("best.pt", "1")
    assert training.look(last=False)
    training.write("best.pt", "22")
    assert not training.look(last=False)
    (file,) = training.look().files
    assert training.content(file) == "22"


def test_the_largest_files_are_left_out_with_a_sentence(make: Callable[..., Training]) -> None:
    training = make(size=10)
    training.write("small", "123")
    training.write("large", "1" * 20)
    changes = training.look()
    assert [file.path for file in changes.files if file.sha256] == ["small"]
    (note,) = notes(changes).values()
    assert "0.0 MB" in note
    assert "DET_ARTIFACTS_MB" in note
    assert not training.look()
    (training.work / "large").unlink()
    assert training.look().removed == ["large"]


def test_of_very_many_files_the_rest_is_one_row(make: Callable[..., Training]) -> None:
    training = make(files=20)
    for number in range(200):
        training.write(f"frames/{number:03}.png", "1")
    changes = training.look()
    assert sum(file.sha256 is not None for file in changes.files) == 20
    told = notes(changes)
    assert len(told) == 51
    assert told["frames"].startswith("130 more files in this folder are not kept")
    assert "DET_ARTIFACTS_FILES" in told["frames"]


def test_names_that_cannot_be_used_are_told(training: Training) -> None:
    training.write("back\\slash", "1")
    long = "/".join(["n" * 200] * 3)
    training.write(long, "1")
    with open(os.fsencode(training.work) + b"/\xff.txt", "wb") as file:
        file.write(b"1")
    told = notes(training.look())
    assert set(told) == {"back\\slash", "\\xff.txt", long[:NAME_LENGTH]}
    assert all(told.values())


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_told(training: Training) -> None:
    training.write("secret", "1").chmod(0)
    assert "cannot be read" in notes(training.look())["secret"]


def test_a_full_disk_is_told_and_tried_again(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    training.write("a", "1")
    monkeypatch.setattr(written_files, "free_bytes", lambda place: 1_000)
    assert "The disk of" in notes(training.look())["a"]
    monkeypatch.setattr(written_files, "free_bytes", lambda place: 1 << 40)
    (file,) = training.look().files
    assert training.content(file) == "1"


def test_links_count_only_if_they_lead_to_files_of_the_directory(training: Training, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("not ours")
    (training.work / "folder").symlink_to(tmp_path / "outside")
    (training.work / "file").symlink_to(tmp_path / "outside" / "secret")
    (training.work / "gone").symlink_to(tmp_path / "nothing")
    training.write("epoch-3.pt", "weights")
    (training.work / "latest.pt").symlink_to("epoch-3.pt")
    changes = training.look()
    kept = [file for file in changes.files if file.path not in notes(changes)]
    assert {file.path: training.content(file) for file in kept} == {"epoch-3.pt": "weights", "latest.pt": "weights"}
    assert list(notes(changes)) == ["folder"]


def test_the_states_of_the_beginning_come_back_as_they_were_left(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    with open(os.fsencode(tmp_path) + b"/\xff.txt", "wb"):
        pass
    baseline = Baseline(dict(walk(tmp_path)), Limits(size=5, files=6), {"model/": "/elsewhere"})
    baseline.write(tmp_path)
    assert Baseline.read(tmp_path) == baseline
    assert Baseline.read(tmp_path / "nowhere") is None


def test_a_blob_has_the_hash_of_its_content(training: Training) -> None:
    training.write("a", "content")
    (file,) = training.look().files
    assert file.sha256 == hashlib.sha256(b"content").hexdigest()


def test_what_was_there_and_is_deleted_is_reported_at_the_end(training: Training) -> None:
    for name in ("old", "cache/deep/a", "kept/b", "kept/c"):
        training.write(name, "1")
    training.begin()
    for name in ("old", "cache/deep/a", "kept/b"):
        (training.work / name).unlink()
    (training.work / "cache" / "deep").rmdir()
    (training.work / "cache").rmdir()
    assert not training.look(last=False)
    changes = training.look()
    assert notes(changes) == dict.fromkeys(["cache", "cache/deep", "cache/deep/a", "kept/b", "old"], DELETED)
    assert not training.look()


def test_a_link_to_a_folder_is_named_and_one_that_was_there_is_not(training: Training, tmp_path: Path) -> None:
    (training.work / "data").symlink_to(tmp_path)
    training.begin()
    training.write("runs/1/a", "1")
    (training.work / "latest").symlink_to("runs/1")
    changes = training.look()
    assert [file.path for file in changes.files if file.sha256] == ["runs/1/a"]
    assert "It is a link to a folder" in notes(changes)["latest"]
