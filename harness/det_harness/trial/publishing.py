"""The thread that writes what is left of a checkpoint, publishes it and reports it, and what it needs for that."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from det_harness.trial.full_disk import DiskWait, watched
from det_harness.trial.publications import Publications
from det_harness.trial.services import Reporter
from det_harness.trial.throttle import Throttle
from det_native.errors import DetError, DiskFullError, StorageError
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.room import storage_error

T = TypeVar("T")

# What is left to write of a checkpoint once the training may go on.
Rest = Callable[[Throttle], None]


@contextmanager
def disk_errors(folder: Path | str, batch: int) -> Iterator[None]:
    """Let the block, which writes a checkpoint, fail by a StorageError where the disk is at fault.

    What the disk refuses is no error of the user's code, which may be asked for its own state.

    Raises
    ------
    StorageError
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        # torch.save() names but its own source file where the file system did not take something.
        of_torch = "inline_container" in str(error)
        if isinstance(error, OSError) or of_torch:
            said = error.__context__ if of_torch and isinstance(error.__context__, OSError) else error
            raise storage_error(
                f"The checkpoint of batch {batch} cannot be written to {folder}: {said}", error
            ) from error
        raise


class Publication(threading.Thread):
    """Writes what is left of one checkpoint, publishes and reports it."""

    def __init__(
        self,
        storage: CheckpointStorage,
        reporter: Reporter,
        folder: Path,
        manifest: CheckpointManifest,
        journal: Publications | None,
        tell: Callable[[str], None],
        rest: Rest | None,
        throttle: Throttle,
        disk: DiskWait,
        like: CheckpointManifest | None,
        *,
        repeatable: bool,
    ) -> None:
        super().__init__(name="det-checkpoint")
        self.error: Exception | None = None
        self.complete: CheckpointManifest | None = None
        self.throttle = throttle
        self._storage = storage
        self._reporter = reporter
        self._folder = folder
        self._manifest = manifest
        self._journal = journal
        self._tell = tell
        self._rest = rest
        self._disk = disk
        self._like = like
        self._repeatable = repeatable

    def run(self) -> None:
        """Publish; a failure is kept for the training thread."""
        try:
            if self._rest is not None:
                self._with_room(self._write_rest, repeatable=self._repeatable)
                self._rest = None  # what it holds is as large as the model
            location, complete = self._with_room(self._publish)
            self._disk.succeeded()
            self._reporter.checkpoint(location, complete)
            self.complete = complete
            self._tell(complete.uuid)
        except DetError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 (whatever it is, the training thread raises it)
            self._failed(StorageError(f"The checkpoint of batch {self._manifest.batch} cannot be published: {error}"))

    def _with_room(self, step: Callable[[], T], *, repeatable: bool = True) -> T:
        """Take a step, again and again while the disk is full."""
        while True:
            try:
                with disk_errors(self._folder, self._manifest.batch):
                    return step()
            except DiskFullError as error:
                if not repeatable:
                    raise
                self._disk.wait(error, str(self._folder) if self._rest else watched(self._storage.uri, self._folder))

    def _write_rest(self) -> None:
        assert self._rest is not None
        before = _files(self._folder)
        try:
            self._rest(self.throttle)
        except BaseException:
            for path in _files(self._folder) - before:  # others need the room meanwhile, the master among them
                path.unlink(missing_ok=True)
            raise

    def _publish(self) -> tuple[str, CheckpointManifest]:
        if self._journal is not None:
            self._journal.begin(self._manifest.uuid)
        return self._storage.publish(self._folder, self._manifest, self.throttle, self._like)

    def _failed(self, error: Exception) -> None:
        self.error = error
        self._rest = None
        shutil.rmtree(self._folder, ignore_errors=True)
        self._disk.over()


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}
