"""Files that a training writes: which of them go into checkpoints, once each, and how they come back."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.user_files import UserFiles

from det_native.errors import CheckpointCorruptError
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage


def age(folder: Path) -> None:
    """Make changes of files old: of one that has changed just now nobody knows whether it will not change again."""
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_mtime > 1:
            os.utime(path, (1, 1))


class Trial:
    """A trial whose only state are its files: one run after another, each in a folder of its own."""

    def __init__(self, directory: Path, uri: str | None = None) -> None:
        self.directory = directory
        self.uri = uri or str(directory / "storage")
        self.saved: list[CheckpointManifest] = []

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        self.saved.append(manifest)

    def waiting(self, text: str) -> None:
        raise AssertionError(text)

    def run(self, name: str, resume: CheckpointManifest | None = None, **content: str) -> Run:
        work = self.directory / name
        work.mkdir()
        for path, text in content.items():
            (work / path).write_text(text)
        age(work)
        return Run(self, work, resume)


class Run:
    """One run, which begins where `resume` was taken."""

    def __init__(self, trial: Trial, work: Path, resume: CheckpointManifest | None) -> None:
        owner = CheckpointOwner("keras", {})
        storage = CheckpointStorage(trial.uri)
        self.checkpoints = TrialCheckpoints(storage, owner, trial, resume=resume)  # type: ignore[arg-type]
        self.trial, self.work = trial, work
        self.files = UserFiles(work, earlier=self.checkpoints.earlier)
        with self.checkpoints.restore() as folder:
            if folder is not None:
                self.files.restore(folder)
            self.files.begin()

    def save(self) -> CheckpointManifest:
        age(self.work)
        self.checkpoints.save(len(self.trial.saved), self._write)
        self.checkpoints.wait()
        return self.trial.saved[-1]

    def _write(self, folder: Path) -> None:
        (folder / "model").write_text("weights")
        self.files.save(folder)

    def contents(self) -> dict[str, str]:
        return {str(path.relative_to(self.work)): path.read_text() for path in self.work.rglob("*") if path.is_file()}


def names(manifest: CheckpointManifest) -> list[str]:
    return [file.path for file in manifest.files if file.path.startswith("files/")]


def test_what_the_training_writes_comes_back_and_what_was_there_before_does_not(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    run = trial.run("first", data="large", notes="a", old="b")
    (run.work / "models").mkdir()
    (run.work / "models/best.keras").write_text("best")
    (run.work / "__pycache__").mkdir()
    (run.work / "__pycache__/cell.pyc").write_text("code")
    (run.work / "notes").write_text("a, then more")
    (run.work / "old").unlink()
    (run.work / "link").symlink_to("notes")
    saved = run.save()
    assert names(saved) == ["files/models/best.keras", "files/notes"]
    again = trial.run("second", saved, data="large", notes="a", old="b")
    assert again.contents() == {"data": "large", "notes": "a, then more", "models/best.keras": "best"}
    # Restored files stay with the trial, changed or not.
    assert names(again.save()) == names(saved)


def test_a_run_that_writes_nothing_has_no_files(tmp_path: Path) -> None:
    assert [file.path for file in Trial(tmp_path).run("first", data="x").save().files] == ["model"]


def test_what_has_not_changed_is_stored_once(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    run = trial.run("first")
    (run.work / "best").write_text("best")
    (run.work / "log").write_text("1\n")
    first = run.save()
    (run.work / "log").write_text("1\n2\n")
    second = run.save()

    def inode(manifest: CheckpointManifest, name: str) -> int:
        return (tmp_path / "storage" / manifest.uuid / "files" / name).stat().st_ino

    assert inode(first, "best") == inode(second, "best")
    assert inode(first, "log") != inode(second, "log")
    CheckpointStorage(str(tmp_path / "storage")).delete(first.uuid)
    CheckpointStorage(str(tmp_path / "storage")).verify(second)
    (run.work / "log").write_text("1\n3\n")  # as long as before, with the same time
    third = trial.run("second", run.save())
    assert third.contents() == {"best": "best", "log": "1\n3\n"}


def test_to_an_object_store_what_has_not_changed_is_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from det_native.storage.remote_folder import RemoteFolder

    sent: list[str] = []
    put = RemoteFolder.publish_file

    def noted(self: Any, key: str, source: Path) -> None:
        sent.append(key.partition("/")[2])
        put(self, key, source)

    monkeypatch.setattr(RemoteFolder, "publish_file", noted)
    trial = Trial(tmp_path, f"memory://{tmp_path.name}")
    run = trial.run("first")
    (run.work / "best").write_text("best")
    run.save()
    sent.clear()
    saved = run.save()
    assert "files/best" not in sent
    assert trial.run("second", saved).contents() == {"best": "best"}


def test_damage_does_not_pass_into_the_next_checkpoint(tmp_path: Path) -> None:
    run = Trial(tmp_path).run("first")
    (run.work / "best").write_text("best")
    saved = run.save()
    stored = tmp_path / "storage" / saved.uuid / "files/best"
    stored.chmod(0o600)
    stored.write_text("bost")
    with pytest.raises(CheckpointCorruptError, match="'files/best' is not what was saved"):
        run.save()


def test_the_largest_files_are_left_out_over_the_limit_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DET_KEPT_FILES_MB", "0.001")
    run = Trial(tmp_path).run("first")
    (run.work / "log").write_text("x" * 900)
    (run.work / "download").write_bytes(b"x" * 1200)
    with caplog.at_level(logging.INFO, "det_native"):
        assert names(run.save()) == names(run.save()) == ["files/log"]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "download (0.0 MB) is not kept with the checkpoints" in told[0]
    assert "at most 0.0 MB, see DET_KEPT_FILES_MB" in told[1]


def test_files_that_are_open_are_written_out_and_gone_on_with(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    run = trial.run("first")
    with open(run.work / "log", "w") as log, open(run.work / "raw", "wb") as raw:
        log.write("first\n")
        raw.write(b"1")
        saved = run.save()
        log.write("lost\n")
    work = tmp_path / "second"
    work.mkdir()
    # The program opens its files again before training continues, and cuts off what is in them.
    with open(work / "log", "w") as log, open(work / "raw", "wb") as raw:
        again = Run(trial, work, saved)
        log.write("second\n")
        raw.write(b"2")
        last = again.save()
    assert again.contents() == {"log": "first\nsecond\n", "raw": "12"}
    assert trial.run("third", last).contents() == again.contents()


def test_restoring_twice_undoes_what_was_written_in_between(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    run = trial.run("first")
    (run.work / "log").write_text("rows\n")
    again = trial.run("second", run.save())
    with open(again.work / "log", "w") as log:  # a callback that sets itself up
        log.write("heading\n")
        with again.checkpoints.restore() as folder:
            assert folder is not None
            again.files.restore(folder)
        log.write("more\n")
    assert again.contents() == {"log": "rows\nmore\n"}


def test_a_folder_of_the_trials_own_becomes_what_it_was(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    files = UserFiles(tmp_path / "work").of_trial(events, "tensorboard")
    (events / "1").write_text("one")
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    files.save(folder)
    (events / "1").write_text("one, and what a killed run has added")
    (events / "2").write_text("two")
    UserFiles(tmp_path / "work").of_trial(events, "tensorboard").restore(folder)
    assert {path.name: path.read_text() for path in events.iterdir()} == {"1": "one"}


def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    work, folder = tmp_path / "work", tmp_path / "checkpoint"
    work.mkdir()
    folder.mkdir()
    (folder / "files.json").write_text('{"format": 1, "files": {"../stolen": null}, "removed": []}')
    with pytest.raises(Exception, match="has the part"):
        UserFiles(work).restore(folder)
