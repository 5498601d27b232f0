"""What a cell does outside of its process: Python itself tells of connections, commands and removed files."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from types import FrameType
from typing import Any

_SET, _SET_BY_LIBRARY = "set", "set by a library"
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
    "os.putenv": (_SET, lambda given: f"os.environ[{_text(given[0])!r}]"),
    "os.unsetenv": (_SET, lambda given: f"os.environ[{_text(given[0])!r}]"),
    "os.rename": ("move", lambda given: _text(given[0])),
    "shutil.move": ("move", lambda given: _text(given[0])),
}
_LOCAL = frozenset({"", "None", "localhost", "127.0.0.1", "::1", "0.0.0.0"})
_MOST = 20
_OURS = tuple(os.path.dirname(os.path.dirname(os.path.dirname(file))) + os.sep for file in (os.path.abspath(__file__),))


class Outside:
    """What is done outside of the process, from one ``begin`` to the next ``end``."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], None] | None = None
        self._busy = self._listens = False

    def listen(self) -> None:
        """Have Python tell; that cannot be taken back."""
        if not self._listens:
            self._listens = True
            sys.addaudithook(self.hook)

    def begin(self) -> None:
        """Take note from now on."""
        self._found = {}

    def end(self) -> tuple[str, ...]:
        """Return what was done, as ``shell: true``; the kinds are network, shell, delete and move."""
        found, self._found = self._found, None
        return tuple(f"{kind}: {what}" for kind, what in found or () if kind not in (_SET, _SET_BY_LIBRARY))

    def settings(self) -> frozenset[str]:
        """Return the variables of the environment that were set until now."""
        return frozenset(what for kind, what in self._found or () if kind == _SET)

    def settings_of_libraries(self) -> frozenset[str]:
        """Return those that a library set which the user's code called."""
        return frozenset(what for kind, what in self._found or () if kind == _SET_BY_LIBRARY)

    def hook(self, event: str, given: tuple[Any, ...]) -> None:
        """Take what Python tells; it does so for every file that is opened, too, hence the early return."""
        if self._found is None or event not in _EVENTS or self._busy:
            return
        self._busy = True
        try:
            kind, tell = _EVENTS[event]
            what = tell(given)
            if len(self._found) >= _MOST or not _matters(kind, what) or not _is_of_the_user():
                return
            if kind == _SET and _is_by_library():
                kind = _SET_BY_LIBRARY
            self._found[kind, what] = None
        except Exception:  # noqa: BLE001 (an error here would be one of the user's code)
            return
        finally:
            self._busy = False


outside = Outside()


def _matters(kind: str, what: str) -> bool:
    if kind == "network":
        return what not in _LOCAL
    if kind in ("shell", _SET):
        return True
    path = os.path.abspath(what)
    here = os.getcwd()
    inside = path == here or path.startswith(here + os.sep)
    hidden = any(part.startswith(".") for part in os.path.relpath(path, here if inside else os.sep).split(os.sep))
    return (inside and not hidden) or not (hidden or path.startswith(tempfile.gettempdir() + os.sep))


def _is_of_the_user() -> bool:
    """Whether it is done for a cell: what an import does it does for every import, and what we do is not the cell's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or file.startswith(_OURS):
            return False
        frame = frame.f_back
    return True


def _is_by_library() -> bool:
    """Whether a library set a variable of the environment, and not the user's code by ``os.environ`` itself."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen") and file != os.__file__:
            return _is_of_library(file)
        frame = frame.f_back
    return True


def _is_of_library(file: str) -> bool:
    from det_native.capture.modules import is_library_file  # it loads half of capture

    return is_library_file(file) and "ipykernel_" not in file and not file.startswith("<")


def _command(program: Any, arguments: Any) -> str:
    if isinstance(arguments, str | bytes):
        return _text(arguments)
    words = [_text(one) for one in arguments] if arguments is not None else [_text(program)]
    return " ".join(words)[:80]


def _text(what: Any) -> str:
    return os.fsdecode(what) if isinstance(what, str | bytes | os.PathLike) else str(what)
