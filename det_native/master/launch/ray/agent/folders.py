"""Where an agent keeps things on its machine: what it shares with other agents there, and what is its own."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from det_native.errors import StorageError
from det_native.schema.ranks import rank_folder
from det_native.schema.sockets import fits, short_path
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.folder import INCOMING
from det_native.storage.manifest_file import MANIFEST
from det_native.storage.publication_notes import FOLDER as NOTES

_FOLDER_MODE = 0o700
_SOCKET_MODE = 0o600
_BACKLOG = 2048
# An agent whose process is being ended has its lock for a moment still.
_LOCK_SECONDS = 10.0
# Every use makes blobs and checkpoints of the cache new again; a job reads them when it begins.
_UNUSED_SECONDS = 14 * 86_400.0
_OWNER_FILE = "agent.txt"
# Which machine the folder is of: several may have the same home, and locks need not reach from one to the other.
_HOST_FILE = "host.txt"
_LOCK_FILE = "agent.lock"
# What an agent leaves that is killed: of no use to the next one, since its workers are killed too.
_LEFTOVERS = ("runs", "checkpoints", "tensorboard")


@dataclass(frozen=True)
class AgentFolders:
    """Paths of an agent.

    Attributes
    ----------
    root : Path
        The agent's own folder. Beside it lies ``cache``, which all agents of the machine share.
    """

    root: Path

    @property
    def cache(self) -> Path:
        """What agents of this machine share."""
        return self.root.parent / "cache"

    @property
    def blobs(self) -> Path:
        """Blobs: those of bundles, brought here, and those that workers store."""
        return self.cache / "blobs"

    @property
    def data(self) -> Path:
        """The store of data, as far as jobs here have needed it."""
        return self.cache / "data"

    @property
    def other_checkpoints(self) -> Path:
        """Checkpoints of other trials that jobs here begin with."""
        return self.cache / "checkpoints"

    @property
    def runs(self) -> Path:
        """Folders of runs."""
        return self.root / "runs"

    @property
    def checkpoints(self) -> Path:
        """Checkpoints that runs here have written or continue from, as long as they are needed."""
        return self.root / "checkpoints"

    @property
    def tensorboard(self) -> Path:
        """Event files, by experiment and trial."""
        return self.root / "tensorboard"

    @property
    def standby(self) -> Path:
        """The empty folder in which standbys wait."""
        return self.root / "standby"

    def run(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self.runs / run_id

    def rank(self, run_id: str, rank: int) -> Path:
        """Return the folder of one process of a run."""
        return rank_folder(self.run(run_id), rank)

    def prepare(self, owner: str) -> FileLock:
        """Make the folders, without what an earlier agent has left; return the lock that this agent holds.

        Parameters
        ----------
        owner : str
            Which cluster of which master the agent is for.

        Raises
        ------
        StorageError
            If another agent uses the folder.
        """
        for folder in (self.root, self.cache, self.blobs, self.data, self.other_checkpoints):
            folder.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        lock = FileLock(self.root / _LOCK_FILE, mode=0o600, thread_local=False)
        try:
            lock.acquire(timeout=_LOCK_SECONDS)
        except Timeout as error:
            raise StorageError(f"Another agent runs in {self.root}: give this one another folder.") from error
        try:
            self._prepare_locked(owner)
        except BaseException:
            lock.release()
            raise
        return lock

    def _prepare_locked(self, owner: str) -> None:
        note = self.root / _OWNER_FILE
        if note.exists():
            earlier = note.read_text(encoding="utf-8")
            if earlier != owner:
                raise StorageError(f"{self.root} belongs to the agent of {earlier!r}: give that of {owner!r} another.")
            self._keep_notes()
            for name in _LEFTOVERS:
                remove_folder(self.root / name)
                for unfinished in self.root.glob(f".{name}.*"):
                    shutil.rmtree(unfinished, ignore_errors=True)
        note.write_text(owner, encoding="utf-8")
        (self.root / _HOST_FILE).write_text(platform.node(), encoding="utf-8")
        for name in (*_LEFTOVERS, "standby"):
            (self.root / name).mkdir(exist_ok=True, mode=_FOLDER_MODE)
        # Workers look for these in their home, which is the agent's folder.
        (self.cache / "environments").mkdir(exist_ok=True, mode=_FOLDER_MODE)
        for link, target in (("environments", self.cache / "environments"), ("cache", self.cache)):
            with suppress(FileExistsError):
                (self.root / link).symlink_to(target, target_is_directory=True)

    def _keep_notes(self) -> None:
        """Put the notes of checkpoints aside that were on their way to another storage when the agent was killed."""
        for note in (self.runs / NOTES).glob("*.json"):
            self.put_aside(note)

    def put_aside(self, note: Path) -> None:
        """Keep the note of a checkpoint until that is removed, longer than the folder of its run."""
        self.notes_left.mkdir(exist_ok=True, mode=_FOLDER_MODE)
        note.replace(self.notes_left / note.name)

    @property
    def notes_left(self) -> Path:
        """Notes of checkpoints whose reports went with an earlier agent, if they were written at all."""
        return self.root / "notes"

    def remove_deserted(self) -> None:
        """Remove what other agents of the same master have left that were on this machine and are gone.

        Ray takes a machine that was started again for another one, whose agent has another folder. Only the file of
        the lock stays of an old one: whoever waits for it has it open.
        """
        for folder in self.root.parent.iterdir():
            if folder == self.root or not (folder / _OWNER_FILE).is_file():
                continue
            lock = FileLock(folder / _LOCK_FILE, mode=0o600, thread_local=False)
            with suppress(Timeout, OSError), lock.acquire(timeout=0):
                if all(_text(folder / name) == _text(self.root / name) for name in (_OWNER_FILE, _HOST_FILE)):
                    self._empty(AgentFolders(folder))

    def _empty(self, other: AgentFolders) -> None:
        """Remove all that an agent has left, but for the notes of checkpoints, which this one gets."""
        for note in [*(other.runs / NOTES).glob("*.json"), *other.notes_left.glob("*.json")]:
            self.put_aside(note)
        for path in other.root.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != _LOCK_FILE:
                path.unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """Remove what killed workers left of checkpoints: the folder of each has the number of its process."""
        for folder in (self.checkpoints / INCOMING).glob("*-*"):
            number = folder.name.partition("-")[0]
            if number.isdigit() and not psutil.pid_exists(int(number)):
                shutil.rmtree(folder, ignore_errors=True)

    def remove_unused(self) -> None:
        """Remove from the cache what no job has needed for weeks."""
        before = time.time() - _UNUSED_SECONDS
        store, checkpoints = BlobStore(str(self.blobs)), CheckpointStorage(str(self.other_checkpoints))
        for blob in store.entries():
            if blob.modified < before:
                store.delete(blob.sha256)
        for folder in self.other_checkpoints.iterdir():
            with suppress(OSError):
                if not folder.name.startswith(".") and (folder / MANIFEST).stat().st_mtime < before:
                    remove_folder(folder)
        store.remove_leftovers()
        checkpoints.remove_leftovers()
        self._remove_unused_data(before)

    def _remove_unused_data(self, before: float) -> None:
        """Remove data that nobody has asked for since then, unless a run of this machine has links to it."""
        old = [path for folder in ("contents/??", "partial") for path in self.data.glob(f"{folder}/*")]
        old = [path for path in old if path.lstat().st_mtime < before]
        linked = _linked_names(self.root.parent) if old else set()
        for path in old:
            with suppress(OSError):
                if path.name not in linked and path.lstat().st_mtime < before:
                    path.unlink()

    def listen(self) -> tuple[socket.socket, Path]:
        """Return a listening socket and its path: ``master.sock`` here, or a shorter one where that is too long.

        Raises
        ------
        StorageError
            If there is no place for it.
        """
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        reason: OSError | None = None
        for short in (False, True):
            try:
                path = short_path(str(self.root), ("/tmp",)) if short else self.root / "master.sock"
                if fits(path):
                    path.unlink(missing_ok=True)
                    listening.bind(str(path))
                    path.chmod(_SOCKET_MODE)
                    listening.listen(_BACKLOG)
                    return listening, path
            except OSError as error:
                reason = error
        listening.close()
        raise StorageError(f"The agent cannot listen at {self.root / 'master.sock'}: {reason}.")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def _linked_names(agents: Path) -> set[str]:
    """Return the names of what the working directories of all agents' runs have links to."""
    names: set[str] = set()
    pending = [str(path) for path in agents.glob("*/runs")]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    names.add(os.path.basename(os.readlink(entry.path)))
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return names


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, at once for whoever looks for it under its name."""
    hidden = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
    try:
        os.rename(folder, hidden)
    except FileNotFoundError:
        return
    shutil.rmtree(hidden, ignore_errors=True)
