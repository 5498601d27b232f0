"""Files that the code of a local run writes: those of a run in this process lie where it put them and are only listed;
those of processes of its own are brought to where this process would have put them.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from det_harness.local.report import LocalReporter
from det_harness.trial.open_files import OpenFiles
from det_native.errors import DetError
from det_native.schema.home import Home
from det_native.schema.job import TrialJob
from det_native.schema.outputs import Artifact, WrittenFile
from det_native.schema.ranks import rank_folder
from det_native.storage.blobs import BlobStore
from det_native.storage.file_states import State, changed_files, state_of, walk
from det_native.storage.paths import safe_join
from det_native.storage.written_files import limits_of, look_at_left, select

logger = logging.getLogger("det_native")

#: In a folder with more files, which may be a home folder, nobody looks for those that are new.
MOST_WALKED = 10_000


@dataclass
class WorkingDirectory:
    """The directory in which a local trial runs, as it was when the trial began.

    Attributes
    ----------
    root : Path
    before : dict or None
        The states of its files; None if there are too many.
    """

    root: Path
    before: dict[str, State] | None = field(repr=False)

    @classmethod
    def now(cls) -> WorkingDirectory:
        """Look at the working directory of this process."""
        root = Path.cwd()
        return cls(root, _states(root))

    def written(self, trial_id: int, batch: int) -> list[Artifact]:
        """Return the files that are new, or have changed since; where nobody has looked, one row says so."""
        now = None if self.before is None else _states(self.root)
        if self.before is None or now is None:
            note = f"The working directory has more than {MOST_WALKED} files: those of the training are not listed."
            return [artifact(trial_id, WrittenFile(path=".", size=0, batch=batch, note=note))]
        OpenFiles().flush({(state[0], state[1]) for state in now.values()})
        changed = changed_files(self.before, _states(self.root) or now)
        selection = select(changed, limits_of(os.environ), batch)
        files = list(selection.refused.values())
        for name in selection.kept:
            with suppress(OSError), open(self.root / name, "rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
                files.append(WrittenFile(path=name, sha256=sha256, size=changed[name][2], batch=batch))
        return [artifact(trial_id, file) for file in sorted(files, key=lambda file: file.path)]

    def bring(self, files: Iterable[WrittenFile], blobs: BlobStore, run: str) -> dict[str, str]:
        """Put files of processes of their own where plain code would have put them; return their paths there.

        A file that somebody else has changed since the trial began stays; the new one lies beside it.

        Parameters
        ----------
        files : iterable of WrittenFile
        blobs : BlobStore
            Has their contents.
        run : str
            What the experiment is called in the name of a file beside another one.
        """
        placed: dict[str, str] = {}
        for file in files:
            if file.sha256 is None:
                continue
            try:
                target = safe_join(self.root, file.path)
                if not self._is_free(target, file.path, file.sha256):
                    target = target.with_name(f"{target.stem} (experiment {run}){target.suffix}")
                    logger.warning(
                        "%s has changed since the training began and stays; what the training wrote is %s.",
                        *(file.path, target.name),
                    )
                target.parent.mkdir(parents=True, exist_ok=True)
                _write(target, blobs, file.sha256)
                placed[file.path] = target.relative_to(self.root).as_posix()
            except (DetError, OSError) as error:
                logger.warning("%s, which the training has written, cannot be put here: %s", file.path, error)
        return placed

    def _is_free(self, target: Path, name: str, sha256: str) -> bool:
        state = state_of(target)
        if state is None or (self.before is not None and self.before.get(name) == state):
            return True
        with open(target, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == sha256


def take_files(
    job: TrialJob, size: int, place: WorkingDirectory, reporter: LocalReporter, batch: int, run: str
) -> list[tuple[Artifact, Path]]:
    """Bring what processes of their own have written to `place`; return the files, and where they lie now.

    Parameters
    ----------
    job : TrialJob
        Of the processes, which are gone.
    size : int
        How many there were.
    place : WorkingDirectory
    reporter : LocalReporter
        Knows what they have reported.
    batch : int
        Batches done.
    run : str
        What the experiment is called.
    """
    blobs = BlobStore(job.outputs)
    folders = [rank_folder(Path(job.directory), rank) for rank in range(size)]
    changes = look_at_left(folders, blobs, reporter.written, batch)
    reporter.artifacts(changes.files, changes.removed)
    placed = place.bring(reporter.written.values(), blobs, run)
    return [
        (artifact(job.trial_id, file), place.root / placed.get(file.path, file.path))
        for file in reporter.written.values()
    ]


def artifact(trial_id: int, file: WrittenFile) -> Artifact:
    """Return a file as a master would describe it."""
    created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Artifact(trial_id=trial_id, created=created, **file.model_dump())


def _states(root: Path) -> dict[str, State] | None:
    home = os.path.relpath(os.path.realpath(Home.default().path), os.path.realpath(root))
    found = list(itertools.islice(walk(root, links=True, without={home}), MOST_WALKED + 1))
    return None if len(found) > MOST_WALKED else dict(found)


def _write(target: Path, blobs: BlobStore, sha256: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix=".det-", dir=target.parent))
    try:
        blobs.write_to(sha256, folder / "content")
        (folder / "content").replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
