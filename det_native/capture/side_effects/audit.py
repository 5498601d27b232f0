"""What a cell has to do with what is outside of its process: connections, commands, removed files, random bytes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from det_native.capture.side_effects import draws
from det_native.capture.side_effects.owners import owner_of, owners
from det_native.capture.side_effects.paths_seen import PATH_EVENTS, PathsSeen, is_here

#: Events of Python's audit, see its documentation, and what they are.
_EVENTS: dict[str, tuple[str, Callable[[tuple[Any, ...]], str]]] = {
    "socket.getaddrinfo": ("network", lambda given: str(given[0])),
    "socket.gethostbyname": ("network", lambda given: str(given[0])),
    "subprocess.Popen": ("shell", lambda given: _command(given[0], given[1])),
    "os.system": ("shell", lambda given: _text(given[0])),
    "os.posix_spawn": ("shell", lambda given: _command(given[0], given[1])),
    "os.remove": ("delete", lambda given: _text(given[0])),
    "os.rmdir": ("delete", lambda given: _text(given[0])),
    "shutil.rmtree": ("delete", lambda given: _text(given[0])),
    "os.rename": ("move", lambda given: _text(given[0])),
    "shutil.move": ("move", lambda given: _text(given[0])),
}
#: Where events have the open file from whose folder a path is meant, as in the middle of ``rmtree``.
_FOLDERS = {"os.remove": 1, "os.rmdir": 1, "shutil.rmtree": 1, "os.rename": 2}
#: Flags with which files are opened to be read, by ``open()`` and by an import.
_READING = frozenset({os.O_RDONLY, os.O_RDONLY | os.O_CLOEXEC})
_SETTING = frozenset({"os.putenv", "os.unsetenv"})
_TERMINAL = "os.forkpty"  # how IPython runs the command of a line that begins with `!`
_MOVE = "os.chdir"
_MORE = _SETTING | {_TERMINAL, _MOVE}
_LOCAL = frozenset({"", "None", "localhost", "127.0.0.1", "::1", "0.0.0.0"})
_MOST, _MOST_VARIABLES = 20, 1_000


@dataclass
class _Variable:
    """A variable of the environment that was set: what it was, and whether it was anything else since."""

    before: str | None
    was_another: bool = False
    by_user: bool = False

    def restored(self, now: str | None) -> bool:
        """Whether it is what it was, after it was something else: as after ``mock.patch.dict(os.environ)``."""
        return self.was_another and now == self.before


class Outside:
    """What is done outside of the process, from one ``begin`` to the next ``end``.

    Attributes
    ----------
    drew : bool
        Whether the user's code asked the system for random bytes; what a library does with some is its own affair.
    """

    def __init__(self) -> None:
        self.drew = False
        self._found: dict[tuple[str, str], None] | None = None
        self._variables: dict[str, _Variable] = {}
        self._paths = PathsSeen(ended=0.0)
        self._busy = self._listens = False

    def listen(self) -> None:
        """Have Python tell; that cannot be taken back."""
        if not self._listens:
            self._listens = True
            tempfile.gettempdir()  # whose first call holds a lock, and tells of a file, for which the hook asks it
            sys.addaudithook(self.hook)
            draws.listen(self._take_draw)

    def begin(self) -> PathsSeen:
        """Take note from now on; return what will have been seen of paths."""
        self._found, self._variables, self.drew = {}, {}, False
        return self.begin_paths()

    def begin_paths(self) -> PathsSeen:
        """Take note of paths alone from now on: of a cell that was running already."""
        self._paths = PathsSeen()
        return self._paths

    def end(self) -> tuple[str, ...]:
        """Return what was done, as ``shell: true``; the kinds are network, shell, delete and move."""
        found, self._found = self._found, None
        self._paths.end()
        return tuple(f"{kind}: {what}" for kind, what in found or ())

    def settings(self) -> frozenset[str]:
        """Return the variables of the environment that the user's code set until now, and did not set back."""
        return frozenset(
            f"os.environ[{name!r}]"
            for name, one in list(self._variables.items())
            if one.by_user and not one.restored(os.environ.get(name))
        )

    def hook(self, event: str, given: tuple[Any, ...]) -> None:
        """Take what Python tells; it does so for every file that is opened, hence that first, and the early return."""
        if event == "open":
            paths = self._paths
            try:
                if paths.ended is None and not (given[0] in paths.known and given[2] in _READING):
                    paths.open(given[0], given[2], sys._getframe(1))
            except Exception:  # noqa: BLE001 (an error here would be one of the user's code)
                return
        elif event in _EVENTS or event in PATH_EVENTS or event in _MORE:
            self._take(event, given, sys._getframe(1))

    def _take(self, event: str, given: tuple[Any, ...], caller: FrameType) -> None:
        if self._busy or (self._found is None and self._paths.ended is not None):
            return
        self._busy = True
        try:
            if event in PATH_EVENTS:
                self._paths.take(event, given, caller)
            if event in _SETTING:
                if self._found is not None:
                    self._take_variable(caller, *given)
            elif event == _TERMINAL:
                self._paths.went_out = True
            elif event == _MOVE:
                self._paths.move(given[0], caller)
            elif event in _EVENTS and (event not in _FOLDERS or is_here(given[_FOLDERS[event]])):
                self._take_action(caller, *_EVENTS[event], given)
        except Exception:  # noqa: BLE001 (an error here would be one of the user's code)
            return
        finally:
            self._busy = False

    def _take_draw(self, caller: FrameType | None) -> None:
        if self._found is not None and not self.drew and caller is not None:
            used = not _is_of_library(caller.f_code.co_filename) and _is_of_the_user(caller)
            self.drew = used and not draws.throws_it_away(caller)

    def _take_action(
        self, caller: FrameType, kind: str, tell: Callable[[tuple[Any, ...]], str], given: tuple[Any, ...]
    ) -> None:
        what = tell(given)
        if not _matters(kind, what) or not _is_of_the_user(caller):
            return
        self._paths.went_out |= kind in ("network", "shell")
        if self._found is not None and len(self._found) < _MOST:
            self._found[kind, what] = None

    def _take_variable(self, caller: FrameType, key: Any, value: Any = None) -> None:
        if not _is_of_the_user(caller):
            return
        name = _text(key)
        before = os.environ.get(name)  # Python tells before it sets
        if name not in self._variables:
            if len(self._variables) >= _MOST_VARIABLES:
                return
            self._variables[name] = _Variable(before)
        one = self._variables[name]
        one.was_another |= (None if value is None else _text(value)) != one.before
        one.by_user |= not _is_by_library(caller)


