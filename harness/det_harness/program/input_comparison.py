"""Compares what the recorded call is given with the notebook's, and gives it the notebook's state where it differs."""

from __future__ import annotations

import json
import types
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from det_harness.program.input_advice import has_state
from det_harness.program.input_difference import Difference
from det_native.heap.compare import Entry, Table, differences, differs, is_array, is_rounding
from det_native.heap.edges import NamedKind, is_same_child, is_value
from det_native.heap.graft import WHOLE, graft_snapshot
from det_native.heap.kinds.functions import is_read
from det_native.heap.roots import roots_of_call
from det_native.heap.values import unpack_roots
from det_native.heap.words import describe
from det_native.schema.proof import CallProof, Input, Role

_NAMED = 3  # values of one object that are named one by one


class Comparison:
    """One comparison of a call's inputs.

    Parameters
    ----------
    proof : CallProof
        With a table.
    place : callable
        Gives the path that is used here instead of one in a value that travelled.
    folder : Path or None
        That of the user's files; the working directory by default.

    Attributes
    ----------
    early : set of str
        Of what differs, what was there when ``init()`` was called.
    """

    def __init__(
        self,
        proof: CallProof,
        payload: Any,
        read_blob: Callable[[str], bytes],
        place: Callable[[str], str],
        folder: Path | None,
    ) -> None:
        self._folder = str(folder or Path.cwd())
        assert proof.table is not None
        known = json.loads(zlib.decompress(read_blob(proof.table.sha256)))
        self._proof, self._payload, self._read_blob, self._place = proof, payload, read_blob, place
        self._names: dict[str, str] = known["names"]
        self._early_keys = frozenset(known["early"])
        self._there = {key: _entry(fields) for key, fields in known["entries"].items()}
        self._parts: list[str] = known["parts"]
        self._inputs: dict[str, Input] = payload.inputs()
        self._namespace = roots_of_call()[0]
        self._here = self._table(self._inputs)
        self._roots = {
            entry.part: self._value(key) for key, entry in self._here.entries.items() if not entry.path and entry.cls
        }
        #: The differing addresses that are looked at, with both sides.
        self._found: dict[str, tuple[Entry, Entry]] = {}
        self._only_one_side: list[Difference] = []
        self.early: set[str] = set()

    def _table(self, inputs: dict[str, Input]) -> Table:
        values = {part: given.value for part, given in inputs.items()}
        return Table(values, self._namespace, folder=self._folder)

    def choose(self, *, is_exact: bool, is_fresh: bool) -> None:
        """Find what differs; in trials that differ anyway only what was there when ``init()`` was called.

        Where a training continues, it has the weights of its checkpoint.
        """
        for key, there, here in differences(self._there, self._here.entries):
            if is_rounding(there, here) or not (is_exact or key in self._early_keys):
                continue
            if self._is_share(key):
                continue
            if is_fresh or self._role(there) != "weights":
                self._found[key] = there, here
                self.early |= {there.title, self._title(there)} if key in self._early_keys else set()
        has_others = is_exact and self._inputs.keys() != {*self._parts}
        if self._found or has_others:
            self._here.add_words()
            self._found = {key: (there, self._here.entries[key]) for key, (there, _) in self._found.items()}
        if has_others:
            self._only_one_side += self._vanished()

    def _is_share(self, key: str) -> bool:
        """Whether an object is what this rank reads of data that the ranks share, which the notebook has whole."""
        is_share: Callable[[Any], bool] | None = getattr(self._payload, "is_share", None)
        objects = self._here.snapshot.objects
        return is_share is not None and any(is_share(objects[number]) for number in self._here.numbers.get(key, ()))

    def _vanished(self) -> Iterator[Difference]:
        """Yield the inputs that only one process has."""
        there = {entry.part: entry for entry in self._there.values() if not entry.path}
        here = {entry.part: entry for entry in self._here.entries.values() if not entry.path}
        for part in self._parts:
            if part not in self._inputs and part in there:
                sides = "nothing", there[part].text
                yield Difference(part, part, self._names.get(part, ""), "data", sides, there[part].cls)
        for part, given in self._inputs.items():
            if part not in self._parts and given.role == "data" and part in here:
                yield Difference(part, part, "", "data", (here[part].text, "nothing"), here[part].cls, given.value)

    def put_right(self) -> tuple[list[Difference], list[Difference]]:
        """Give the call the notebook's state where it differs; return what is right now, and what is not."""
        if not self._found:
            return [], self._only_one_side
        theirs = self._notebooks_table()
        before = {key: [*self._say(key, theirs)] for key in self._found}
        if theirs is not None:
            only: dict[int, set[Any]] = {}
            for key in self._found:
                came, there = theirs.entries.get(key), self._there[key]
                if came is None or (came.cls, came.exact) != (there.cls, there.exact):
                    continue  # it did not come as it was
                for number in self._here.numbers.get(key, ()):
                    only.setdefault(number, set()).add(WHOLE)
                if key in self._here.holders:
                    number, label = self._here.holders[key]
                    only.setdefault(number, set()).add(label)
            graft_snapshot(self._here.snapshot, theirs.snapshot, only)
            self._assign()
        after = self._table(self._inputs if theirs is None else self._payload.inputs()).entries
        still = {
            key
            for key, (there, _) in self._found.items()
            if (here := after.get(key)) is not None and differs(there, here) and not is_rounding(there, here)
        }
        right: dict[str, Difference] = {}
        wrong: dict[str, Difference] = {}
        for key in self._found:
            for difference in before[key] if not self._is_in_replaced(key) else ():
                (wrong if key in still else right).setdefault(difference.title, difference)
        settled = [difference for title, difference in right.items() if title not in wrong]
        return [*self._collected(settled)], [*wrong.values(), *self._only_one_side]

    def _collected(self, differences: list[Difference]) -> Iterator[Difference]:
        """Yield one difference for each input of which many parts differ."""
        by_part: dict[str, list[Difference]] = {}
        for difference in differences:
            by_part.setdefault(difference.part, []).append(difference)
        whole = {entry.part: (entry, key) for key, entry in self._there.items() if not entry.path}
        for part, several in by_part.items():
            if len(several) <= _NAMED or part not in whole:
                yield from several
                continue
            there, key = whole[part]
            here = self._here.entries.get(key, there)
            sides = here.text, there.text
            yield Difference(part, part, several[0].name, several[0].role, sides, there.cls, several[0].value)
            self.early |= {part} if all(difference.title in self.early for difference in several) else set()

    def _notebooks_table(self) -> Table | None:
        if self._proof.inputs is None:
            return None
        given, names = unpack_roots(self._read_blob(self._proof.inputs.sha256), self._place)
        return Table(given, names, folder=self._folder)

    def _assign(self) -> None:
        """Have the call and the program's variables take other objects for those that could not be changed."""
        for part, given in self._inputs.items():
            value = self._here.given[part]
            if value is given.value:
                continue
            if given.assign is not None:
                given.assign(value)
            if not is_value(given.value):
                names = self._namespace
                names.update(dict.fromkeys([name for name, held in names.items() if held is given.value], value))
        if hasattr(self._payload, "inputs_changed"):
            self._payload.inputs_changed()

    # In words.

    def _is_in_replaced(self, key: str) -> bool:
        """Whether an object is a part of one that is of another class here, of which all differs."""
        there = self._found[key][0]
        return any(
            other.cls != here.cls
            and other.part == there.part
            and other.path != there.path
            and there.path.startswith(other.path)
            for other, here in self._found.values()
        )

    def _say(self, key: str, theirs: Table | None) -> Iterator[Difference]:
        there, here = self._found[key]
        role = self._role(there)
        name = self._names.get(there.part) or there.part.partition(", read by ")[0] * (role == "variable")
        value = self._value(key)
        root = self._roots.get(there.part)
        if has_state(root):
            value = root  # which travels as a whole
        if there.part.startswith("the function "):
            name = there.part.rpartition(".")[2].rpartition(" ")[2]
        values = [] if theirs is None or role == "weights" else [*self._differing_values(key, theirs)]
        if not 0 < len(values) <= _NAMED or any(step is None for step, _, _ in values):
            sides = here.text, there.text
            yield Difference(there.part, self._title(there), name, role, sides, there.cls, value)
            return
        for step, mine, other in values:
            title, sides = f"{there.title}{step}", (describe(mine), describe(other))
            self.early |= {title} if key in self._early_keys else set()
            yield Difference(there.part, title, name, role, sides, type(mine).__qualname__, value)

    def _value(self, key: str) -> Any:
        snapshot = self._here.snapshot
        if key in self._here.holders:
            return self._here.value(key)
        number = self._here.numbers[key][0]
        parent = snapshot.parents[number]
        return snapshot.objects[parent if snapshot.kinds[parent].is_whole else number]

    def _differing_values(self, key: str, theirs: Table) -> Iterator[tuple[str | None, Any, Any]]:
        """Yield the plain values in an object that differ: the way to each, what is here, and what the notebook has."""
        if key in self._here.holders and key in theirs.holders:
            yield "", self._here.value(key), theirs.value(key)
        if key not in theirs.numbers or key not in self._here.numbers:
            return
        mine, other = self._here.snapshot, theirs.snapshot
        number, same = self._here.numbers[key][0], theirs.numbers[key][0]
        kind = mine.kinds[number]
        if kind.is_whole or not kind.is_ordered:
            return
        wanted, held = other.held(same), mine.held(number)
        if wanted.keys() != held.keys():
            return
        for label, value in held.items():
            is_own = type(value) is not types.CodeType and not is_read(label)
            if is_own and is_value(value) and is_value(wanted[label]) and not is_same_child(value, wanted[label]):
                is_named = type(label) is str or isinstance(kind, NamedKind)  # a place in a list says little
                yield kind.step(label) if is_named else None, value, wanted[label]

    def _title(self, entry: Entry) -> str:
        given = self._inputs.get(entry.part)
        if given is not None and self._role(entry) == "weights":
            return entry.part if given.role == "weights" else f"{entry.part}'s weights"
        return entry.title

    def _role(self, entry: Entry) -> Role:
        given = self._inputs.get(entry.part)
        if given is None:
            return "code" if entry.part.startswith("the function ") else "variable"
        return "weights" if given.role == "layers" and is_array(entry.cls) else given.role


def _entry(fields: list[Any]) -> Entry:
    entry = Entry(*fields)
    return entry._replace(rounding=(entry.rounding[0], entry.rounding[1]))
