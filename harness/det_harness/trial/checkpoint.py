"""Checkpoints of one trial: written by the controller, published behind its back, restored verified."""

from __future__ import annotations

import logging
import queue
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from det_harness.logged.cell_output import CellOutput
from det_harness.trial import after_training
from det_harness.trial.full_disk import DiskWait, has_spare_disk, spare_folder, watched
from det_harness.trial.publications import Publications
from det_harness.trial.publishing import Publication, Rest, disk_errors
from det_harness.trial.services import Reporter
from det_harness.trial.throttle import Throttle
from det_native._version import __version__
from det_native.errors import CheckpointError, DiskFullError
from det_native.frameworks import get_framework
from det_native.schema.manifests import CheckpointManifest, Framework, Sha256
from det_native.storage.checkpoints import CheckpointStorage

logger = logging.getLogger("det_harness")

_OUTPUT = "printed"


@dataclass(frozen=True)
class CheckpointOwner:
    """Whose checkpoints they are; goes into every manifest."""

    framework: Framework
    hparams: dict[str, Any]
    experiment_id: int | None = None
    trial_id: int | None = None
    run_id: str | None = None
    bundle_id: str | None = None


class TrialCheckpoints:
    """Implements ``services.Checkpoints`` on a storage.

    One checkpoint is published at a time, by a thread: writing what is in memory already, hashing, synchronising and
    renaming do not hold up the training. What goes wrong there is raised by the next ``save()`` or ``wait()``.

    Parameters
    ----------
    reporter : Reporter
        Told of every checkpoint once it exists.
    manifests : mapping of str to str, optional
        Hashes of the manifests of the trial's checkpoints, by uuid: others in the storage are not used. Without it, all
        that the storage has of the trial are.
    on_start : callable, optional
        Called with the batches done by the checkpoint that was restored, 0 for none, and with what is to be known of
        its choice: empty, if it is the one to continue from.
    journal : Publications, optional
        Where checkpoints are noted until they are reported.
    stop : callable, optional
        Whether the training is to end: then no room on a full disk is waited for.
    output : CellOutput, optional
        What the training prints: a run that continues from a checkpoint counts on from there.
    """

    def __init__(
        self,
        storage: CheckpointStorage,
        owner: CheckpointOwner,
        reporter: Reporter,
        *,
        resume: CheckpointManifest | None = None,
        manifests: Mapping[str, Sha256] | None = None,
        on_start: Callable[[int, str], None] | None = None,
        journal: Publications | None = None,
        stop: Callable[[], bool] = lambda: False,
        output: CellOutput | None = None,
    ) -> None:
        self._stop = stop
        self._output = output
        self._storage = storage
        self._owner = owner
        self._reporter = reporter
        self._resume = resume
        self._manifests = manifests
        self._on_start = on_start
        self._journal = journal
        self._publication: Publication | None = None
        self._last: CheckpointManifest | None = None
        self._published: queue.SimpleQueue[str] = queue.SimpleQueue()

    def save(
        self,
        batch: int,
        write: Callable[[Path], Rest | None],
        *,
        beside: bool = False,
        repeatable: bool = True,
        metadata: Mapping[str, Any] | None = None,
        on_saved: Callable[[str, Path], None] | None = None,
        uuid: str | None = None,
    ) -> str:
        """Publish what `write` puts into a fresh folder; return the uuid.

        If the training goes on `beside` it on the same processors, it is written slowly, so that the next batches take
        as long as ever; who waits for it ends that.

        While the disk is full it is tried again until there is room, if writing it is `repeatable`: what is left to
        write waits beside the training, which waits at its next checkpoint.

        Raises
        ------
        StorageError
            If this checkpoint cannot be written, or the one before could not be published.
        """
        self.wait()
        uuid = uuid or str(uuid4())
        disk = DiskWait(self._storage.uri, batch, self._reporter.waiting, self._stop)
        try:
            folder, rest = self._written(batch, write, disk if repeatable else None)
        finally:
            disk.over()
        try:
            if on_saved is not None:
                on_saved(uuid, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        manifest = self._manifest(uuid, batch, metadata)
        self._publication = Publication(
            self._storage,
            self._reporter,
            folder,
            manifest,
            self._journal,
            self._published.put,
            rest,
            Throttle(beside=beside),
            disk,
            self._last,
            repeatable=repeatable,
        )
        self._publication.start()
        return uuid

    def save_end(self, write: Callable[[Path], None], metrics: Mapping[str, float] | None = None) -> None:
        """Publish the last checkpoint anew, with what the end of the training has made of its weights.

        Parameters
        ----------
        write : callable
            Writes them into an empty folder.
        metrics : mapping, optional
            Validation metrics of these weights, empty if they were not validated. Without it, those of the batch hold
            for them.

        Raises
        ------
        CheckpointError
            If the last checkpoint is damaged by now.
        StorageError
            If it cannot be written.
        """
        self.wait()
        last = self._last
        if last is None:
            return

        def written(folder: Path) -> None:
            self._storage.fetch(last.uuid, folder, last.sha256)
            after = folder / after_training.FOLDER
            shutil.rmtree(after, ignore_errors=True)
            after.mkdir()
            write(after)

        # The last checkpoint may have metrics of its own, of other weights.
        metadata = CheckpointManifest.with_metrics(last.metadata, metrics)
        self.save(last.batch, written, metadata=metadata)
        self.wait()

    def _written(
        self, batch: int, write: Callable[[Path], Rest | None], disk: DiskWait | None
    ) -> tuple[Path, Rest | None]:
        """Return a fresh folder with what `write` puts into it, and what it leaves for later."""
        spare = False
        while True:
            folder = None
            try:
                folder = spare_folder() if spare else self._storage.workspace()
                with disk_errors(folder, batch):
                    return folder, write(folder)
            except BaseException as error:
                if folder is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                if disk is None or not isinstance(error, DiskFullError):
                    raise
                spare = not spare and has_spare_disk(self._storage.uri)
                if not spare:
                    disk.wait(error, watched(self._storage.uri, folder))

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
            found, notice = self._fetch(folder)
            self._last = found
            if found is not None and self._output is not None:
                self._output.number = found.metadata.get(_OUTPUT, 0)
            if self._on_start is not None:
                self._on_start(found.batch if found else 0, notice)
            if found is not None:
                self._tell_other_versions(found)
            yield folder if found else None

    @property
    def resume(self) -> CheckpointManifest | None:
        """The checkpoint to continue from, as it was reported."""
        return self._resume

    def begin(self, batch: int) -> None:
        """Report that training begins after so many batches, where the code has restored its state by itself."""
        if self._journal is not None:
            self._journal.clean()
        if self._on_start is not None:
            self._on_start(batch, "")

    def workspace(self) -> Path:
        """Return a fresh folder from where the files of a checkpoint are moved without a copy."""
        return self._storage.workspace()

    def manifest(self, uuid: str) -> CheckpointManifest:
        """Return the manifest of a checkpoint in the trial's storage.

        Raises
        ------
        CheckpointNotFoundError, CheckpointCorruptError
        """
        return self._storage.manifest(uuid)

    def fetch(self, uuid: str, into: Path, wanted: Callable[[str], bool] | None = None) -> CheckpointManifest:
        """Copy the files of a checkpoint in the trial's storage, all or those that are wanted, verified.

        Raises
        ------
        CheckpointNotFoundError, CheckpointCorruptError
        """
        expected = None if self._manifests is None else self._manifests.get(uuid)
        return self._storage.fetch(uuid, into, expected, wanted)

    def delete(self, uuid: str) -> None:
        """Remove a checkpoint of the trial's storage, and report that.

        Raises
        ------
        CheckpointNotFoundError
        """
        self.wait()
        self._storage.manifest(uuid)
        self._reporter.checkpoint_deleted(uuid)
        self._storage.delete(uuid)

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
            self._last = publication.complete

    def earlier(self, path: str) -> Path | None:
        """Return where a file of the last checkpoint, saved or restored, lies on this machine; None if nowhere."""
        return None if self._last is None else self._storage.local_path(self._last.uuid, path)

    def published(self) -> list[str]:
        """Return the uuids of the checkpoints that were completed since the last call."""
        found = []
        while not self._published.empty():
            found.append(self._published.get())
        return found

    def _fetch(self, folder: Path) -> tuple[CheckpointManifest | None, str]:
        """Return the checkpoint that is now in the folder, and why it is not the one to continue from."""
        if self._resume is None:
            return None, ""
        wanted, problem = self._resume, ""
        for one in self._candidates(wanted):
            try:
                found = self._storage.fetch(one.uuid, folder, self._expected(one))
            except CheckpointError as error:
                logger.warning("The checkpoint of batch %d cannot be used: %s", one.batch, error)
                problem = problem or str(error)
                continue
            if found.uuid == wanted.uuid:
                return found, ""
            logger.warning("Continuing from the checkpoint %s of batch %d instead.", found.uuid, found.batch)
            return found, f"continued from batch {found.batch}, since a later checkpoint is damaged: {problem}"
        logger.warning("There is no earlier checkpoint of this trial that is whole: training starts from scratch.")
        return None, f"continued from the beginning, since no checkpoint is whole: {problem}"

    def _expected(self, one: CheckpointManifest) -> Sha256:
        """Return the hash that the manifest in the storage has to have."""
        return one.sha256 if self._manifests is None else self._manifests.get(one.uuid, one.sha256)

    def _candidates(self, resume: CheckpointManifest) -> Iterator[CheckpointManifest]:
        """Yield the checkpoint to continue from, and if that fails the earlier ones, the furthest first."""
        yield resume
        own = [
            manifest
            for manifest in self._storage.list()
            if manifest.trial_id == resume.trial_id
            and manifest.experiment_id == resume.experiment_id
            and manifest.uuid != resume.uuid
            and manifest.batch <= resume.batch
            and (self._manifests is None or manifest.uuid in self._manifests)
        ]
        yield from sorted(own, key=lambda manifest: (manifest.batch, manifest.created), reverse=True)

    def _tell_other_versions(self, found: CheckpointManifest) -> None:
        """Say what was installed anew since the checkpoint was written: the training may not end as it would have."""
        framework = get_framework(found.framework).module
        installed = {framework: self._framework_version(), "det_native": __version__}
        then = {framework: found.framework_version, "det_native": found.det_version}
        changed = [name for name, version in installed.items() if then[name] and version != then[name]]
        if changed:
            now = " and ".join(f"{name} {installed[name]}" for name in changed)
            before = " and ".join(f"{name} {then[name]}" for name in changed)
            text = (
                f"The training continues after batch {found.batch} with {now}, where it was begun with {before}: "
                "it may not end as it would have."
            )
            logger.warning("%s", text)
            self._reporter.warning(text)

    def _framework_version(self) -> str:
        module = sys.modules.get(get_framework(self._owner.framework).module)
        return str(getattr(module, "__version__", ""))

    def _manifest(self, uuid: str, batch: int, metadata: Mapping[str, Any] | None) -> CheckpointManifest:
        owner = self._owner
        printed = {_OUTPUT: self._output.number} if self._output is not None and self._output.number else {}
        return CheckpointManifest(
            uuid=uuid,
            framework=owner.framework,
            framework_version=self._framework_version(),
            det_version=__version__,
            batch=batch,
            experiment_id=owner.experiment_id,
            trial_id=owner.trial_id,
            run_id=owner.run_id,
            bundle_id=owner.bundle_id,
            hparams=owner.hparams,
            created=datetime.now(UTC).isoformat(),
            metadata={**(metadata or {}), **printed},
        )
