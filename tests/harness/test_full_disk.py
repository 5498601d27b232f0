"""Checkpoints on a disk that is really full: they wait beside the training, and are written once there is room."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from det_harness.trial import full_disk
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.services import Reporter
from det_harness.trial.throttle import Throttle
from small_disks import SmallDisk, small_disk

from det_native.errors import DiskFullError
from det_native.schema.manifests import CheckpointManifest
from det_native.storage import room
from det_native.storage.checkpoints import CheckpointStorage

PATIENCE = 60.0
CONTENT = bytes(range(256)) * 4096


class Told(Reporter):
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.batches: list[int] = []
        self.changed = threading.Event()

    def waiting(self, text: str) -> None:
        self.texts.append(text)
        self.changed.set()

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        self.batches.append(manifest.batch)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


def checkpoints_on(disk: SmallDisk, told: Told, stop: Callable[[], bool] = lambda: False) -> TrialCheckpoints:
    storage = CheckpointStorage(str(disk.path / "checkpoints"))
    return TrialCheckpoints(storage, CheckpointOwner("torch", {}), told, stop=stop)


def in_background(folder: Path) -> Callable[[Throttle], None]:
    """Write as PyTorch's controller does: a little at once, the weights beside the training."""
    (folder / "facts.json").write_text("{}")
    return lambda throttle: (folder / "weights").write_bytes(CONTENT) and None


def at_once(folder: Path) -> None:
    """Write as Keras's controller does: all of it while the training stands."""
    (folder / "weights").write_bytes(CONTENT)


def test_the_training_goes_on_and_the_checkpoint_is_written_when_there_is_room(disk: SmallDisk) -> None:
    told = Told()
    checkpoints = checkpoints_on(disk, told)
    checkpoints.save(3, in_background)
    checkpoints.wait()
    disk.fill()
    assert disk.free == 0
    checkpoints.save(6, lambda folder: lambda throttle: at_once(folder))  # returns: training goes on
    assert told.changed.wait(PATIENCE)
    assert told.texts == [f"waits for disk space in {disk.path}/checkpoints (checkpoint of batch 6)"]
    assert told.batches == [3]
    disk.empty()
    checkpoints.wait()
    assert told.batches == [3, 6]
    assert told.texts[1:] == [""]
    found = CheckpointStorage(str(disk.path / "checkpoints")).list()
    assert [one.batch for one in found] == [3, 6]


def test_the_next_checkpoint_waits_for_it(disk: SmallDisk) -> None:
    told = Told()
    checkpoints = checkpoints_on(disk, told)
    disk.fill()
    checkpoints.save(3, lambda folder: lambda throttle: at_once(folder))
    assert told.changed.wait(PATIENCE)
    training = threading.Thread(target=checkpoints.save, args=(6, at_once))
    training.start()
    assert told.batches == []
    assert training.is_alive()
    disk.empty()
    training.join(PATIENCE)
    checkpoints.wait()
    assert told.batches == [3, 6]
    assert told.texts[-1] == ""


def test_what_is_written_at_once_goes_to_another_disk_meanwhile(disk: SmallDisk) -> None:
    told = Told()
    checkpoints = checkpoints_on(disk, told)
    checkpoints.save(3, at_once)
    checkpoints.wait()
    disk.fill()
    checkpoints.save(6, at_once)  # returns: the training goes on
    assert told.changed.wait(PATIENCE)
    assert told.batches == [3]
    disk.empty()
    checkpoints.wait()
    assert told.batches == [3, 6]
    assert told.texts[-1] == ""


def test_where_there_is_no_other_disk_it_holds_the_training(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(disk.path))
    told = Told()
    checkpoints = checkpoints_on(disk, told)
    disk.fill()
    training = threading.Thread(target=checkpoints.save, args=(3, at_once))
    training.start()
    assert told.changed.wait(PATIENCE)
    assert training.is_alive()
    disk.empty()
    training.join(PATIENCE)
    checkpoints.wait()
    assert told.batches == [3]
    assert told.texts[-1] == ""


def test_who_is_told_to_stop_gives_up(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disk, "SECONDS_AFTER_STOP", 0.3)
    told, stop = Told(), threading.Event()
    checkpoints = checkpoints_on(disk, told, stop.is_set)
    disk.fill()
    checkpoints.save(3, lambda folder: lambda throttle: at_once(folder))
    assert told.changed.wait(PATIENCE)
    stop.set()
    with pytest.raises(DiskFullError, match="No space left on device"):
        checkpoints.wait()
    assert told.texts[-1] == ""
    assert told.batches == []


def test_what_cannot_be_repeated_fails_by_name(disk: SmallDisk) -> None:
    checkpoints = checkpoints_on(disk, Told())
    disk.fill()
    with pytest.raises(DiskFullError, match="checkpoint of batch 3"):
        checkpoints.save(3, at_once, repeatable=False)


def test_half_written_files_do_not_keep_the_room(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disk, "SECONDS_AFTER_STOP", 0.3)
    told, free = Told(), disk.free

    def too_much(throttle: Throttle, folder: Path) -> None:
        with (folder / "weights").open("wb") as stream:
            for _ in range(100):
                stream.write(bytes(1 << 18))

    stop = threading.Event()
    checkpoints = checkpoints_on(disk, told, stop.is_set)
    checkpoints.save(3, lambda folder: lambda throttle: too_much(throttle, folder))
    assert told.changed.wait(PATIENCE)
    assert disk.free > free - 65_536
    stop.set()
    with pytest.raises(DiskFullError):
        checkpoints.wait()


def test_the_reasons_that_libraries_give_are_known() -> None:
    unnumbered = OSError("Can't write data (file write failed: errno = 28, error message = 'No space left on device')")
    assert room.lacks_room(unnumbered)
    wrapped = RuntimeError("unexpected pos")
    wrapped.__context__ = OSError(28, "No space left on device")
    assert room.lacks_room(wrapped)
    assert not room.lacks_room(PermissionError(13, "Permission denied"))
