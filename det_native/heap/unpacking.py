"""Puts into the objects of this process what another one has packed."""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

from det_native.heap import pickling
from det_native.heap.edges import KEPT, Missing, NamedKind, is_value
from det_native.heap.kinds.builtin import LIST
from det_native.heap.kinds.instances import attributes_of
from det_native.heap.names import FRAME, NAMESPACE, MappingKind
from det_native.heap.ownership import definer_of
from det_native.heap.pickling import Way, short
from det_native.heap.side_by_side import Others
from det_native.heap.snapshot import Snapshot
from det_native.heap.stack import run_with_deep_stack


def put_changes(
    data: bytes, snapshot: Snapshot, *, exact: bool, reopen: bool, others: Others, experiment: int | None
) -> list[str]:
    """Put in place what has changed in another process; return a sentence for each object that stays as it is.

    `data` is of :class:`det_native.heap.packing.Packer`; see :meth:`det_native.heap.call.CallSnapshot.put`.
    """
    (exact_there, ways), parts = pickle.loads(data)
    unpickler = HeapUnpickler(io.BytesIO(b"".join(parts)), snapshot, reopen=reopen)
    unpickler.follow(ways, exact=exact, exact_there=exact_there)
    sentences = unpickler.sentences
    try:
        entries = run_with_deep_stack(unpickler.load_all)
    except Exception as error:  # noqa: BLE001 (a class of the user's may raise anything)
        return [f"What the training changed cannot be read here ({short(error)}): everything stayed as it was."]
    for place, facts, children, content in entries:
        number = unpickler.target(place)
        if number is None:
            continue
        if type(children) is bytes:
            children = pickle.loads(children)
        kind, obj = snapshot.kinds[number], snapshot.objects[number]
        lacking = [*map(unpickler.lacks_something, children)] if unpickler.incomplete else []
        if any(lacking):
            is_named = isinstance(kind, NamedKind)
            labels = [label for label, lacks in zip(facts, lacking, strict=True) if lacks] if is_named else ()
            paths = [snapshot.path_of_part(number, label) for label in labels] or [snapshot.path(number)]
            sentences += [f"`{path}` holds what is incomplete: it stayed as it was." for path in paths]
            if not is_named:
                continue
            children = [Missing() if lacks else child for lacks, child in zip(lacking, children, strict=True)]
        if experiment is not None:
            rest = others.rest(number, (children, facts, content), experiment)
            if rest is None:
                continue
            children, facts, content = rest
        if isinstance(kind, MappingKind) and kind in (NAMESPACE, FRAME) and not reopen:
            bound = kind.bound_since(obj, snapshot.children[number], snapshot.facts[number])
            children = [Missing() if name in bound else value for name, value in zip(facts, children, strict=True)]
            content = [name for name in content if name not in bound]
        try:
            kind.write_state(obj, children, facts, content)
        except Exception as error:  # noqa: BLE001 (an object of a library may refuse)
            sentences.append(f"`{snapshot.path(number)}` cannot be set ({short(error)}): it stayed as it was.")
    return sentences


