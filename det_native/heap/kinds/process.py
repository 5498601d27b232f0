"""What belongs to a process: threads, locks, files, generators, bars."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import BY_NAME, BY_PREFIX, VALUE, Kind, Left, State, StateKind, Stays


def _place_in_file(file: Any) -> Any:
    try:
        return (file.closed, None if file.closed else file.tell())
    except Exception:  # noqa: BLE001 (a file that has no place)
        return None


def _place_in_code(generator: Any) -> Any:
    frames = (getattr(generator, f"{prefix}_frame", None) for prefix in ("gi", "cr", "ag"))
    frame = next((frame for frame in frames if frame is not None), None)
    if frame is None:
        return None
    return frame.f_lasti, {
        name: value for name, value in frame.f_locals.items() if type(value) in (int, str, float, bool)
    }


class FreshKind(Kind):
    """A lock or the like: one that exists stays as it is, a new one is made empty.

    Parameters
    ----------
    make : callable, optional
        None of what pickle finds by its name.
    """

    def __init__(self, make: Callable[[], Any] | None = None) -> None:
        self._make = make

    def take(self, obj: Any) -> State:
        return (), None

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        """Leave it as it is."""

    def reduce(self, obj: Any) -> Any:
        return (self._make, ()) if self._make else NotImplemented


class WeakKind(Kind):
    """A weak reference."""

    in_place = False

    def take(self, obj: Any) -> State:
        return (), None

    def reduce(self, obj: Any) -> Any:
        target = obj()
        return (weakref.ref, (target,)) if target is not None else (dead_reference, ())


class _Gone:
    pass


def dead_reference() -> Any:
    """Return a weak reference to nothing."""
    return weakref.ref(_Gone())


class WeakMapping(Kind):
    """``WeakValueDictionary`` and its siblings by what is alive in them."""

    is_ordered = False

    def take(self, obj: Any) -> State:
        pairs = list(obj.items()) if hasattr(obj, "items") else [(member, None) for member in obj]
        return [half for pair in pairs for half in pair], None

    def unordered(self, children: Sequence[Any], facts: Any) -> int:
        return len(children)

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.clear()
        for key, value in zip(children[::2], children[1::2], strict=True):
            if isinstance(key, Left) or isinstance(value, Left):
                continue
            if hasattr(obj, "items"):
                obj[key] = value
            else:
                obj.add(key)

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return ""


class FileKind(Kind):
    """An open file, by its place: what is in it comes with the files of the training."""

    stays = "an open file"
    quiet = True

    def take(self, obj: Any) -> State:
        return (), _place_in_file(obj)

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        closed, place = facts or (False, None)
        if closed:
            obj.close()
        elif place is not None and not obj.closed and obj.seekable():
            obj.seek(place)

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return ""


class BarKind(Kind):
    """A progress bar of tqdm's: how far it is, and whether it is closed."""

    stays = family = "a progress bar"  # of tqdm.auto another class without a browser
    quiet = True

    def take(self, obj: Any) -> State:
        return (), (obj.n, getattr(obj, "total", None), obj.disable)

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.n, obj.total, closed = facts
        if closed:
            obj.close()
        elif not obj.disable:
            obj.refresh()

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return ""


class MemoryFile(Kind):
    """``io.StringIO`` and ``io.BytesIO``."""

    def take(self, obj: Any) -> State:
        if obj.closed:
            return (), (None, 0)
        held = obj.getvalue().encode() if hasattr(obj, "encoding") else obj.getbuffer()
        return (), (digest(held), obj.tell())

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return None if obj.closed else obj.getvalue()

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if content is None:
            obj.close()
            return
        obj.seek(0)
        obj.truncate()
        obj.write(content)
        obj.seek(facts[1])


_CONNECTION = "a connection to a database"
_PROCESS = Stays("a process")
_POOL = Stays("a pool")
_SHELL = Stays("a part of the shell", quiet=True)
_WEAK = WeakMapping()
_IN_MEMORY = MemoryFile()

BY_NAME |= {
    "builtins.generator": Stays("a generator", progress=_place_in_code),
    "builtins.coroutine": Stays("a coroutine", progress=_place_in_code),
    "builtins.async_generator": Stays("a generator", progress=_place_in_code),
    "_io._IOBase": FileKind(),
    "_io.StringIO": _IN_MEMORY,
    "_io.BytesIO": _IN_MEMORY,
    "asyncio.events.AbstractEventLoop": Stays("an event loop", quiet=True),
    "builtins.frame": Stays("a frame", quiet=True),
    "builtins.traceback": Stays("a traceback", quiet=True),
    "threading.Thread": Stays("a thread", quiet=True),
    "_thread.lock": FreshKind(threading.Lock),
    "_thread.RLock": FreshKind(threading.RLock),
    "_thread._local": FreshKind(threading.local),
    "_contextvars.ContextVar": Stays("a context variable", quiet=True),
    "_contextvars.Context": Stays("a context", quiet=True),
    "_socket.socket": Stays("a connection"),
    "_sqlite3.Connection": Stays(_CONNECTION),
    "sqlite3.Connection": Stays(_CONNECTION),
    "_sqlite3.Cursor": Stays(_CONNECTION),
    "sqlite3.Cursor": Stays(_CONNECTION),
    "subprocess.Popen": _PROCESS,
    "multiprocessing.process.BaseProcess": _PROCESS,
    "concurrent.futures._base.Executor": _POOL,
    "multiprocessing.pool.Pool": _POOL,
    "tqdm.std.tqdm": BarKind(),
    "ipywidgets.widgets.widget.Widget": Stays("a widget", quiet=True),
    "logging.Logger": FreshKind(),
    "logging.Handler": Stays("a handler of a logger", quiet=True),
    "_csv.writer": Stays("a csv writer"),
    "_csv.Writer": Stays("a csv writer"),
    "_csv.reader": Stays("a csv reader"),
    "importlib._bootstrap.ModuleSpec": VALUE,
    "re.Pattern": VALUE,
    "pathlib.PurePath": VALUE,
    "datetime.date": VALUE,
    "datetime.time": VALUE,
    "datetime.timedelta": VALUE,
    "datetime.tzinfo": VALUE,
    "decimal.Decimal": VALUE,
    "fractions.Fraction": VALUE,
    "uuid.UUID": VALUE,
    "enum.auto": VALUE,
    "weakref.ReferenceType": WeakKind(),
    "weakref.WeakMethod": WeakKind(),
    "weakref.WeakValueDictionary": _WEAK,
    "weakref.WeakKeyDictionary": _WEAK,
    "_weakrefset.WeakSet": _WEAK,
    "random.Random": StateKind(lambda stream: stream.getstate(), lambda stream, state: stream.setstate(state)),
}
BY_PREFIX += [
    ("IPython.", _SHELL),
    ("ipykernel.", _SHELL),
    ("matplotlib.", Stays("a figure", quiet=True)),
    ("multiprocessing.", Stays("a part of another process", quiet=True)),
    ("typing.", VALUE),
]
