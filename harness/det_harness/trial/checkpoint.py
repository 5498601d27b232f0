"""Checkpoints of one trial: written by the controller, published behind its back, restored verified."""

from __future__ import annotations

import logging
import queue
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from det_harness.trial.services import Reporter
from det_harness.trial.throttle import Throttle
from det_native._version import __version__
from det_native.errors import CheckpointError, DetError, StorageError
from det_native.frameworks import get_framework
from det_native.schema.manifests import CheckpointManifest, Framework

logger = logging.getLogger("det_harness")


class Storage(Protocol):
    """What is needed of ``det_native.storage.checkpoints.CheckpointStorage``."""

    def workspace(self) -> Path:
        """Return a fresh empty folder to write into."""

    def publish(
        self,
        directory: Path,
        manifest: CheckpointManifest,
        throttle: Callable[[Iterable[bytes]], Iterable[bytes]],
    ) -> tuple[str, CheckpointManifest]:
        """Make the folder a checkpoint; return its location and the complete manifest."""

    def fetch(self, uuid: str, into: Path) -> CheckpointManifest:
        """Copy a checkpoint's files, verified."""

    def list(self) -> list[CheckpointManifest]:
        """Return the manifests of all complete checkpoints."""


@dataclass(frozen=True)
class CheckpointOwner:
    """Whose checkpoints they are; goes into every manifest."""

    framework: Framework
    hparams: dict[str, Any]
    experiment_id: int | None = None
    trial_id: int | None = None
    run_id: str | None = None
    bundle_id: str | None = None


class Journal(Protocol):
    """What is needed of ``det_harness.trial.publications.Publications``; the reporter ends what is begun here."""

    def begin(self, uuid: str) -> None:
        """Note that a checkpoint is about to appear."""

    def clean(self) -> None:
        """Delete what killed runs published and did not report."""


