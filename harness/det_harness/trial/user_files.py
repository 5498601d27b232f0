"""Files that the user's code writes while it trains: into each checkpoint, and back.

A log or the best model so far is part of the training's state as the weights are: a run that continues has a working
directory of its own, and has to find there what was there at the checkpoint. What is kept is every file that is new or
has changed since training began; what the program makes before (its data, say) it makes again.

In a checkpoint they lie in ``files/``, under their names, and ``files.json`` says which they are. One that has not
changed since the checkpoint before is linked to there: on one disk its content is stored once.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from det_harness.trial.open_files import OpenFiles
from det_native.storage.file_states import State, changed_files, state_of, walk
from det_native.storage.paths import UnsafePathError, check_relative, safe_join
from det_native.storage.written_files import megabytes

logger = logging.getLogger("det_native")

LIMIT_VARIABLE = "DET_KEPT_FILES_MB"
DEFAULT_LIMIT_MB = 1024
_FORMAT = 1
# A file that was changed so shortly before may change again without a later time.
_CERTAIN_AFTER_NS = 100_000_000
_NAMES_SHOWN = 5


class UserFiles:
    """The files of one folder that a training writes.

    Parameters
    ----------
    name : str
        What they are called in a checkpoint.
    earlier : callable, optional
        Returns where a file of the trial's last checkpoint lies on this machine, by its path there; None if nowhere.
    whole : bool
        The folder is the trial's alone and outlives its runs: everything in it is kept, and what is not of the
        checkpoint is removed on restoring, which happens once.
    """

    def __init__(
        self,
        root: Path,
        name: str = "files",
        *,
        earlier: Callable[[str], Path | None] = lambda path: None,
        whole: bool = False,
    ) -> None:
        self._root = root
        self._name = name
        self._earlier = earlier
        self._whole = whole
        self._limit = _limit()
        self._before: dict[str, State] = {}
        self._restored: dict[str, State] = {}
        self._open = OpenFiles()
        self._said: set[str] = set()

    @property
    def root(self) -> Path:
        """The folder."""
        return self._root

    def of_trial(self, root: Path, name: str) -> UserFiles:
        """Return the files of another folder, which is the trial's alone."""
        return UserFiles(root, name, earlier=self._earlier, whole=True)

    def begin(self) -> None:
        """Training begins: what is there now, and was not restored, is not kept unless it changes."""
        if not self._whole:
            self._before = {name: state for name, state in self._states().items() if name not in self._restored}

    def save(self, folder: Path) -> None:
        """Put the files into the folder of a checkpoint."""
        present = self._states()
        self._open.flush({(state[0], state[1]) for state in present.values()})
        present = self._states()
        changed = changed_files(self._before, present)
        removed = sorted(name for name in self._before if name not in present)
        if not changed and not removed:
            return
        known = self._known()
        files: dict[str, State | None] = {}
        for name in self._within_limit(changed):
            target = folder / self._name / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if known.get(name) == changed[name] and self._link(name, target):
                files[name] = changed[name]
            elif self._copy(name, target):
                files[name] = self._certain(name, changed[name])
        index = {"format": _FORMAT, "files": files, "removed": removed}
        (folder / f"{self._name}.json").write_text(json.dumps(index), encoding="utf-8")
        self._tell(files, sum(changed[name][2] for name in files))

    def restore(self, folder: Path) -> None:
        """Make the files what they were when the folder of a checkpoint was written.

        Each is written in place: whoever has opened it since goes on at its end. May be called again, after the user's
        code was at work: what that has changed is restored again.
        """
        index = _index(folder / f"{self._name}.json")
        wanted = index.get("files", {})
        self._open.flush({(state[0], state[1]) for state in self._states().values()})
        if self._whole and not self._restored:
            for name in self._states():
                if name not in wanted:
                    (self._root / name).unlink(missing_ok=True)
        for name in index.get("removed", []):
            safe_join(self._root, name).unlink(missing_ok=True)
        for name in wanted:
            target = safe_join(self._root, name)
            if name not in self._restored or self._restored[name] != state_of(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / self._name / name, target)
                self._restored[name] = state_of(target) or []
        self._open.move_to_end({(state[0], state[1]) for state in self._restored.values()})

    def _states(self) -> dict[str, State]:
        return {name: state for name, state in walk(self._root) if self._has_usable_name(name)}

    def _has_usable_name(self, name: str) -> bool:
        try:
            check_relative(name)
        except UnsafePathError as error:
            self._say_once(name, f"A file that the training wrote is not kept with its checkpoints: {error}")
            return False
        return True

    def _known(self) -> dict[str, Any]:
        """Return of which states the last checkpoint has copies."""
        path = self._earlier(f"{self._name}.json")
        files: dict[str, Any] = _index(path).get("files", {}) if path is not None else {}
        return files

    def _link(self, name: str, target: Path) -> bool:
        there = self._earlier(f"{self._name}/{name}")
        if there is None:
            return False
        try:
            os.link(there, target)
        except OSError:  # removed meanwhile, on another disk, or a file system without links: it is copied
            return False
        return True

    def _copy(self, name: str, target: Path) -> bool:
        try:
            source = open(self._root / name, "rb")  # noqa: SIM115 - what cannot be read is no error of the disk's
        except FileNotFoundError:
            return False
        except OSError as error:
            self._say_once(name, f"{name} cannot be read, and is not kept with the checkpoints: {error}")
            return False
        with source, open(target, "wb") as copy:
            shutil.copyfileobj(source, copy, 4 << 20)
        return True

    def _certain(self, name: str, state: State) -> State | None:
        """Return the state of which a copy was taken, None if the file may have changed since without its telling."""
        old_enough = state[3] < time.time_ns() - _CERTAIN_AFTER_NS
        return state if old_enough and state_of(self._root / name) == state else None

    def _within_limit(self, states: dict[str, State]) -> list[str]:
        """Return which files to keep: all, or as many as there is room for, the smallest first."""
        kept: list[str] = []
        left: list[str] = []
        total = 0
        for name in sorted(states, key=lambda each: (states[each][2], each)):
            total += states[name][2]
            (kept if total <= self._limit else left).append(name)
        for name in left:
            self._say_once(
                name,
                f"{name} ({megabytes(states[name][2])}) is not kept with the checkpoints: the files that this "
                f"training has written are more than {megabytes(self._limit)}, the limit, and the largest are left "
                f"out; after a restart it is missing. Set environment_variables: [{LIMIT_VARIABLE}=...] (in MB) for a "
                "higher limit, or write data before fit(): what is there when training begins is not kept.",
            )
        return sorted(kept)

    def _tell(self, files: dict[str, State | None], size: int) -> None:
        if files and "" not in self._said:
            self._said.add("")
            names = ", ".join(list(files)[:_NAMES_SHOWN]) + (" ..." if len(files) > _NAMES_SHOWN else "")
            logger.info(
                "Files that the training has written are kept with its checkpoints: %s (%s; at most %s, see %s).",
                *(names, megabytes(size), megabytes(self._limit), LIMIT_VARIABLE),
            )

    def _say_once(self, name: str, text: str) -> None:
        if name not in self._said:
            self._said.add(name)
            logger.warning("%s", text)


def _index(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def _limit() -> int:
    written = os.environ.get(LIMIT_VARIABLE, "")
    try:
        return int(float(written or DEFAULT_LIMIT_MB) * 1e6)
    except ValueError:
        logger.warning("%s=%r is no number of MB; %d is used.", LIMIT_VARIABLE, written, DEFAULT_LIMIT_MB)
        return int(DEFAULT_LIMIT_MB * 1e6)
