"""The folder of a run in a process of the user's: made without a master, and found by the next one that starts."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from det_native.schema.home import Home
from det_native.schema.kernel_runs import REQUEST_NAME, KernelRun
from det_native.schema.private_files import write_private
from det_native.schema.run_ids import new_id

#: ``off`` has runs in processes of the user's recorded nowhere.
VARIABLE = "DET_RECORD"


def records() -> bool:
    """Return whether runs of this process are to be recorded."""
    return os.environ.get(VARIABLE, "").strip().lower() not in ("off", "0", "no", "false")


@dataclass(frozen=True)
class RunFolder:
    """Where a run leaves what its master reads.

    Attributes
    ----------
    root : Path
        The home; where it cannot be written, a folder of this user's among the temporary files.
    token : str
        The run's reports come with it.
    temporary : bool
        Whether it goes with the run, which nobody records.
    """

    root: Path
    run_id: str
    token: str = field(repr=False)
    temporary: bool = False

    @property
    def path(self) -> Path:
        """The run's own folder."""
        return self.root / "runs" / self.run_id

    @property
    def blobs(self) -> str:
        """Where the contents lie of the program, and of what the training logs and writes."""
        return str(self.root / "blobs")

    @property
    def checkpoints(self) -> str:
        """Where the checkpoints go, unless the configuration names another place."""
        return str(self.root / "checkpoints")

    @property
    def tensorboard(self) -> Path:
        """Where the event files go."""
        return self.path / "tensorboard"

    @property
    def in_home(self) -> bool:
        """Whether the master of this machine finds it without being told."""
        return self.root == Home.default().path

    def leave(self, request: KernelRun) -> None:
        """Write what the next master takes the run in by."""
        write_private(self.path / REQUEST_NAME, request.model_dump_json(exclude_unset=True))

    def withdraw(self) -> None:
        """Remove that: another machine's master has the run."""
        (self.path / REQUEST_NAME).unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the run's own folder: it has not begun."""
        shutil.rmtree(self.path, ignore_errors=True)

    def remove(self) -> None:
        """Remove the folder of a run that nobody records."""
        if self.temporary:
            shutil.rmtree(self.root, ignore_errors=True)


def make_run_folder(*, recorded: bool) -> RunFolder:
    """Make the folder of a run that begins now.

    Parameters
    ----------
    recorded : bool
        Whether a master is to get to know of it; where no folder can be written that one finds, none does.
    """
    run_id, token = new_id(), secrets.token_urlsafe(32)
    for root in (Home.default().path, spare_root()) if recorded else ():
        with suppress(OSError):
            return _made(RunFolder(root, run_id, token))
    return _made(RunFolder(Path(tempfile.mkdtemp(prefix="det-run-")), run_id, token, temporary=True))


def spare_root() -> Path:
    """Return where runs lie whose home cannot be written; a master that starts looks there, too."""
    return Path(tempfile.gettempdir()) / f"det-native-{os.getuid()}"


def _made(folder: RunFolder) -> RunFolder:
    for path in (folder.root, folder.path.parent, folder.path):
        path.mkdir(mode=0o700, parents=path is folder.root, exist_ok=True)
    found = folder.root.stat()
    if not folder.in_home and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        raise PermissionError(f"{folder.root} belongs to another user, or others may enter it.")
    return folder
