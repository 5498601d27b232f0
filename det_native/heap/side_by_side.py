"""Trainings that run side by side: what two of them have changed stays as the first one that came home made it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from weakref import WeakSet

from det_native.heap.edges import Missing, is_same_child
from det_native.heap.snapshot import Snapshot

_SHOWN = 8
_NOT_THERE = object()


class Others:
    """What other trainings have put in place since a snapshot was taken."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        #: By number and label (None: all of the object): the experiment whose state is there.
        self._changed: dict[int, dict[Any, int | None]] = {}
        #: By experiment: how the user writes what is not changed again.
        self._kept: dict[int | None, dict[str, None]] = {}
        _living.add(self)

    def note(self, obj: Any, parts: Sequence[Any] | None, experiment: int | None) -> None:
        """Note for all other snapshots what this one's training has put in place."""
        for other in _living:
            number = other._snapshot.numbers.get(id(obj))
            if other is not self and number is not None:
                changed = other._changed.setdefault(number, {})
                changed |= dict.fromkeys((None,) if parts is None else parts, experiment)

    def changed(self, number: int, parts: Sequence[Any] | None, values: Mapping[Any, Any]) -> Collection[Any]:
        """Return which parts of an object are to stay, None for all of it; `values` has what they would become."""
        changed, snapshot = self._changed.get(number), self._snapshot
        if not changed or snapshot.is_private(number):
            return ()
        kind, obj = snapshot.kinds[number], snapshot.objects[number]
        if parts is None:
            kept = {None: next(iter(changed.values()))}
        else:
            children, facts = kind.read_state(obj)
            now = dict(zip(kind.labels(obj, children, facts), children, strict=True))
            kept = {
                part: changed.get(part, changed.get(None))
                for part in parts
                if (part in changed or None in changed)
                and not isinstance(values.get(part), Missing)
                and not is_same_child(now.get(part, _NOT_THERE), values.get(part, _NOT_THERE))
            }
        for part, experiment in kept.items():
            path = snapshot.path(number) if part is None else snapshot.path_of_part(number, part)
            self._kept.setdefault(experiment, {})[f"`{path}`"] = None
        return kept

    def sentences(self, experiment: int | None) -> list[str]:
        """Return what to say of the parts that stay."""
        sentences = []
        for other, paths in self._kept.items():
            names = ", ".join([*paths][:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
            both = f"Experiments {other} and {experiment} both changed {names}"
            sentences.append(f"{both}: here is what experiment {other} made of it.")
        return sentences


_living: WeakSet[Others] = WeakSet()
