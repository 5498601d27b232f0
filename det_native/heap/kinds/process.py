"""What belongs to a process: threads, locks, files, generators, bars; and the settings that every program shares."""

from __future__ import annotations

import os
import pickle
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, BY_PREFIX, VALUE, Kind, Left, Stays, State


def _where_in_file(file: Any) -> Any:
    try:
        return (file.closed, None if file.closed else file.tell())
    except Exception:  # noqa: BLE001 (a file that cannot tell)
        return None


def _where_in_code(generator: Any) -> Any:
    frame = getattr(generator, "gi_frame", None) or getattr(generator, "cr_frame", None) or getattr(generator, "ag_frame", None)
    if frame is None:
        return None
    return frame.f_lasti, {n: v for n, v in frame.f_locals.items() if type(v) in (int, str, float, bool)}


class FreshKind(Kind):
    """A lock or the like: one that exists stays as it is, a new one is made empty."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def take(self, obj: Any) -> State:
        return (), None

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        pass

    def reduce(self, obj: Any) -> Any:
        return self._make, ()


class WeakKind(Kind):
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

    def take(self, obj: Any) -> State:
        pairs = list(obj.items()) if hasattr(obj, "items") else [(one, None) for one in obj]
        return [half for pair in pairs for half in pair], None

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.clear()
        for key, value in zip(children[::2], children[1::2], strict=True):
            if not isinstance(key, Left) and not isinstance(value, Left):
                obj.__setitem__(key, value) if hasattr(obj, "items") else obj.add(key)


class ByName(Kind):
    """What pickle finds by its name: a logger."""

    def take(self, obj: Any) -> State:
        return (), None


class BarKind(Kind):
    """A progress bar: how far it is."""

    stays = "a progress bar"

    def take(self, obj: Any) -> State:
        return (), (obj.n, obj.total)

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.n, obj.total = facts
        if not obj.disable:
            obj.refresh()


BY_NAME |= {
    "builtins.generator": Stays("a generator", progress=_where_in_code),
    "builtins.coroutine": Stays("a coroutine", progress=_where_in_code),
    "builtins.async_generator": Stays("a generator", progress=_where_in_code),
    "_io._IOBase": Stays("an open file", progress=_where_in_file),
    "builtins.frame": Stays("a frame", quiet=True),
    "builtins.traceback": Stays("a traceback", quiet=True),
    "threading.Thread": Stays("a thread"),
    "_thread.lock": FreshKind(threading.Lock),
    "_thread.RLock": FreshKind(threading.RLock),
    "_thread._local": FreshKind(threading.local),
    "_contextvars.ContextVar": Stays("a context variable", quiet=True),
    "_contextvars.Context": Stays("a context", quiet=True),
    "_socket.socket": Stays("a connection"),
    "_sqlite3.Connection": Stays("a connection to a database"),
    "sqlite3.Connection": Stays("a connection to a database"),
    "subprocess.Popen": Stays("a process"),
    "concurrent.futures._base.Executor": Stays("a pool"),
    "multiprocessing.pool.Pool": Stays("a pool"),
    "multiprocessing.process.BaseProcess": Stays("a process"),
    "tqdm.std.tqdm": BarKind(),
    "ipywidgets.widgets.widget.Widget": Stays("a widget", quiet=True),
    "logging.Logger": ByName(),
    "logging.Handler": Stays("a handler of a logger", quiet=True),
    "os._Environ": Stays("the environment", quiet=True),
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
    "weakref.WeakValueDictionary": WeakMapping(),
    "weakref.WeakKeyDictionary": WeakMapping(),
    "_weakrefset.WeakSet": WeakMapping(),
}
BY_PREFIX += [
    ("IPython.", Stays("part of the shell", quiet=True)),
    ("ipykernel.", Stays("part of the shell", quiet=True)),
    ("matplotlib.", Stays("a figure", quiet=True)),
    ("typing.", VALUE),
]


class MemoryFile(Kind):
    """``io.StringIO`` and ``io.BytesIO``."""

    def take(self, obj: Any) -> State:
        return (), (None, 0) if obj.closed else (obj.getvalue(), obj.tell())

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if facts[0] is None:
            obj.close()
            return
        obj.seek(0)
        obj.truncate()
        obj.write(facts[0])
        obj.seek(facts[1])

    def reduce(self, obj: Any) -> Any:
        return NotImplemented


BY_NAME["_io.StringIO"] = BY_NAME["_io.BytesIO"] = MemoryFile()


class RandomKind(Kind):
    def take(self, obj: random.Random) -> State:
        return (), obj.getstate()

    def put(self, obj: random.Random, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.setstate(facts)


BY_NAME["random.Random"] = RandomKind()


class Process:
    """Stands for what every program of a process shares."""


PROCESS = Process()

#: What is read and written as a whole: the module that must be imported, how to read, how to write.
SETTINGS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "os.environ": ("os", lambda m: dict(m.environ), lambda m, v: _put_environment(v)),
    "random": ("random", lambda m: m.getstate(), lambda m, v: m.setstate(v)),
    "numpy.random": ("numpy", lambda m: m.random.get_state(), lambda m, v: m.random.set_state(v)),
    "numpy print options": ("numpy", lambda m: m.get_printoptions(), lambda m, v: m.set_printoptions(**v)),
    "torch random": ("torch", lambda m: bytes(m.get_rng_state().numpy()), lambda m, v: _put_torch(m, v)),
    "torch default dtype": ("torch", lambda m: m.get_default_dtype(), lambda m, v: m.set_default_dtype(v)),
    "torch hooks": (
        "torch.utils.hooks",
        lambda m: m.RemovableHandle.next_id,
        lambda m, v: setattr(m.RemovableHandle, "next_id", max(v, m.RemovableHandle.next_id)),
    ),
    "decimal": ("decimal", lambda m: m.getcontext().prec, lambda m, v: setattr(m.getcontext(), "prec", v)),
}


def _put_environment(value: dict[str, str]) -> None:
    for name in os.environ.keys() - value.keys():
        del os.environ[name]
    os.environ.update(value)


def _put_torch(torch: types.ModuleType, value: bytes) -> None:
    torch.set_rng_state(torch.frombuffer(bytearray(value), dtype=torch.uint8))


class ProcessKind(Kind):
    def take(self, obj: Process) -> State:
        found = {}
        for name, (module, read, _) in SETTINGS.items():
            if module in sys.modules:
                found[name] = pickle.dumps(read(sys.modules[module]), protocol=4)
        return (), found

    def put(self, obj: Process, children: Sequence[Any], facts: Any, content: Any) -> None:
        """Write what differs; each setting for itself."""
        now = self.take(obj)[1]
        for name, value in facts.items():
            if now.get(name) != value:
                module, _, write = SETTINGS[name]
                __import__(module)
                write(sys.modules[module], pickle.loads(value))


BY_NAME[f"{Process.__module__}.Process"] = ProcessKind()
