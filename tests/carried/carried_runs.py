"""Programs with a loop that is stopped and goes on in a process like it: the same text, run anew in a new module."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from det_native.callsite import asking_frame
from det_native.carried.loop import LoopNames, Saved


@pytest.fixture(autouse=True, scope="session")
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


class Rounds:
    """Gives the rounds of a loop, and saves what the loop carries after one of them."""

    def __init__(
        self,
        rounds: range,
        *,
        data: bytes | None = None,
        known: Callable[[dict[str, Any]], dict[Any, Any]] = lambda names: {},
        limit: int = 256 << 20,
    ) -> None:
        self.rounds = rounds
        self.saved: Saved | None = None
        self.names: LoopNames | None = None
        self.lost: dict[str, str] = {}
        self._data = data
        self._known = known
        self._limit = limit

    def __call__(self) -> Iterator[int]:
        frame = asking_frame()
        assert frame is not None
        self.names = names = LoopNames(frame, self._known(frame.f_globals))
        if self._data is not None:
            self.lost = names.restore(self._data)
        for number in self.rounds:
            yield number
            self.saved = names.save(self._limit)


def run(text: str, rounds: Rounds, name: str = "__main__", **given: Any) -> dict[str, Any]:
    """Run a program whose loop goes over ``rounds()``; returns its names at the end."""
    module = types.ModuleType(name)
    vars(module).update(given, rounds=rounds)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        exec(compile(text, "<program>", "exec"), vars(module))  # noqa: S102 (the tests' own)
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
    return vars(module)


def whole_and_resumed(text: str, rounds: int = 6, stop: int = 3, **options: Any) -> tuple[dict[str, Any], ...]:
    """Return the names of a run, and of one that was stopped after a round and has gone on."""
    whole = run(text, Rounds(range(rounds), **options))
    first = Rounds(range(stop), **options)
    run(text, first)
    assert first.saved is not None
    assert not first.saved.lost
    second = Rounds(range(stop, rounds), data=first.saved.data, **options)
    resumed = run(text, second)
    assert not second.lost
    return whole, resumed


Rounds.__module__ = "det_native.stand_in"  # as the batches of a training, it is no object of the program's
