"""Names and all that they lead to, from a moment on: what has changed as bytes, put back in a process like it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any

from det_native.carried import states
from det_native.carried.changes import names_changed
from det_native.carried.namespaces import LOCAL, Namespace
from det_native.carried.numbers import on_device
from det_native.carried.packing import TooLargeError, Unit, head_of, packed, unpacked
from det_native.carried.table import NO_KINDS, Kinds, Part, Table, is_ours

#: Bytes that a save may have. A checkpoint of more takes longer to write and to fetch than most loops' epochs; what a
#: loop makes itself (losses, predictions, the copy of a model) is smaller, and larger things are data.
LIMIT = 256 << 20


@dataclass(frozen=True)
class Saved:
    """What a loop has changed, as bytes.

    Attributes
    ----------
    data : bytes
    lost : dict of str to str
        Names that are not in it, each with the reason.
    """

    data: bytes
    lost: dict[str, str] = field(default_factory=dict)


class CarriedNames:
    """Knows what names lead to when this is made, and so what is different later.

    Parameters
    ----------
    namespaces : dict of str to Namespace
        More are added for modules in which functions look up names.
    watched : mapping of str to iterable of str
        The names of each namespace.
    known : mapping
        Objects that are kept otherwise, by what stands for them in other processes. They are referred to, and not
        looked into.
    device : torch.device, optional
        Where tensors go that were on a device of its type.
    kinds : Kinds, optional
        Classes of libraries whose objects are looked at in another way.

    Attributes
    ----------
    lost : dict of str to str
        Names that the last call of :meth:`restore` could not put back, each with the reason.
    brought : bool
        Whether the last call of :meth:`restore` was given anything that had changed.
    unkept : dict of str to str
        Names whose values cannot be kept, and which are needed, each with what it is.
    sets : dict of str to frozenset of str
        Names that functions bind which may be called, by their namespace.
    """

    def __init__(
        self,
        namespaces: dict[str, Namespace],
        watched: Mapping[str, Iterable[str]],
        known: Mapping[Any, Any],
        device: Any = None,
        kinds: Kinds = NO_KINDS,
    ) -> None:
        self._known = dict(known)
        self._device = device
        self._table = Table(namespaces, watched, self._known, kinds)
        self.lost: dict[str, str] = {}
        self.brought = False
        self.unkept: dict[str, str] = {}
        self.sets = {key: frozenset(names) for key, names in self._table.bound.items()}
        self._given_up: set[str] = set()

    @property
    def in_function(self) -> bool:
        """Whether names are variables of a function, which are gone when it has ended."""
        return False

    def awaited(self, key: str = LOCAL) -> frozenset[str]:
        """Return the names of a namespace that the code sets, and that nobody has bound or deleted since then."""
        given_up = self._given_up if key != LOCAL else set()
        return frozenset(name for name in self.sets.get(key, frozenset()) - given_up if self._is_as_then(key, name))

    def give_up(self, names: Iterable[str]) -> None:
        """Leave names of cells alone that were bound anew: what the code makes of them is not wanted any more."""
        self._given_up |= {*names}

    def changed_by(self, codes: Iterable[tuple[CodeType, Sequence[str]]]) -> frozenset[int]:
        """Return identities of the objects that code may change in place, as far as it tells.

        Parameters
        ----------
        codes : iterable of tuple
            Code, and the namespaces in which it looks up names. The functions that it may call count, too.
        """
        table = self._table
        names: set[tuple[str, str]] = set()
        functions = [(each.__code__, [str(each.__globals__.get("__name__"))]) for each in table.functions]
        for code, keys in (*codes, *functions):
            where = partial(_holding, table.before, keys)
            for name in names_changed(code, partial(_value_in, table.before, keys)):
                key = where(name)
                if key is not None:
                    names.add((key, name))
        roots = {id(table.before[key][name]) for key, name in names}
        found: set[int] = set()
        for identity, part in table.parts.items():  # what holds a part comes before it
            by_function = part.holder is not None and isinstance(part.holder.value, FunctionType | CellType)
            inside = part.holder is not None and id(part.holder.value) in found
            if not part.fixed and (by_function or inside or identity in roots or part.address[:2] in names):
                found.add(identity)
        return frozenset(found)

    @property
    def parts(self) -> list[Part]:
        """Return the objects that are watched."""
        return [*self._table.parts.values()]

    def _is_as_then(self, key: str, name: str) -> bool:
        values, before = self._table.namespaces[key].values(), self._table.before.get(key, {})
        return (name in values) == (name in before) and values.get(name) is before.get(name)

    def save(self, limit: int = LIMIT) -> Saved:
        """Return what has changed since the beginning.

        What cannot be pickled, or goes beyond the limit, is left out, and named.
        """
        units, replaced = self._changes()
        try:
            return Saved(packed({}, units, self._table, self._known, replaced, limit))
        except Exception:  # noqa: BLE001 (which of them it is, is seen now)
            lost = self._lost(units, replaced, limit)
        kept = [unit for unit in units if unit.name not in lost]
        try:
            return Saved(packed(lost, kept, self._table, self._known, replaced, limit), lost)
        except TooLargeError:  # each fits, all together do not
            return self._as_many_as_fit(lost, kept, replaced, limit)

    def _lost(self, units: list[Unit], replaced: set[int], limit: int) -> dict[str, str]:
        lost = {}
        for unit in units:
            try:
                packed({}, [unit], self._table, self._known, replaced, limit)
            except TooLargeError:
                lost[unit.name] = f"is larger than {limit >> 20} MB"
            except Exception as error:  # noqa: BLE001 (users' objects may raise anything)
                lost[unit.name] = f"cannot be pickled ({type(error).__name__}: {error})"
        return lost

    def _as_many_as_fit(self, lost: dict[str, str], units: list[Unit], replaced: set[int], limit: int) -> Saved:
        sizes = {unit: len(packed({}, [unit], self._table, self._known, replaced, limit)) for unit in units}
        while units:
            largest = max(units, key=sizes.__getitem__)
            lost[largest.name] = f"is, with the others, larger than {limit >> 20} MB"
            units = [unit for unit in units if unit.name != largest.name]
            try:
                return Saved(packed(lost, units, self._table, self._known, replaced, limit), lost)
            except TooLargeError:
                continue
        return Saved(packed(lost, [], self._table, self._known, replaced, limit), lost)

    def _changes(self) -> tuple[list[Unit], set[int]]:
        parts, replaced = self._table.changed()
        units = []
        for key, name, value in self._bound_anew(replaced):
            units.append(Unit(name, partial(tuple, ("name", key, name, value))))
        for key, before in self._table.before.items():
            values = self._table.namespaces[key].values()
            for name in before:
                if name not in values:
                    units.append(Unit(name, partial(tuple, ("gone", key, name, None))))
        for part in parts:
            units.append(Unit(part.name, partial(_content, part, replaced)))
        return units, replaced

    def _bound_anew(self, replaced: set[int]) -> Iterator[tuple[str, str, Any]]:
        for key, names in self._table.watched.items():
            values, before = self._table.namespaces[key].values(), self._table.before.get(key, {})
            for name in names:
                if name not in values or is_ours(values[name]):
                    continue
                if name not in before or values[name] is not before[name] or id(values[name]) in replaced:
                    yield key, name, values[name]

    def _unpacked(self, data: bytes, names: Sequence[str]) -> Iterator[tuple[str, Any, list[Any]]]:
        """Yield what was packed, up to what cannot be read here; that and what follows is noted as lost."""
        done = 0
        try:
            for unit in unpacked(data, self._table, self._known):
                yield unit
                done += 1
        except Exception as error:  # noqa: BLE001 (classes of users and libraries may refuse to be made again)
            reason = f"cannot be made again here ({type(error).__name__}: {error})"
            self.lost |= dict.fromkeys(names[done:], reason)

    def restore(self, data: bytes, *, unless_bound: bool = False) -> dict[str, str]:
        """Put back what another process has saved, which had begun the same loop.

        Parameters
        ----------
        data : bytes
        unless_bound : bool
            Leave alone names that were bound or deleted since the beginning.

        Returns
        -------
        dict of str to str
            Names that were not put back, each with the reason.
        """
        self.lost, names = head_of(data)
        self.brought = bool(names)
        lost = self.lost
        bound: dict[str, dict[str, Any]] = {}
        gone: dict[str, list[str]] = {}
        contents = []
        with on_device(self._device) if self._device is not None else nullcontext():
            for name, entry, missing in self._unpacked(data, names):
                kind, where, inner, value = entry
                if missing:
                    lost[name] = "holds what the program has not made again"
                elif kind == "name":
                    bound.setdefault(where, {})[inner] = value
                elif kind == "gone":
                    gone.setdefault(where, []).append(inner)
                else:
                    contents.append((name, where, value))
            for name, address, content in contents:
                part = self._table.at.get(address)
                try:
                    if part is None:
                        raise LookupError("the program has not made it again")
                    states.put(part.value, content)
                except Exception as error:  # noqa: BLE001 (classes of users may refuse)
                    lost[name] = f"cannot be put back ({error})"
        for key in {**bound, **gone}:
            namespace = self._table.namespaces.get(key)
            if namespace is None:
                lost |= dict.fromkeys(bound.get(key, {}), "is of a module that the program has not imported")
                continue
            here = [*bound.get(key, {}), *gone.get(key, ())]
            given_up = self._given_up if key != LOCAL else set()
            touched = {name for name in here if name in given_up or not self._is_as_then(key, name)}
            if not unless_bound:
                touched.clear()
            values = {name: value for name, value in bound.get(key, {}).items() if name not in touched}
            namespace.put(values, [name for name in gone.get(key, ()) if name not in touched])
        return lost


def _holding(before: Mapping[str, Mapping[str, Any]], keys: Iterable[str], name: str) -> str | None:
    """Return the first of several namespaces that had a name at the beginning."""
    return next((key for key in keys if name in before.get(key, {})), None)


def _value_in(before: Mapping[str, Mapping[str, Any]], keys: Iterable[str], name: str) -> Any:
    key = _holding(before, keys, name)
    return None if key is None else before[key][name]


def _content(part: Part, replaced: set[int]) -> Any:
    return "part", part.address, None, states.content_of(part.value, part.before, replaced)