class TrialCheckpoints:
    """Implements ``services.Checkpoints`` on a storage.

    One checkpoint is published at a time, by a thread: writing what is in memory already, hashing, synchronising and
    renaming do not hold up the training. What goes wrong there is raised by the next ``save()`` or ``wait()``.

    Parameters
    ----------
    storage : Storage
    owner : CheckpointOwner
    reporter : Reporter
        Told of every checkpoint once it exists.
    resume : CheckpointManifest, optional
        The checkpoint to continue from.
    on_start : callable, optional
        Called with the batches done by the checkpoint that was restored, 0 for none.
    journal : Journal, optional
        Where checkpoints are noted until they are reported.
    """

    def __init__(
        self,
        storage: Storage,
        owner: CheckpointOwner,
        reporter: Reporter,
        *,
        resume: CheckpointManifest | None = None,
        on_start: Callable[[int], None] | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._storage = storage
        self._owner = owner
        self._reporter = reporter
        self._resume = resume
        self._on_start = on_start
        self._journal = journal
        self._publication: _Publication | None = None
        self._published: queue.SimpleQueue[str] = queue.SimpleQueue()

    def save(
        self,
        batch: int,
        write: Callable[[Path], Callable[[Throttle], None] | None],
        *,
        beside: bool = False,
        metadata: Mapping[str, Any] | None = None,
        on_saved: Callable[[str, Path], None] | None = None,
    ) -> str:
        """Publish what `write` puts into a fresh folder; return the uuid.

        If the training goes on `beside` it on the same processors, it is written slowly, so that the next batches take
        as long as ever; who waits for it ends that.

        Raises
        ------
        StorageError
            If this checkpoint cannot be written, or the one before could not be published.
        """
        self.wait()
        uuid = str(uuid4())
        folder = self._storage.workspace()
        try:
            with disk_errors(folder, batch):
                rest = write(folder)
            if on_saved is not None:
                on_saved(uuid, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        manifest = self._manifest(uuid, batch, metadata)
        self._publication = _Publication(
            self._storage,
            self._reporter,
            folder,
            manifest,
            self._journal,
            self._published.put,
            rest,
            Throttle(beside=beside),
        )
        self._publication.start()
        return uuid

    @contextmanager
    def restore(self) -> Iterator[Path | None]:
        """Give a verified local copy of the checkpoint to continue from, or None to start from scratch.

        If the checkpoint is damaged, the furthest earlier one of the trial that is whole takes its place, with a line
        in the log. What earlier runs left of checkpoints that they did not report is removed.
        """
        if self._journal is not None:
            self._journal.clean()
        with tempfile.TemporaryDirectory(prefix="det-restore-") as temporary:
            folder = Path(temporary) / "checkpoint"
            found = self._fetch(folder)
            if self._on_start is not None:
                self._on_start(found.batch if found else 0)
            yield folder if found else None

    def wait(self) -> None:
        """Block until all checkpoints are published.

        Raises
        ------
        StorageError
            If one could not be published.
        """
        publication = self._publication
        if publication is not None:
            publication.throttle.release()
            publication.join()  # interrupted by Ctrl-C, it is waited for again
            self._publication = None
            if publication.error is not None:
                raise publication.error

    def published(self) -> list[str]:
        """Return the uuids of the checkpoints that were completed since the last call."""
        found = []
        while not self._published.empty():
            found.append(self._published.get())
        return found

    def _fetch(self, folder: Path) -> CheckpointManifest | None:
        if self._resume is None:
            return None
        try:
            return self._storage.fetch(self._resume.uuid, folder)
        except CheckpointError as error:
            logger.warning("The checkpoint of batch %d cannot be used: %s", self._resume.batch, error)
        for earlier in self._earlier(self._resume):
            try:
                found = self._storage.fetch(earlier.uuid, folder)
            except CheckpointError as error:
                logger.warning("The checkpoint of batch %d cannot be used: %s", earlier.batch, error)
                continue
            logger.warning("Continuing from the checkpoint %s of batch %d instead.", found.uuid, found.batch)
            return found
        logger.warning("There is no earlier checkpoint of this trial that is whole: training starts from scratch.")
        return None

    def _earlier(self, resume: CheckpointManifest) -> list[CheckpointManifest]:
        own = [
            manifest
            for manifest in self._storage.list()
            if manifest.trial_id == resume.trial_id
            and manifest.experiment_id == resume.experiment_id
            and manifest.uuid != resume.uuid
            and manifest.batch <= resume.batch
        ]
        return sorted(own, key=lambda manifest: (manifest.batch, manifest.created), reverse=True)

    def _manifest(self, uuid: str, batch: int, metadata: Mapping[str, Any] | None) -> CheckpointManifest:
        owner = self._owner
        module = sys.modules.get(get_framework(owner.framework).module)
        return CheckpointManifest(
            uuid=uuid,
            framework=owner.framework,
            framework_version=str(getattr(module, "__version__", "")),
            det_version=__version__,
            batch=batch,
            experiment_id=owner.experiment_id,
            trial_id=owner.trial_id,
            run_id=owner.run_id,
            bundle_id=owner.bundle_id,
            hparams=owner.hparams,
            created=datetime.now(UTC).isoformat(),
            metadata=dict(metadata or {}),
        )


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
            raise StorageError(f"The checkpoint of batch {batch} cannot be written to {folder}: {said}") from error
        raise


class _Publication(threading.Thread):
    """Writes what is left of one checkpoint, publishes and reports it."""

    def __init__(
        self,
        storage: Storage,
        reporter: Reporter,
        folder: Path,
        manifest: CheckpointManifest,
        journal: Journal | None,
        tell: Callable[[str], None],
        rest: Callable[[Throttle], None] | None,
        throttle: Throttle,
    ) -> None:
        super().__init__(name="det-checkpoint")
        self.error: Exception | None = None
        self.throttle = throttle
        self._storage = storage
        self._reporter = reporter
        self._folder = folder
        self._manifest = manifest
        self._journal = journal
        self._tell = tell
        self._rest = rest

    def run(self) -> None:
        """Publish; a failure is kept for the training thread."""
        rest, self._rest = self._rest, None  # what it holds is as large as the model
        try:
            if rest is not None:
                with disk_errors(self._folder, self._manifest.batch):
                    rest(self.throttle)
                del rest
            if self._journal is not None:
                self._journal.begin(self._manifest.uuid)
            location, complete = self._storage.publish(self._folder, self._manifest, self.throttle)
            self._reporter.checkpoint(location, complete)
            self._tell(complete.uuid)
        except DetError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 (whatever it is, the training thread raises it)
            self._failed(StorageError(f"The checkpoint of batch {self._manifest.batch} cannot be published: {error}"))

    def _failed(self, error: Exception) -> None:
        self.error = error
        shutil.rmtree(self._folder, ignore_errors=True)
