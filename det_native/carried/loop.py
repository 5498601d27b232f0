"""The names of a user's own loop, from its beginning on: saved as bytes, and put back in a process like it."""

from __future__ import annotations

import dis
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any

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
        Names that the loop binds, too.
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

    def may_change(self) -> frozenset[int]:
        """Return identities of the objects that the loop may change in place, as far as its code tells."""
        return self.changed_by([(self._loop, [self._home, *self._table.namespaces])])


def loop_around(code: CodeType, position: int) -> CodeType:
    """Return the code of the ``for`` loop around a position, or all of the code where there is none."""
    part = part_around(code, position)
    return part if _has_loop(part) else code


def _has_loop(code: CodeType) -> bool:
    return any(each.opname == "FOR_ITER" for each in dis.get_instructions(code))