class HeapUnpickler(pickle.Unpickler):
    """Reads what :class:`det_native.heap.pickling.HeapPickler` has written."""

    def __init__(self, stream: io.BytesIO, snapshot: Snapshot, *, reopen: bool) -> None:
        super().__init__(stream)
        self._snapshot, self._reopen = snapshot, reopen
        #: By place among the addresses: the number of the object here.
        self._numbers: list[int | None] = []
        #: Places of addresses whose objects held something else: they may be referred to, and keep their state.
        self._differing: set[int] = set()
        self._late: dict[int, Any] = {}
        self._folder = f"{os.getcwd()}{os.sep}"
        self.sentences: list[str] = []
        #: New objects that have not got their state: nobody is to meet them.
        self.incomplete: list[Any] = []

    def follow(self, ways: list[Way], *, exact: bool, exact_there: bool) -> None:
        """Find the objects of this process to which the addresses of the other one lead."""
        for place, (before, label, name, fingerprint) in enumerate(ways):
            number = self._find(before, label, name) if before >= 0 else 0
            compared = fingerprint and (exact or not exact_there)
            if number and compared and self._snapshot.fingerprint(number, exact=exact_there) != fingerprint:
                path = self._path(before, label)
                self._say(f"`{path}` stayed as it was: it held something else on the worker when the training began.")
                self._differing.add(place)
                number = number if isinstance(label, str) else None
            self._numbers.append(number)

    def _find(self, before: int, label: Any, name: str) -> int | None:
        snapshot = self._snapshot
        parent = self._numbers[before]
        if parent is None:
            return None
        number = snapshot.child(parent, label)
        if number is None:
            reason = "is not here" if label is not None else "looks like another member of its set"
            self._say(f"`{self._path(before, label)}` {reason}: it stayed as it was.")
        elif snapshot.class_name(number) != name:
            if not snapshot.kinds[number].quiet:
                self._say(f"`{self._path(before, label)}` is of the class {name} on the worker: it stayed as it was.")
            number = None
        return number

    def _path(self, before: int, label: Any) -> str:
        snapshot, parent = self._snapshot, self._numbers[before] or 0
        if parent < snapshot.first:
            return str(label)
        return f"{snapshot.path(parent)}{snapshot.kinds[parent].step(label)}"

    def target(self, place: int) -> int | None:
        """Return the number of an object whose state is to be written."""
        return None if place in self._differing else self._numbers[place]

    def load_all(self) -> Any:
        """Return what was packed, with the sets and dicts filled whose members compute their hash."""
        entries = self.load()
        while (late := self.load()) is not None:
            for place, members in late:
                self.fill(self._late[place], (type(self._late[place]).update, members))
        return entries

    def persistent_load(self, reference: Any) -> Any:
        kind, place, *more = reference
        if kind == "within":
            return f"{self._folder}{place}"
        if kind == "missing":
            return Missing(place)
        if kind == "none":
            return None
        if kind == "late":
            return self._late.setdefault(place, {} if more[0] == "dict" else set())
        number = self._numbers[place]
        return Missing("an object that is not here") if number is None else self._snapshot.objects[number]

    def find_class(self, module: str, name: str) -> Any:
        if module == pickling.__name__:
            return getattr(self, name)
        try:
            return super().find_class(module, name)
        except Exception as error:  # noqa: BLE001 (a module that is not here, or that fails)
            self._say(f"{module}.{name} is not here ({short(error)}): its objects stay away.")
            return Missing(f"{module}.{name}")

    def make(self, function: Any, *arguments: Any) -> Any:
        """Make a new object; what stands for it where that fails."""
        try:
            made = function(*arguments)
        except Exception as error:  # noqa: BLE001 (of a library)
            made = Missing(short(error))
        known = function is Missing or any(given is None or type(given) is Missing for given in arguments)
        if type(made) is Missing and not known:
            cls = next((given for given in (*arguments, function) if issubclass(type(given), type)), type(made))
            self._say(f"A new {cls.__qualname__} cannot be made here: {made.what}.")
        return made

    def fill(self, obj: Any, state: Any) -> None:
        """Give a new object its state, as its class says or as pickle does where nothing else is said."""
        write, given = state
        if type(obj) is Missing:
            return
        try:
            if write is not None:
                write(obj, given)
            elif definer_of(type(obj), "__setstate__"):  # an object that has nothing yet cannot be asked
                obj.__setstate__(given)
            else:
                attributes, slots = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
                if attributes:
                    attributes_of(obj).update(attributes)
                for name, value in (slots or {}).items():
                    object.__setattr__(obj, name, value)
        except Exception as error:  # noqa: BLE001 (a class may refuse a state)
            self.incomplete.append(obj)
            self._say(f"A new {type(obj).__qualname__} is incomplete: {short(error)}.")

    def lacks_something(self, obj: Any) -> bool:
        """Whether a child leads to a new object that is incomplete."""
        if is_value(obj):
            return False
        reached = Snapshot({"": ([obj], LIST)}, dict.fromkeys(self._snapshot.numbers, KEPT)).numbers
        return any(id(new) in reached for new in self.incomplete)

    def open_again(self, function: Any, *arguments: Any) -> Any:
        """Open a file of the other process."""
        return self.make(function, *arguments) if self._reopen else Missing("an open file")

    def _say(self, sentence: str) -> None:
        self.sentences.append(sentence)
