"""Python's standard library: generators of random numbers, and what never travels."""

from __future__ import annotations

from typing import Any

from det_native.inspection.adapter import Content, Ending, Library, NeverSent, Plain, Reader


class _Random(Plain):
    def content(self, value: Any, reader: Reader) -> bool:
        if type(value).__name__ != "Random":  # that of the system has no state
            return False
        version, words, gauss = value.getstate()
        reader.say(hash((version, words, 0.5 if gauss is None else gauss)))  # that of None differs by process
        return True


class _Remembered(Ending):
    """What use alone has left: no content."""

    def content(self, value: Any, reader: Content) -> bool:
        return True


def _never(what: str, *names: str) -> dict[str, NeverSent]:
    return dict.fromkeys(names, NeverSent(what))


LIBRARY = Library(
    {
        "random.Random": _Random(),
        "_collections._tuplegetter": Ending(),
        "_abc._abc_data": _Remembered(),  # what an abstract class remembers of the questions that it was asked
        **_never("lock", "_thread.lock", "_thread.RLock", "threading.Condition", "threading.Event"),
        **_never("lock", "threading.Semaphore", "_thread._local", "multiprocessing.SemLock"),
        **_never("thread", "threading.Thread"),
        **_never("process", "multiprocessing.BaseProcess", "subprocess.Popen"),
        **_never("queue", "queue.Queue"),
        **_never("handle", "io.IOBase", "_io._IOBase", "sqlite3.Connection", "sqlite3.Cursor", "mmap.mmap"),
        **_never("socket", "socket.socket", "_socket.socket"),
        **_never("loop", "asyncio.AbstractEventLoop"),
        **_never("context variable", "_contextvars.ContextVar"),
        **_never("generator", "builtins.generator", "builtins.async_generator"),
        **_never("iterator", "builtins.coroutine", "builtins.frame", "builtins.traceback"),
        **_never("iterator", "builtins.list_iterator", "builtins.tuple_iterator", "builtins.dict_keyiterator"),
        **_never("iterator", "builtins.map", "builtins.zip", "builtins.filter", "builtins.enumerate"),
    },
)
