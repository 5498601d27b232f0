"""What has changed since a snapshot, as bytes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

from det_native.heap.edges import State, is_value, kind_of
from det_native.heap.kinds.instances import AttributesKind
from det_native.heap.names import NamesKind
from det_native.heap.pickling import Address, HeapPickler, KeptValue, Reopen, numbers_packed, reopened, short
from det_native.heap.snapshot import Snapshot
from det_native.heap.stack import run_with_deep_stack

#: Where an object is among the changes: the number of what holds it, and its place in there.
Place = tuple[int, int]


class Output:
    """What a pickler writes to: keeps the bytes as long as they are within a limit, and counts all.

    Parameters
    ----------
    limit : int

    Attributes
    ----------
    parts : list of bytes
    size : int
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.parts: list[bytes] = []
        self.size = 0

    def write(self, data: Any) -> int:
        """Take bytes of the pickler."""
        count = memoryview(data).nbytes
        self.size += count
        if self.size <= self._limit:
            self.parts.append(bytes(data))
        else:
            self.parts.clear()
        return count


class Packer:
    """Packs what has changed since a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
    limit : int
        Bytes that may travel.
    exact : bool
        Of the fingerprints.
    reopen : callable, optional
        Returns how an open file is opened again.
    """

    def __init__(self, snapshot: Snapshot, limit: int, *, exact: bool, reopen: Reopen | None) -> None:
        self._snapshot, self._limit, self._exact, self._reopen = snapshot, limit, exact, reopen
        states = snapshot.changes(self._travels)
        self._replaced = {number for number in states if not snapshot.kinds[number].in_place}
        #: By number: children, facts, content.
        self._entries: dict[int, list[Any]] = {}
        self._sentences: dict[str, None] = {}
        for number, state in states.items():
            self._add(number, state)

    def _add(self, number: int, state: State) -> None:
        snapshot = self._snapshot
        kind, obj = snapshot.kinds[number], snapshot.objects[number]
        if kind.stays and not kind.in_place:
            if not kind.quiet and not snapshot.is_private(number):
                self._say(f"`{snapshot.path(number)}` is {kind.stays}: it stayed as it was.")
            return
        if not kind.in_place:
            return
        before = snapshot.children[number], snapshot.facts[number]
        try:
            children, facts, content = kind.difference(obj, before, state, self._is_renewed)
        except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
            self._say(f"`{snapshot.path(number)}` cannot be read ({short(error)}): it stayed as it was.")
            return
        self._entries[number] = [list(children), facts, content]

    def _travels(self, obj: Any) -> bool:
        return reopened(obj, self._reopen) is not NotImplemented

    def _is_renewed(self, child: Any) -> bool:
        return self._snapshot.numbers.get(id(child)) in self._replaced

    def _say(self, sentence: str) -> None:
        self._sentences[sentence] = None

    def pack(self) -> tuple[bytes, list[str]]:
        """Return the bytes, and a sentence for each thing that is not in them."""
        output, pickler = self._dump_what_can()
        while output.size > self._limit and self._drop_largest(output.size):
            output, pickler = self._dump_what_can()
        self._say_what_is_left(pickler)
        return pickle.dumps(((self._exact, pickler.ways), output.parts), protocol=5), [*self._sentences]

    def _dump_what_can(self) -> tuple[Output, HeapPickler]:
        try:
            return self._dump()
        except Exception:  # noqa: BLE001 (found object by object below)
            for number, place, child in [*self._units()]:
                try:
                    self._dump_child(child)
                except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
                    self._leave(number, place, f"cannot be pickled ({short(error)})")
            return self._dump()

    def _dump(self) -> tuple[Output, HeapPickler]:
        output = Output(self._limit)
        pickler = self._pickler(output)
        entries = [
            (Address(number), facts, numbers_packed(children) or [*map(self._or_kept, children)], content)
            for number, (children, facts, content) in self._entries.items()
        ]
        run_with_deep_stack(lambda: pickler.dump_all(entries))
        return output, pickler

    def _pickler(self, output: Output) -> HeapPickler:
        return HeapPickler(output, self._snapshot, self._replaced, exact=self._exact, reopen=self._reopen)

    def _or_kept(self, child: Any) -> Any:
        """Return a child, or what stands for one that stays: what holds it here holds something else there."""
        if is_value(child) or id(child) in self._snapshot.numbers:
            return child
        kind = kind_of(child)
        if kind.stays and kind.quiet:
            opened_again = self._reopen is not None and self._reopen(child) is not NotImplemented
            return child if opened_again else KeptValue(kind.stays)
        held = [*child.values()] if type(child) is dict else child if type(child) in (list, tuple) else ()
        if held and all(kind_of(value).stays and kind_of(value).quiet for value in held):
            return KeptValue("parts of the process")
        return child

    # What is too large.

    def _units(self) -> Iterator[tuple[int, int, Any]]:
        """Yield what can be left out alone: number, place (-1 for the content), and the object."""
        for number, (children, _, content) in self._entries.items():
            if content:
                yield number, -1, content
            if self._names_children(number):
                for place, child in enumerate(children):
                    if not is_value(child):
                        yield number, place, child
            elif children:
                yield number, -2, children

    def _names_children(self, number: int) -> bool:
        return isinstance(self._snapshot.kinds[number], NamesKind | AttributesKind)

    def _dump_child(self, child: Any) -> int:
        output = Output(0)
        pickler = self._pickler(output)
        run_with_deep_stack(lambda: pickler.dump(child))
        return output.size

    def _drop_largest(self, total: int) -> bool:
        """Leave out the largest things until the rest should fit; return whether there was anything."""
        units = [(self._dump_child(child), number, place) for number, place, child in self._units()]
        for size, number, place in sorted(units, reverse=True):
            if number in self._entries:
                self._leave(number, place, f"has {_amount(size)}, and {_amount(self._limit)} come home by themselves")
                total -= size
            if total <= self._limit:
                break
        return bool(units)

    def _leave(self, number: int, place: int, reason: str) -> None:
        path = self._snapshot.path(number)
        if place < 0:
            del self._entries[number]
        else:
            path = self._child_path(number, place)
            self._entries[number][0][place] = KeptValue(reason)
        self._say(f"`{path}` {reason}: it stayed as it was.")

    def _child_path(self, number: int, place: int) -> str:
        snapshot = self._snapshot
        children, facts, _ = self._entries[number]
        kind = snapshot.kinds[number]
        step = kind.step(kind.labels(snapshot.objects[number], children, facts)[place])
        path = snapshot.path(number) if number >= snapshot.first else ""
        return f"{path}{step}".lstrip(".")

    # What is left out.

    def _say_what_is_left(self, pickler: HeapPickler) -> None:
        reasons = {id(obj): what for obj, what, quiet in pickler.left if not quiet}
        if not reasons:
            return
        numbers = self._snapshot.numbers
        for identity in reasons.keys() & numbers.keys():
            self._say(f"`{self._snapshot.path(numbers[identity])}` is {reasons.pop(identity)}: it stayed as it was.")
        for identity, path in self._paths_of_new({*reasons}).items():
            self._say(f"`{path}` is {reasons[identity]}: it stays on the worker.")

    def _paths_of_new(self, wanted: set[int]) -> Mapping[int, str]:
        """Return how the user writes objects that the snapshot does not have."""
        paths: dict[int, str] = {}
        seen: set[int] = set()
        queue = [
            (child, self._child_path(number, place))
            for number, (children, _, _) in self._entries.items()
            for place, child in enumerate(children)
        ]
        for obj, path in queue:
            if is_value(obj) or id(obj) in seen or id(obj) in self._snapshot.numbers:
                continue
            seen.add(id(obj))
            if id(obj) in wanted:
                paths[id(obj)] = path
                if len(paths) == len(wanted):
                    break
            kind = kind_of(obj)
            try:
                children, facts = kind.take(obj)
                labels = kind.labels(obj, children, facts)
            except Exception:  # noqa: BLE001 (an object of a library may raise anything)
                continue
            queue += [(child, path + kind.step(label)) for child, label in zip(children, labels, strict=False)]
        return paths


def _amount(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MB" if size < 10 << 30 else f"{size / (1 << 30):,.0f} GB"
