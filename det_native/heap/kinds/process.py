"""What belongs to a process: threads, locks, files, generators, bars."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import (
    BY_NAME,
    BY_PREFIX,
    OF_PROCESS,
    VALUE,
    Kind,
    Missing,
    ReadMemory,
    SimpleKind,
    State,
    stays,
)


def _place_in_file(file: Any) -> Any:
    try:
        return (file.closed, None if file.closed else file.tell())
    except Exception:  # noqa: BLE001 (a file that has no place)
        return None


def _write_place(file: Any, facts: Any, content: Any) -> None:
    closed, place = facts or (False, None)
    if closed:
        file.close()
    elif place is not None and not file.closed and file.seekable():
        file.seek(place)


def _place_in_code(generator: Any) -> Any:
    frames = (getattr(generator, f"{prefix}_frame", None) for prefix in ("gi", "cr", "ag"))
    frame = next((frame for frame in frames if frame is not None), None)
    if frame is None:
        return None
    variables = frame.f_locals.items()
    return frame.f_lasti, {name: value for name, value in variables if type(value) in (int, str, float, bool)}


def _drawn(figure: Any) -> Any:
    """Return what a program draws in a figure; showing it makes ticks, and changes nothing of that."""
    axes = getattr(figure, "axes", ())
    lines = [line.get_xydata().tobytes() for ax in axes for line in ax.lines]
    return lines, [(len(ax.get_children()), ax.get_title()) for ax in axes]


def _fresh(make: Callable[[], Any] | None = None) -> Kind:
    """Return the kind of a lock or the like: one that exists stays as it is, a new one is made empty."""
    return SimpleKind(None, lambda *state: None, reduce=(lambda obj: (make, ())) if make else None)


class WeakMapping(Kind):
    """``WeakValueDictionary`` and its siblings by what is alive in them."""

    compared = is_ordered = False

    def read_state(self, obj: Any) -> State:
        pairs = list(obj.items()) if hasattr(obj, "items") else [(member, None) for member in obj]
        return [half for pair in pairs for half in pair], None

    def write_state(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.clear()
        for key, value in zip(children[::2], children[1::2], strict=True):
            if type(key) is Missing or type(value) is Missing:
                continue
            if hasattr(obj, "items"):
                obj[key] = value
            else:
                obj.add(key)

    def reduce(self, obj: Any) -> Any:
        return type(obj), (), self.read_state(obj)[0], None, None, fill_weak


def fill_weak(obj: Any, members: Sequence[Any]) -> None:
    """Give a new weak mapping or set what it holds."""
    _WEAK.write_state(obj, members, None, None)


def _write_bar(bar: Any, facts: Any, content: Any) -> None:
    bar.n, bar.total, closed = facts
    if closed:
        bar.close()
    elif not bar.disable:
        bar.refresh()


def _read_memory_file(file: Any) -> Any:
    if file.closed:
        return None, 0
    return digest(file.getvalue().encode() if hasattr(file, "encoding") else file.getbuffer()), file.tell()


def _look_at_memory_file(file: Any, read: ReadMemory) -> Any:
    if file.closed:
        return None
    text = memoryview(file.getvalue().encode()) if hasattr(file, "encoding") else None
    return file.tell(), read(file.getbuffer() if text is None else text)


class WidgetKind(SimpleKind):
    """A widget of a notebook. A look sees what its user sets."""

    def __init__(self) -> None:
        super().__init__(stays="a widget", quiet=True, compared=False)
        self.is_empty = False

    def glance(self, obj: Any, read: ReadMemory) -> State:
        values = dict(object.__getattribute__(obj, "__dict__").get("_trait_values") or {})
        return [*values.values()], (*values,)


def _write_memory_file(file: Any, facts: Any, content: Any) -> None:
    if content is None:
        file.close()
        return
    file.seek(0)
    file.truncate()
    file.write(content)
    file.seek(facts[1])


_WEAK = WeakMapping()
# A dead reference is made again to a set that nobody holds.
_REFERENCE = SimpleKind(reduce=lambda obj: (weakref.ref, (set() if obj() is None else obj(),)))
_MEMORY_FILE = SimpleKind(
    _read_memory_file,
    _write_memory_file,
    content=lambda file: None if file.closed else file.getvalue(),
    glance=_look_at_memory_file,
)

FIGURE = stays("a figure", progress=_drawn)

_STAYS = {
    "a connection": ("_socket.socket",),
    "a connection to a database": ("_sqlite3.Connection", "sqlite3.Connection", "_sqlite3.Cursor", "sqlite3.Cursor"),
    "a process": ("subprocess.Popen", "multiprocessing.process.BaseProcess"),
    "a pool": ("concurrent.futures._base.Executor", "multiprocessing.pool.Pool"),
    "a csv writer": ("_csv.writer", "_csv.Writer"),
    "a csv reader": ("_csv.reader",),
}
for _what, _names in _STAYS.items():
    BY_NAME |= dict.fromkeys(_names, stays(_what))
for _name in (
    *("asyncio.events.AbstractEventLoop", "builtins.frame", "builtins.traceback", "threading.Thread"),
    *("_contextvars.ContextVar", "_contextvars.Context", "logging.Handler"),
):
    BY_NAME[_name] = OF_PROCESS
for _name in (
    *("importlib._bootstrap.ModuleSpec", "re.Pattern", "pathlib.PurePath", "datetime.date", "datetime.time"),
    *("datetime.timedelta", "datetime.tzinfo", "decimal.Decimal", "fractions.Fraction", "uuid.UUID", "enum.auto"),
):
    BY_NAME[_name] = VALUE
for _name in ("weakref.WeakValueDictionary", "weakref.WeakKeyDictionary", "_weakrefset.WeakSet"):
    BY_NAME[_name] = _WEAK
BY_NAME |= {
    "ipywidgets.widgets.widget.Widget": WidgetKind(),
    "builtins.generator": stays("a generator", progress=_place_in_code),
    "builtins.coroutine": stays("a coroutine", progress=_place_in_code),
    "builtins.async_generator": stays("a generator", progress=_place_in_code),
    "matplotlib.figure.Figure": FIGURE,
    # What is in a file comes with the files of the training.
    "_io._IOBase": SimpleKind(_place_in_file, _write_place, compared=False, stays="an open file", quiet=True),
    "_io.StringIO": _MEMORY_FILE,
    "_io.BytesIO": _MEMORY_FILE,
    "_thread.lock": _fresh(threading.Lock),
    "_thread.RLock": _fresh(threading.RLock),
    "_thread._local": _fresh(threading.local),
    "tqdm.std.tqdm": SimpleKind(
        lambda bar: (bar.n, getattr(bar, "total", None), bar.disable),
        _write_bar,
        compared=False,
        stays="a progress bar",
        quiet=True,
    ),
    "logging.Logger": _fresh(),
    "weakref.ReferenceType": _REFERENCE,
    "weakref.WeakMethod": _REFERENCE,
    "random.Random": SimpleKind(lambda stream: stream.getstate(), lambda stream, state, _: stream.setstate(state)),
}
for _prefix in ("IPython.", "ipykernel.", "matplotlib.", "multiprocessing."):
    BY_PREFIX.append((_prefix, OF_PROCESS))
BY_PREFIX.append(("typing.", VALUE))
