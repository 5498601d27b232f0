"""What a trial did with files is done in the notebook's folder, and nobody's work is replaced or deleted."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from det_native.errors import MasterUnreachableError
from det_native.home.placing import LIMIT_VARIABLE, Placed, place_files
from det_native.schema import rest
from det_native.schema.outputs import DELETED


class Source:
    """Has the contents of files."""

    def __init__(self) -> None:
        self.contents: dict[str, str] = {}
        self.away = False

    def artifact_content(self, artifact: rest.Artifact, target: Path) -> None:
        if self.away:
            raise MasterUnreachableError("The master is away.")
        target.write_text(self.contents[artifact.path])


class Trial:
    """A trial with files, submitted a moment after the notebook's files were written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = Source()
        self.artifacts: list[rest.Artifact] = []
        self.submitted = time.time()

    def wrote(self, path: str, text: str) -> None:
        self.source.contents[path] = text
        self._add(path, hashlib.sha256(text.encode()).hexdigest(), len(text))

    def deleted(self, path: str) -> None:
        self._add(path, None, 0, DELETED)

    def _add(self, path: str, sha256: str | None, size: int, note: str = "") -> None:
        self.artifacts.append(
            rest.Artifact(trial_id=1, path=path, sha256=sha256, size=size, batch=1, note=note, created="2026-01-01")
        )

    def place(self, below: str = "") -> Placed:
        return place_files(
            self.source.artifact_content,
            self.artifacts,
            self.folder,
            submitted=self.submitted,
            title="experiment 7",
            below=below,
        )

    def written_here(self, path: str, text: str, *, after: bool = False) -> Path:
        here = self.folder / path
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_text(text)
        if not after:  # the time of the last change cannot be set: the submit is later
            self.submitted = here.stat().st_ctime + 1
        return here


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def test_what_was_there_at_the_submit_is_replaced_and_what_has_changed_since_stays(trial: Trial) -> None:
    old = trial.written_here("best.pt", "old")
    trial.wrote("best.pt", "new")
    trial.submitted = old.stat().st_ctime + 1
    trial.place()
    assert old.read_text() == "new"
    mine = trial.written_here("log.tar.gz", "mine")
    trial.submitted = mine.stat().st_ctime - 1
    trial.wrote("log.tar.gz", "its")
    placed = trial.place()
    assert placed.beside == {mine: trial.folder / "log (experiment 7).tar.gz"}
    assert (mine.read_text(), placed.beside[mine].read_text()) == ("mine", "its")


def test_what_we_have_written_is_replaced_by_the_next_training_and_not_by_one_beside(trial: Trial) -> None:
    beside = Trial(trial.folder)
    trial.wrote("best.pt", "first")
    trial.place()
    beside.wrote("best.pt", "second")
    best = trial.folder / "best.pt"
    assert beside.place() == Placed({best: trial.folder / "best (experiment 7).pt"})
    assert best.read_text() == "first"
    later = Trial(trial.folder)
    later.wrote("best.pt", "third")
    assert later.place() == Placed()
    assert best.read_text() == "third"


def test_what_the_training_deleted_is_deleted_unless_it_has_changed_since(trial: Trial) -> None:
    changed = trial.written_here("mine", "changed")
    trial.submitted = changed.stat().st_ctime - 1
    for name in ("old", "cache/deep/a"):
        path = trial.written_here(name, "old", after=True)
        os.utime(path)
    for name in ("mine", "old", "cache/deep/a", "cache/deep", "cache", "never/there", "../out"):
        trial.deleted(name)
    assert "old" in trial.place().stayed  # all of them are newer than the submit
    trial.submitted = time.time() + 1
    placed = trial.place()
    assert [*trial.folder.iterdir()] == []
    assert list(placed.stayed) == ["../out"]


def test_what_is_not_deleted_is_told(trial: Trial) -> None:
    path = trial.written_here("mine", "changed")
    trial.submitted = path.stat().st_ctime - 1
    trial.deleted("mine")
    assert trial.place().stayed == {"mine": "the training deleted it, and it has changed here since the submit"}
    assert path.exists()


def test_a_folder_with_something_else_in_it_stays(trial: Trial) -> None:
    kept = trial.written_here("cache/kept", "kept")
    trial.deleted("cache")
    assert trial.place() == Placed()
    assert kept.exists()


def test_a_file_over_the_limit_stays_and_smaller_ones_come(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "0.001")
    trial.wrote("large", "x" * 999)
    trial.wrote("small", "x" * 10)
    placed = trial.place()
    assert (trial.folder / "small").exists()
    assert "the limit (DET_FILES_HOME_MB)" in placed.stayed["large"]


def test_one_file_that_cannot_be_written_keeps_no_other_from_coming(trial: Trial) -> None:
    trial.written_here("out", "a file")
    for name in ("out/a", "../b", "c\nd", "\u2028"):
        trial.wrote(name, "1")
    placed = trial.place()
    assert sorted(path.name for path in trial.folder.iterdir()) == ["c\nd", "out", "\u2028"]
    assert sorted(placed.stayed) == ["../b", "out/a"]


def test_files_of_a_folder_that_has_another_place_here(trial: Trial) -> None:
    trial.wrote("model_dir/deep/a", "1")
    assert trial.place(below="model_dir/") == Placed()
    assert (trial.folder / "deep" / "a").exists()


def test_a_master_that_is_away_is_an_error(trial: Trial) -> None:
    trial.wrote("a", "1")
    trial.source.away = True
    with pytest.raises(MasterUnreachableError):
        trial.place()
    assert [*trial.folder.iterdir()] == []
