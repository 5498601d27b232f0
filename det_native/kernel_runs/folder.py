"""The folder of a run in a process of the user's: made without a master, and found by the next one; its checkpoints."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from det_native.errors import DetError
from det_native.schema.config import ExperimentConfig
from det_native.schema.home import Home
from det_native.schema.kernel_runs import REQUEST_NAME, KernelRun
from det_native.schema.private_files import write_private
from det_native.schema.run_ids import new_id
from det_native.schema.storage_config import Address, MasterStorage, UrlStorage

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
        Whether it goes with the last handle of the run, which nobody records.
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
        """Remove that: another machine's master has the run, or nobody is to record it."""
        (self.path / REQUEST_NAME).unlink(missing_ok=True)

    def discard(self) -> None:
        """Have it go with the last handle of the run, which nobody records."""
        self.withdraw()
        weakref.finalize(self, _remove, self.root if self.temporary else self.path, os.getpid())


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
    folder = _made(RunFolder(Path(tempfile.mkdtemp(prefix="det-run-")), run_id, token, temporary=True))
    folder.discard()
    return folder


def spare_root() -> Path:
    """Return where runs lie whose home cannot be written; a master that starts looks there, too."""
    return Path(tempfile.gettempdir()) / f"det-native-{os.getuid()}"


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


def _made(folder: RunFolder) -> RunFolder:
    for path in (folder.root, folder.path.parent, folder.path):
        path.mkdir(mode=0o700, parents=path is folder.root, exist_ok=True)
    found = folder.root.stat()
    if not folder.in_home and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        raise PermissionError(f"{folder.root} belongs to another user, or others may enter it.")
    return folder


def place_of_checkpoints(
    config: ExperimentConfig, folder: RunFolder, *, elsewhere: bool
) -> tuple[Address, ExperimentConfig]:
    """Return the address, and the configuration that says where it is.

    Parameters
    ----------
    elsewhere : bool
        Whether the master that records the run is not that of this machine.
    """
    from det_native.storage.checkpoints import CheckpointStorage

    here = Address(folder.checkpoints, {})
    if folder.temporary:
        return here, config
    own = config.checkpoint_storage
    if not isinstance(own, MasterStorage):
        try:
            CheckpointStorage(*own.address).check_writable()
            return own.address, config
        except (DetError, OSError) as error:
            print(f"checkpoint_storage: {error} The checkpoints of this run go to {folder.checkpoints}.")
    kept = _kept(folder) if folder.in_home else None
    policy = own.model_dump(include={"save_experiment_best", "save_trial_best", "save_trial_latest"})
    storage: MasterStorage | UrlStorage = MasterStorage(**policy)
    address = kept or here
    if kept is not None or elsewhere or not folder.in_home:
        storage = UrlStorage(type="url", url=address.url, options=address.options, **policy)
    return address, config.model_copy(update={"checkpoint_storage": storage})


def _kept(folder: RunFolder) -> Address | None:
    """Return the storage that the home is set up with, None for its own folder."""
    from det_native.schema.home import Home
    from det_native.schema.start_settings import kept_setting

    for name in ("checkpoints", "storage"):
        kept = json.loads(kept_setting(Home(folder.root), name, {}) or "{}")
        if kept.get("url"):
            below = [] if name == "checkpoints" else ["checkpoints"]
            return Address("/".join([kept["url"].rstrip("/"), *below]), dict(kept.get("options") or {}))
    return None
