"""Files that the code of a local run writes."""

from __future__ import annotations

import hashlib
import itertools
import os
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from det_harness.trial.open_files import OpenFiles
from det_native.schema.home import Home
from det_native.schema.outputs import Artifact, WrittenFile
from det_native.storage.file_states import State, changed_files, walk
from det_native.storage.written_files import limits_of, select

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


def artifact(trial_id: int, file: WrittenFile) -> Artifact:
    """Return a file as a master would describe it."""
    created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Artifact(trial_id=trial_id, created=created, **file.model_dump())


def _states(root: Path) -> dict[str, State] | None:
    home = os.path.relpath(os.path.realpath(Home.default().path), os.path.realpath(root))
    found = list(itertools.islice(walk(root, links=True, without={home}), MOST_WALKED + 1))
    return None if len(found) > MOST_WALKED else dict(found)
