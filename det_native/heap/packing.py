"""What has changed since a snapshot, as bytes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from det_native.heap.edges import KEPT, OF_PROCESS, Missing, NamedKind, State, is_value, kind_of
from det_native.heap.names import ROOTS
from det_native.heap.pickling import HeapPickler, Reopen, reopened, short
from det_native.heap.snapshot import MOST_OBJECTS, Snapshot
from det_native.heap.stack import run_with_deep_stack

# Places among the changes of an object that can be left out alone, beside those of children.
_CONTENT, _CHILDREN = -1, -2


class Output:
    """What a pickler writes to: keeps the bytes as long as they are within a limit, and counts all.

    `exceeded`, if given, is called as soon as they are not.
    """

    def __init__(self, limit: int, exceeded: Callable[[], object] = lambda: None) -> None:
        self._limit, self._exceeded, self.size = limit, exceeded, 0
        self.parts: list[bytes] = []

    def write(self, data: Any) -> None:
        """Take bytes of the pickler."""
        self.size += memoryview(data).nbytes
        if self.size <= self._limit:
            self.parts.append(bytes(data))
        else:
            self.parts.clear()
            self._exceeded()


class Packer:
    """Packs what has changed since a snapshot; the parameters are those of :class:`CallSnapshot`."""

    def __init__(self, snapshot: Snapshot, limit: int, *, exact: bool, reopen: Reopen | None) -> None:
        self._snapshot, self._limit, self._exact, self._reopen = snapshot, limit, exact, reopen
        states = snapshot.changes()
        self._replaced = {number for number in states if not snapshot.kinds[number].in_place}
        #: By number: children, facts, content.
        self._entries: dict[int, list[Any]] = {}
        self._large: dict[int, list[Any]] = {}  # of those, what exceeds the limit
        self._sentences: dict[str, None] = {}
        for number in snapshot.slow:
            self._say_stays(number, "takes too long to compare")
        if snapshot.cut is not None:
            self._sentences[
                f"`{snapshot.path(snapshot.cut)}` holds more than the {MOST_OBJECTS:,} objects that are compared: what "
                "has changed inside of the others stays on the worker."
            ] = None
        for number, state in states.items():
            self._add(number, state)

    def _add(self, number: int, state: State) -> None:
        snapshot = self._snapshot
        kind, obj = snapshot.kinds[number], snapshot.objects[number]
        if not kind.in_place:
            if kind.stays and not kind.quiet and not snapshot.is_private(number):
                self._say_stays(number, f"is {kind.stays}")
            return
        before = snapshot.children[number], snapshot.facts[number]
        try:
            children, facts, content = kind.difference(obj, before, state, self._is_renewed)
        except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
            self._say_stays(number, f"cannot be read ({short(error)})")
            return
        self._entries[number] = [list(children), facts, content]

    def _is_renewed(self, child: Any) -> bool:
        return self._snapshot.numbers.get(id(child)) in self._replaced

    def _say_stays(self, number: int, reason: str, path: str = "") -> None:
        self._say(f"`{path or self._snapshot.path(number)}` {reason}: it stayed as it was.")

    def _say(self, sentence: str) -> None:
        self._sentences[sentence] = None

    def pack(self) -> tuple[bytes, bytes, list[str]]:
        """Return the bytes, those of what exceeds the limit, and a sentence for each thing that is not in the first."""
        output, pickler = self._dump_what_can()
        while output.size > self._limit and self._drop_largest(output.size):
            output, pickler = self._dump_what_can()
        data, large = self._finished(output, pickler), b""
        if self._large:
            self._entries, self._limit = self._large, sys.maxsize
            large = self._finished(*self._dump_what_can())
        return data, large, [*self._sentences]

    def _finished(self, output: Output, pickler: HeapPickler) -> bytes:
        self._say_missing(pickler)
        return pickle.dumps(((self._exact, pickler.ways), output.parts), protocol=5)

    def _dump_what_can(self) -> tuple[Output, HeapPickler]:
        try:
            return self._dump()
        except Exception:  # noqa: BLE001 (found object by object below)
            for number, place, child in [*self._units()]:
                try:
                    self._size_of(child)
                except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
                    self._leave_out(number, place, f"cannot be pickled ({short(error)})")
            return self._dump()

    def _dump(self) -> tuple[Output, HeapPickler]:
        output = Output(self._limit)
        pickler = self._pickler(output)
        run_with_deep_stack(lambda: pickler.dump_all([self._packable(number, pickler) for number in self._entries]))
        return output, pickler

    def _packable(self, number: int, pickler: HeapPickler) -> tuple[Any, ...]:
        children, facts, content = self._entries[number]
        held = _numbers_packed(children) or [*map(self._or_kept, children)]
        return pickler.way(number, target=True), facts, held, content

    def _pickler(self, output: Output) -> HeapPickler:
        return HeapPickler(output, self._snapshot, self._replaced, exact=self._exact, reopen=self._reopen)

    def _or_kept(self, child: Any) -> Any:
        """Return a child, or what stands for one that stays: what holds it here holds something else there."""
        if is_value(child) or id(child) in self._snapshot.numbers:
            return child
        held = [*child.values()] if type(child) is dict else child if type(child) in (list, tuple) else ()
        if reopened(child, self._reopen) is not NotImplemented:
            return child
        stays = all(kind.stays and kind.quiet for kind in map(kind_of, held or [child]))
        return Missing(OF_PROCESS.stays) if stays else child

    # What is too large.

    def _units(self) -> Iterator[tuple[int, int, Any]]:
        """Yield what can be left out alone: number, place, and the object."""
        for number, (children, _, content) in self._entries.items():
            if content:
                yield number, _CONTENT, content
            if not isinstance(self._snapshot.kinds[number], NamedKind):
                yield number, _CHILDREN, children
                continue
            for place, child in enumerate(children):
                if not is_value(child):
                    yield number, place, child

    def _size_of(self, child: Any) -> int:
        output = Output(0)
        pickler = self._pickler(output)
        run_with_deep_stack(lambda: pickler.dump(child))
        return output.size

    def _drop_largest(self, total: int) -> bool:
        """Leave out the largest things until the rest should fit; return whether there was anything."""
        units = [(self._size_of(child), number, place) for number, place, child in self._units()]
        for size, number, place in sorted(units, reverse=True):
            if number in self._entries:
                self._put_apart(number, place, size)
                total -= size
            if total <= self._limit:
                break
        return bool(units)

    def _put_apart(self, number: int, place: int, size: int) -> None:
        path = self._snapshot.path(number) if place < 0 else self._child_path(number, place)
        come = f"`{path}` has {_amount(size)}, and {_amount(self._limit)} come home by themselves"
        self._say(f"{come}: det.last_experiment().bring() brings the rest.")
        if place < 0:
            self._large[number] = self._entries.pop(number)
            return
        children, facts, _ = self._entries[number]
        large = self._large.setdefault(number, [[], (), []])
        large[0].append(children[place])
        large[1] += (facts[place],)
        children[place] = Missing()

    def _leave_out(self, number: int, place: int, reason: str) -> None:
        if place < 0:
            self._entries.pop(number, None)
            self._say_stays(number, reason)
        else:
            self._say_stays(number, reason, self._child_path(number, place))
            self._entries[number][0][place] = Missing(reason)

    def _child_path(self, number: int, place: int) -> str:
        snapshot = self._snapshot
        children, facts, _ = self._entries[number]
        kind = snapshot.kinds[number]
        return snapshot.path_of_part(number, kind.labels(snapshot.objects[number], children, facts)[place])

    # What is left out.

    def _say_missing(self, pickler: HeapPickler) -> None:
        reasons = {id(obj): what for obj, what, quiet in pickler.missing if not quiet}
        numbers = self._snapshot.numbers
        for identity in reasons.keys() & numbers.keys():
            self._say_stays(numbers[identity], f"is {reasons.pop(identity)}")
        if reasons:
            for identity, path in self._paths_of_new({*reasons}).items():
                self._say(f"`{path}` is {reasons[identity]}: it stays on the worker.")

    def _paths_of_new(self, wanted: set[int]) -> Mapping[int, str]:
        """Return how the user writes objects that the snapshot does not have."""
        new = {
            self._child_path(number, place): child
            for number, (children, _, _) in self._entries.items()
            for place, child in enumerate(children)
        }
        snapshot = Snapshot({"new": (new, ROOTS)}, dict.fromkeys(self._snapshot.numbers, KEPT))
        return {id(obj): snapshot.path(number) for number, obj in enumerate(snapshot.objects) if id(obj) in wanted}


def _numbers_packed(children: list[Any]) -> bytes | None:
    """Return children as bytes if there are only numbers: a pickler that knows addresses would ask for each one."""
    only = children and {int, float, bool}.issuperset(map(type, children))
    return pickle.dumps(children, protocol=5) if only else None


def _amount(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MB" if size < 10 << 30 else f"{size / (1 << 30):,.0f} GB"
