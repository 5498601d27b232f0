"""Values of a notebook that travel: those that the user has named, and what expensive cells have made."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os.path import isabs
from pathlib import PurePath
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

from det_native.capture.carry import NO_LIMIT, CannotSendError, Packed, pack
from det_native.capture.execution import Execution
from det_native.capture.model import CapturedValue
from det_native.capture.modules import is_local
from det_native.capture.never_sent import has_state
from det_native.capture.program.choose import ROOM
from det_native.capture.program.records import Plan, Run, Travel
from det_native.capture.program.settings import settings_of
from det_native.capture.value_formats import size_of
from det_native.errors import Problem
from det_native.heap.edges import kind_of
from det_native.heap.names import ROOTS
from det_native.heap.ownership import is_library_of_ours
from det_native.heap.snapshot import Snapshot

_LONGEST_PATH = 4_096  # characters; a longer text is data
#: What travels by its name: what it holds is what its module has where it arrives.
_BY_NAME: Any = (ModuleType, FunctionType, BuiltinFunctionType, type)
#: What is nothing but a few other objects.
_OF_PARTS = (MethodType, CellType, partial, staticmethod, classmethod, property)


class ValuesToSend:
    """Says which values can travel, and encodes those that do.

    Parameters
    ----------
    wanted : sequence of str
        Names that the user has given in ``values=``.
    namespace : mapping of str
        The live values.
    runs : sequence of Run
        Of the same executions.
    sharing : callable, optional
        Returns the names whose values have objects in common with that of another one.
    wrapped : sequence of (object, int)
        Models and optimizers that the call trains, with the runs that wrapped them.

    Attributes
    ----------
    declared : set of str
        Those of the names in ``values=`` that can be sent.
    errors : dict of str to CannotSendError
        Of names that cannot be sent, why.
    states : set of str
        Names of which the state travels, for an object that is there.
    """

    def __init__(
        self,
        wanted: Sequence[str],
        namespace: Mapping[str, Any],
        executions: Sequence[Execution],
        runs: Sequence[Run],
        sharing: Callable[[str], frozenset[str]] = lambda name: frozenset(),
        wrapped: Sequence[tuple[Any, int]] = (),
    ) -> None:
        self._wanted, self.executions, self.runs, self._sharing = wanted, executions, runs, sharing
        self.namespace, self._wrapped = namespace, wrapped
        self.declared: set[str] = set()
        self.encoded: dict[str, Packed] = {}
        self.errors: dict[str, CannotSendError] = {}
        self.travels: dict[str, Travel] = {}
        self.states: set[str] = set()

    def declare(self, problems: list[Problem], warnings: list[str]) -> None:
        """Encode what the user has named in ``values=``; add what stands in the way."""
        for name in self._wanted:
            if name not in self.namespace:
                problems.append(
                    Problem(
                        f"values={name!r}",
                        "there is no such name in the notebook.",
                        "Run a cell above the call that sets it.",
                    )
                )
                continue
            if name in self.runs[-1].touched:
                warnings.append(
                    f"values={name!r}: the cell that makes the call sets or changes `{name}` itself, so its code is "
                    "sent and not the value."
                )
                continue
            try:
                self.travels[name] = self._encode(name)
            except CannotSendError as error:
                if error.kind == "notebook":
                    warnings.append(
                        f"values={name!r}: `{name}` {error}; its cell runs again instead, so that the classes are the "
                        "same."
                    )
                else:
                    what = f"Cannot send `{name}` ({error}), declared in values=."
                    problems.append(Problem("", what, error.remedy))
                continue
            self.declared.add(name)

    def travel(self, name: str) -> Travel:
        """Say whether a value can travel, and encode it if it can."""
        if name not in self.travels:
            try:
                self.travels[name] = self._encode(name)
            except CannotSendError as error:
                self.errors[name] = error
                self.travels[name] = Travel(refused=str(error))
        return self.travels[name]

    def drawn(self, run: Run) -> frozenset[str]:
        """Return the names that a run which asked for random bytes may have made of them.

        No code, nor an empty container; none of ours, and no place of this machine: the worker makes its own.
        """
        settled = settings_of(run.source, (), ()).names
        names = [name for name in (run.bound | run.changed) - settled if self._is_data_or_object(name)]
        values = {name: self.namespace.get(name) for name in names}
        return frozenset(
            name
            for name, value in values.items()
            if not is_library_of_ours(type(value).__module__) and not _is_place(value) and _holds_data(value, set())
        )

    def _encode(self, name: str) -> Travel:
        value, declared = self.namespace[name], name in self._wanted
        if issubclass(type(value), _BY_NAME) and any(name in run.changed | run.between for run in self.runs):
            of_cell = getattr(value, "__module__", None) == "__main__"
            raise CannotSendError(f"what it holds is not what its {'cell' if of_cell else 'file'} makes")
        if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            raise CannotSendError("defined by code that is in no cell", kind="notebook")
        shares = frozenset(other for other in self._sharing(name) if self._is_data_or_object(other))
        limit = NO_LIMIT if declared else ROOM
        try:
            packed = pack([name], self.namespace, checked=declared, limit=limit, is_local=is_local)
        except CannotSendError as error:
            if error.kind in ("secret", "large") or not has_state(value):
                raise
            packed = pack([name], self.namespace, states=[name], checked=declared, limit=limit, is_local=is_local)
            self.states.add(name)
        self.encoded[name] = packed
        return Travel(
            len(packed.content),
            weights=name in self.states,
            code=packed.code,
            shares=shares,
            is_data=size_of(value) is not None,
            holds_model=packed.holds_model,
            wrapped_in=self._wrapped_in(value) if packed.holds_model else frozenset(),
        )

    def _wrapped_in(self, value: Any) -> frozenset[int]:
        numbers = Snapshot({"": ({"value": value}, ROOTS)}).numbers if self._wrapped else {}
        return frozenset(index for part, index in self._wrapped if id(part) in numbers)

    def _is_data_or_object(self, name: str) -> bool:
        return not issubclass(type(self.namespace.get(name, ModuleType)), type | FunctionType | ModuleType)

    def captured(self, plan: Plan, included: Sequence[int]) -> list[CapturedValue]:
        """Return the values of a plan, each with the cell of the program before which it is bound."""
        values = []
        self._put_together(plan)
        for value in plan.values:
            encoded = self.encoded.get(value.name)
            if encoded is None:
                continue
            place = included.index(value.before)
            how = "declared" if value.name in self._wanted else "sent by value"
            cell = self.executions[value.maker].cell if value.maker is not None else ""
            note = f"{how}: {encoded.description}"
            values.append(CapturedValue(value.name, encoded.content, place, note, cell, in_place=value.in_place))
        return values

    def _put_together(self, plan: Plan) -> None:
        """Have the values that are bound at one time, and share objects, come out of one pickle."""
        groups: list[tuple[int, set[str]]] = []
        for value in plan.values:
            shares = {value.name, *self.travel(value.name).shares}
            met = [group for group in groups if group[0] == value.before and not shares.isdisjoint(group[1])]
            groups = [group for group in groups if group not in met]
            groups.append((value.before, {value.name}.union(*(names for _, names in met))))
        for _, names in groups:
            if len(names) > 1:
                packed = pack(names, self.namespace, states=self.states & names, checked=True, is_local=is_local)
                self.encoded |= dict.fromkeys(names, packed)

    def unused(self, plan: Plan) -> Iterator[str]:
        """Yield a sentence for each value that the user has named in vain."""
        sent = {value.name for value in plan.values}
        for name in self._wanted:
            if name in self.declared and name not in sent:
                yield f"values={name!r}: the call does not need `{name}`, so it is not sent."


def _is_place(value: Any) -> bool:
    """Whether a value is an absolute path."""
    base = next((base for base in (str, PurePath) if issubclass(type(value), base)), None)
    return base is not None and len(text := base.__str__(value)) < _LONGEST_PATH and isabs(text)


def _holds_data(value: Any, seen: set[int]) -> bool:
    """Whether a value holds anything besides code and containers: ``defaultdict(lambda: 5)`` does not."""
    if id(value) in seen:
        return False
    seen.add(id(value))
    cls = type(value)
    if cls is FunctionType:
        parts = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *(value.__closure__ or ())]
    elif issubclass(cls, set | frozenset):
        parts = [*(set if issubclass(cls, set) else frozenset).__iter__(value)]
    elif issubclass(cls, (Mapping, list, tuple, deque, *_OF_PARTS)):
        parts = [*kind_of(value).read_state(value)[0]]
    else:
        return not issubclass(cls, _BY_NAME)
    return any(_holds_data(part, seen) for part in parts)
