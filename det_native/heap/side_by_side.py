"""Trainings that run side by side: what two of them have changed stays as the first one that came home made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from det_native.heap.edges import Difference, Missing, is_same_child
from det_native.heap.snapshot import Snapshot

_SHOWN = 8


class Others:
    """What other trainings have put in place since a snapshot was taken."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        #: By number and label (None: all of the object): the experiment whose state is there.
        self._changed: dict[int, dict[Any, int | None]] = {}
        #: By experiment: how the user writes what is not changed again.
        self._kept: dict[int | None, dict[str, None]] = {}
        _living.add(self)

    def rest(self, number: int, difference: Difference, experiment: int) -> Difference | None:
        """Return what of a difference is to be put in place, None for nothing; note that for all other snapshots."""
        children, facts, content = difference
        kind, obj = self._snapshot.kinds[number], self._snapshot.objects[number]
        parts = kind.parts(children, facts, content)
        labels = () if parts is None else kind.labels(obj, children, facts)
        kept = self._find_kept(number, dict(zip(labels, children, strict=False)), [None] if parts is None else parts)
        if None in kept:
            return None
        for other in _living:
            same = other._snapshot.numbers.get(id(obj))
            if other is not self and same is not None:
                written = [None] if parts is None else [part for part in parts if part not in kept]
                other._changed.setdefault(same, {}).update(dict.fromkeys(written, experiment))
        if kept:
            children = [Missing() if label in kept else child for label, child in zip(labels, children, strict=True)]
            content = [label for label in content if label not in kept] if isinstance(content, list) else content
        return children, facts, content

    def _find_kept(self, number: int, values: Mapping[Any, Any], parts: Any) -> dict[Any, int | None]:
        """Return the parts that stay, with the experiment that has made them."""
        changed, snapshot = self._changed.get(number), self._snapshot
        if not changed or snapshot.is_private(number):
            return {}
        children, facts = snapshot.kinds[number].read_state(snapshot.objects[number])
        now = dict(zip(snapshot.kinds[number].labels(snapshot.objects[number], children, facts), children, strict=True))
        kept: dict[Any, int | None] = {}
        for part in parts:
            value, by = values.get(part), changed.get(part, changed.get(None, next(iter(changed.values()))))
            is_same = part in now and is_same_child(now[part], value)
            if (part in changed or None in (part, *changed)) and type(value) is not Missing and not is_same:
                kept[part] = by
                path = snapshot.path(number) if part is None else snapshot.path_of_part(number, part)
                self._kept.setdefault(by, {})[f"`{path}`"] = None
        return kept

    def sentences(self, experiment: int | None) -> list[str]:
        """Return what is to be said of the parts that stay, once."""
        sentences, kept, self._kept = [], self._kept, {}
        for other, paths in kept.items():
            names = ", ".join([*paths][:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
            both = f"Experiments {other} and {experiment} both changed {names}"
            sentences.append(f"{both}: here is what experiment {other} made of it.")
        return sentences


_living: WeakSet[Others] = WeakSet()