outside = Outside()


def _matters(kind: str, what: str) -> bool:
    if kind == "network":
        return what not in _LOCAL
    if kind == "shell":
        return True
    path = os.path.abspath(what)
    here = os.getcwd()
    inside = path == here or path.startswith(here + os.sep)
    hidden = any(part.startswith(".") for part in os.path.relpath(path, here if inside else os.sep).split(os.sep))
    return (inside and not hidden) or not (hidden or path.startswith(tempfile.gettempdir() + os.sep))


def _is_of_the_user(frame: FrameType | None) -> bool:
    """Whether it is done for a cell: what an import does it does for every import, and what we do is not the cell's."""
    return not {"ours", "import"}.intersection(owners(frame))


def _is_by_library(frame: FrameType | None) -> bool:
    """Whether a library set a variable of the environment, and not the user's code by ``os.environ`` itself."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen") and file != os.__file__:
            return _is_of_library(file)
        frame = frame.f_back
    return True


def _is_of_library(file: str) -> bool:
    return owner_of(file) != "user" and not file.startswith("<")  # what is in a text is of whoever runs it


def _command(program: Any, arguments: Any) -> str:
    if isinstance(arguments, str | bytes):
        return _text(arguments)
    words = [_text(one) for one in arguments] if arguments is not None else [_text(program)]
    return " ".join(words)[:80]


def _text(what: Any) -> str:
    return os.fsdecode(what) if isinstance(what, str | bytes | os.PathLike) else str(what)
