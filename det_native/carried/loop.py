"""The names of a user's own loop, from its beginning on: saved as bytes, and put back in a process like it."""

from __future__ import annotations

import dis
from collections.abc import Iterable, Mapping, Sequence
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from det_native.carried.changes import names_changed
from det_native.carried.codes import global_names, globals_bound, names_bound, read_first
from det_native.carried.names import CarriedNames, Saved
from det_native.carried.namespaces import LOCAL, FunctionNames, Namespace
from det_native.proof.loop_code import part_around

__all__ = ["LoopNames", "Saved", "loop_around"]

_OPTIMIZED = 0x1  # inspect.CO_OPTIMIZED: the code of a function, whose variables are its own


class LoopNames(CarriedNames):
    """Knows what the names around a loop lead to when this is made, and so what is different later.

    Parameters
    ----------
    frame : frame
        Of the loop, a cell's or a function's: ``callsite.asking_frame()`` gives it.
    known : mapping
        Objects that are kept otherwise (wrapped models and their parameters, say), by what stands for them in other
        processes. They are referred to, and not looked into.
    device : torch.device, optional
        Where tensors go that were on a device of its type.

    Attributes
    ----------
    sets : dict of str to frozenset of str
        Names that the loop binds, or functions bind which it may call, by their namespace.
    lost : dict of str to str
        Names that the last call of :meth:`restore` could not put back, each with the reason.
    unkept : dict of str to str
        Names that the loop reads first, and whose values cannot be kept, each with what it is.
    """

    def __init__(self, frame: FrameType, known: Mapping[Any, Any], device: Any = None) -> None:
        code = frame.f_code
        module = str(frame.f_globals.get("__name__"))
        namespaces: dict[str, Namespace] = {module: Namespace(frame.f_globals)}
        watched: dict[str, Any] = {module: global_names(code)}
        self._home = module
        if code.co_flags & _OPTIMIZED:
            self._home = LOCAL
            namespaces[LOCAL] = FunctionNames(frame)
            watched = {LOCAL: (*code.co_varnames, *code.co_cellvars, *code.co_freevars), **watched}
        super().__init__(namespaces, watched, known, device)
        self._loop = loop_around(code, frame.f_lasti)
        bound = names_bound(self._loop)
        self.sets = {key: frozenset(names) for key, names in self._table.bound.items()}
        self.sets[self._home] = bound | self.sets.get(self._home, frozenset())
        if self._home == LOCAL:
            outside = globals_bound(self._loop)
            self.sets[LOCAL] -= outside
            self.sets[module] = outside | self.sets.get(module, frozenset())
        needed = self.needed()
        self.unkept = {name: what for name, what in self._table.cannot.items() if name in needed}

    def needed(self) -> frozenset[str]:
        """Return the names that a round of the loop reads before it has bound them."""
        names = {name for several in self._table.watched.values() for name in several}
        return read_first(self._loop, frozenset(names))

    @property
    def in_function(self) -> bool:
        """Whether the loop is in a function: its variables are gone when the function has ended."""
        return self._home == LOCAL

    def awaited(self, key: str = LOCAL) -> frozenset[str]:
        """Return the names of a namespace that the loop sets, and that nobody has bound or deleted since then."""
        given_up = self._given_up if key != LOCAL else set()
        return frozenset(name for name in self.sets.get(key, frozenset()) - given_up if self._is_as_then(key, name))

    def give_up(self, names: Iterable[str]) -> None:
        """Leave names of cells alone that were bound anew: what the loop makes of them is not wanted any more."""
        self._given_up |= {*names}

    def may_change(self) -> frozenset[int]:
        """Return identities of the objects that the loop may change in place, as far as its code tells."""
        table = self._table
        names: set[tuple[str, str]] = set()

        def changed_by(code: CodeType, keys: Sequence[str]) -> None:
            def where(name: str) -> str | None:
                return next((key for key in keys if name in table.before.get(key, {})), None)

            def lookup(name: str) -> Any:
                key = where(name)
                return None if key is None else table.before[key][name]

            for name in names_changed(code, lookup):
                key = where(name)
                if key is not None:
                    names.add((key, name))

        changed_by(self._loop, [self._home, *table.namespaces])
        for function in table.functions:
            changed_by(function.__code__, [str(function.__globals__.get("__name__"))])
        roots = {id(table.before[key][name]) for key, name in names}
        found: set[int] = set()
        for identity, part in table.parts.items():  # what holds a part comes before it
            by_function = part.holder is not None and isinstance(part.holder.value, FunctionType | CellType)
            inside = part.holder is not None and id(part.holder.value) in found
            if not part.fixed and (by_function or inside or identity in roots or part.address[:2] in names):
                found.add(identity)
        return frozenset(found)


def loop_around(code: CodeType, position: int) -> CodeType:
    """Return the code of the ``for`` loop around a position, or all of the code where there is none."""
    part = part_around(code, position)
    return part if _has_loop(part) else code


def _has_loop(code: CodeType) -> bool:
    return any(each.opname == "FOR_ITER" for each in dis.get_instructions(code))
