"""Which trainings the names that a text reads lead to, through all that their values hold."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from det_native.capture.named_by_text import matching
from det_native.capture.observation.graph import Walk
from det_native.capture.observation.kinds import Kinds
from det_native.pending.reading import Reading
from det_native.pending.registry import PendingTraining

#: Objects that are looked at for one question; what goes beyond may hold any model.
LIMIT = 200_000


class Reach(Walk):
    """Looks for the objects of trainings in what names hold.

    Parameters
    ----------
    namespace : mapping of str
        The notebook's, or the script's: functions of it look up names there.
    trainings : sequence of PendingTraining
    by_call : bool
        The values are arguments of another training call, in which some callbacks start fresh.
    """

    __slots__ = ("_awaited", "_by_name", "_objects", "_seen_names")

    def __init__(
        self, namespace: Mapping[str, Any], trainings: Sequence[PendingTraining], *, by_call: bool = False
    ) -> None:
        super().__init__(namespace, LIMIT, Kinds())
        self._objects = {training: training.objects() for training in trainings}
        if by_call:
            self._objects = {training: objects - training.renewed() for training, objects in self._objects.items()}
        self._seen_names: set[str] = set()
        self._awaited = {training: names for training in trainings if (names := training.awaited())}
        self._by_name: set[PendingTraining] = set()

    @property
    def wanted(self) -> frozenset[int]:
        """Return all that is looked for."""
        return frozenset().union(*self._objects.values())

    def add(self, reading: Reading, lookup: Callable[[str], Any], own: Collection[str] = ()) -> None:
        """Look at the values of all that a text reads.

        Parameters
        ----------
        reading : Reading
        lookup : callable
            Gives the value of a name.
        own : collection of str
            Variables of the function that the text is of: the notebook's names are others.
        """
        self._add_awaited(reading.all_names.difference(own), everything=reading.everything)
        values = dict(reading.values)
        for name in reading.names:
            if name not in values:
                values[name] = lookup(name)
        self.add_values(values.values())
        if reading.everything:
            self._add_names(self.namespace)
        for pattern in (name for name in reading.names if "*" in name):
            self._add_names(matching(pattern, self.namespace))

    def add_stored(self, reading: Reading, lookup: Callable[[str], Any]) -> None:
        """Look at what a text puts into containers that were looked at, by whatever name or function."""
        waiting = dict(reading.stored)
        while reached := [container for container in waiting if id(lookup(container)) in self._met]:
            for container in reached:
                self.add(Reading(waiting.pop(container)), lookup)

    def add_values(self, values: Iterable[Any]) -> None:
        """Look at values, and at what functions in them look up."""
        for value in values:
            self._look_through(value)
        while names := self.looked_up - self._seen_names:
            self._seen_names |= names
            self._add_awaited(names)
            for name in names:
                self._add_names(matching(name, self.namespace) if "*" in name else (name,))

    def _add_awaited(self, names: Collection[str], *, everything: bool = False) -> None:
        """Note the trainings whose loops set one of these names of the notebook."""
        for training, awaited in self._awaited.items():
            patterns = (name for name in names if "*" in name)
            if everything or not awaited.isdisjoint(names) or any(any(matching(one, awaited)) for one in patterns):
                self._by_name.add(training)

    def add_training(self, training: PendingTraining) -> None:
        """Note a training whose loop sets what a text reads."""
        self._by_name.add(training)

    def _add_names(self, names: Iterable[str]) -> None:
        for name in list(names):
            if not name.startswith("_") and name not in ("In", "Out"):  # what IPython keeps of former cells
                self._look_through(self.namespace.get(name))

    def met(self) -> list[PendingTraining]:
        """Return the trainings to which what was looked at leads; all of them if not all could be looked at."""
        if self.left < 0:
            return [*self._objects]
        seen = self._met | self.changeable
        return [
            training
            for training, objects in self._objects.items()
            if training in self._by_name or not objects.isdisjoint(seen)
        ]

    def _look_through(self, value: Any) -> None:
        self.go((value,))
        waiting = self._next
        while waiting and self.left >= 0:
            one = waiting.pop()
            if id(one) in self._met:
                continue
            self._met.add(id(one))
            self.kept.append(one)  # what is made anew each time it is asked for leaves its identity to others
            self.left -= 1
            kind = type(one)
            how = self.kinds.known[kind]
            if not how.ends:
                self._into(one, kind, how)
        waiting.clear()
        self._tokens.clear()


def in_namespace(namespace: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return what gives the value of a name, as code at the top level finds it; None of what is not there."""

    def lookup(name: str) -> Any:
        return namespace[name] if name in namespace else getattr(builtins, name, None)

    return lookup
