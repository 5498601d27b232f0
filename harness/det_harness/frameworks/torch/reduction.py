"""Custom reducers around a workload: reset before it, reduced on every slot and over the slots after it."""

from __future__ import annotations

import copy
import logging
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from det_harness.ranks.communicator import Communicator
from det_native.errors import ReducerError
from det_native.pytorch.experimental import WrappedReducer
from det_native.pytorch.metric_reducer import MetricReducer

logger = logging.getLogger("det_harness")

_DATA = (bool, int, float, complex, str, bytes, bytearray, np.ndarray, np.generic, torch.Tensor)


@dataclass(frozen=True)
class _Part:
    """What a reducer made of one slot's values; `given` says that there were any, `failed` what went wrong."""

    value: Any
    given: bool
    failed: str = ""


class Reduction:
    """The reducers of one kind of workload."""

    def __init__(
        self, reducers: Iterable[WrappedReducer], communicator: Communicator, workload: str = "training"
    ) -> None:
        self._reducers = list(reducers)
        self._workload = workload
        self._fresh: list[Any] = [None for _ in self._reducers]
        self._reported: set[int] = set()
        self._communicator = communicator
        # What slots that are gone made of their values, before the trial went on on fewer: by slot, then by reducer.
        self._parted: list[list[_Part]] = []

    def __bool__(self) -> bool:
        return bool(self._reducers)

    def reset(self) -> None:
        """Forget what was gathered before the workload."""
        self._parted = []
        for wrapped in self._reducers:
            _call(wrapped, "reset", wrapped.reducer.reset)
        self._fresh = [copy.deepcopy(_state_of(wrapped.reducer)) for wrapped in self._reducers]

    def reduce(self) -> dict[str, Any]:
        """Return the metrics of the workload that has ended.

        Raises
        ------
        ReducerError
            If a reducer fails, or what it returns does not fit its name.
        """
        if not self._reducers:
            return {}
        gathered = [
            slot for found in self._communicator.all_gather_object([self._of_slot(), *self._parted]) for slot in found
        ]
        metrics: dict[str, Any] = {}
        for wrapped, per_slot in zip(self._reducers, zip(*gathered, strict=True), strict=True):
            given = any(part.given for part in per_slot)
            try:
                found = _of_all(wrapped, per_slot)
            except ReducerError:
                if given:
                    raise
                self._tell_empty(wrapped)
                continue
            if not given and _is_no_number(found):
                self._tell_empty(wrapped)
                continue
            for name, value in _by_name(wrapped, found).items():
                if name in metrics:
                    raise ReducerError(f"Two reducers return the metric '{name}'; give each metric its own name.")
                metrics[name] = value
        return metrics

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Let the block give values to the reducers without effect."""
        states = copy.deepcopy(self.state())
        own = [vars(wrapped.reducer) for wrapped in self._reducers]
        updates = [attributes.get("update") for attributes in own]
        for attributes in own:
            attributes["update"] = _without_effect
        try:
            yield
        finally:
            for attributes, update in zip(own, updates, strict=True):
                del attributes["update"]
                if update is not None:
                    attributes["update"] = update
            self.restore(states)

    def state(self) -> Any:
        """Return what was gathered in a workload that is under way."""
        own = [_state_of(wrapped.reducer) for wrapped in self._reducers]
        return {"own": own, "parted": self._parted} if self._parted else own

    def take_over(self, state: Any) -> None:
        """Let what a slot that is gone had gathered count as that of a slot of its own.

        Parameters
        ----------
        state
            From :meth:`state`, on that slot.
        """
        if len(_own(state)) != len(self._reducers):
            return  # other reducers than the trial's, which `restore` has said
        own = copy.deepcopy(self.state())
        parted = self._parted
        self.reset()
        self.restore(state)
        parted = [*parted, *self._parted, self._of_slot()]
        self.restore(own)
        self._parted = parted

    def restore(self, state: Any) -> None:
        """Go on gathering where :meth:`state` was taken."""
        states = _own(state)
        self._parted = state["parted"] if isinstance(state, dict) else []
        if len(states) != len(self._reducers):
            logger.warning(
                "The checkpoint has the values of %d reducers, the trial wraps %d for training: they start again.",
                len(states),
                len(self._reducers),
            )
            return
        for wrapped, found in zip(self._reducers, states, strict=True):
            load: Callable[[Any], None] | None = getattr(wrapped.reducer, "load_state_dict", None)
            if load is not None:
                load(found)
            else:
                vars(wrapped.reducer).update(found)

    def _of_slot(self) -> list[_Part]:
        return [
            _part_of(wrapped, given=not _same(_state_of(wrapped.reducer), fresh))
            for wrapped, fresh in zip(self._reducers, self._fresh, strict=True)
        ]

    def _tell_empty(self, wrapped: WrappedReducer) -> None:
        if id(wrapped.reducer) in self._reported:
            return
        self._reported.add(id(wrapped.reducer))
        logger.info(
            "%s was given nothing in %s and has no metric there; wrap_reducer(..., for_%s=False) says that it may.",
            _named(wrapped), self._workload, self._workload,
        )  # fmt: skip


def _part_of(wrapped: WrappedReducer, *, given: bool) -> _Part:
    try:
        return _Part(_call(wrapped, "per_slot_reduce", wrapped.reducer.per_slot_reduce), given)
    except ReducerError as error:
        if given:
            raise
        return _Part(None, given, str(error))  # no error if no slot was given anything


def _of_all(wrapped: WrappedReducer, parts: Sequence[_Part]) -> Any:
    for part in parts:
        if part.failed:
            raise ReducerError(f"{part.failed} It was given nothing on one of the slots.")
    return _call(wrapped, "cross_slot_reduce", wrapped.reducer.cross_slot_reduce, [part.value for part in parts])


def _is_no_number(found: Any) -> bool:
    values = list(found.values()) if isinstance(found, dict) else [found]
    return any(value != value for value in map(_number, values))


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def _same(state: Any, fresh: Any) -> bool:
    """Whether nothing was given since `fresh`; a state that tells nothing may hide what was."""
    if not state:
        return False
    try:
        return pickle.dumps(state) == pickle.dumps(fresh)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False


def _own(state: Any) -> list[Any]:
    """Return the states of the reducers, of what `Reduction.state` returned."""
    return list(state["own"] if isinstance(state, dict) else state)


def _without_effect(*values: Any, **named: Any) -> None:
    """Stand for the ``update`` of a reducer."""


def _state_of(reducer: MetricReducer) -> Any:
    save: Callable[[], Any] | None = getattr(reducer, "state_dict", None)
    if save is not None and hasattr(reducer, "load_state_dict"):
        return save()
    return {name: value for name, value in vars(reducer).items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    """Whether a value is data, rather than an object (a model, a context) that the trial makes for itself."""
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(part) for key, part in value.items())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, _DATA)


def _call(wrapped: WrappedReducer, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise ReducerError(f"{_named(wrapped)} failed in a call to {method}(): {error}") from error


def _by_name(wrapped: WrappedReducer, found: Any) -> dict[str, Any]:
    if wrapped.name is not None:
        if isinstance(found, dict):
            raise ReducerError(
                f"{_named(wrapped)} was wrapped with name set but it returned a dict anyway: return one number, or "
                "leave the name out of wrap_reducer()."
            )
        return {wrapped.name: found}
    if not isinstance(found, dict):
        raise ReducerError(
            f"{_named(wrapped)} was wrapped with name=None but it did not return a dict: return metrics by name, or "
            "give wrap_reducer() a name."
        )
    return found


def _named(wrapped: WrappedReducer) -> str:
    function = getattr(wrapped.reducer, "function", None)
    what = getattr(function, "__name__", None) or type(wrapped.reducer).__name__
    name = "None" if wrapped.name is None else f'"{wrapped.name}"'
    return f"The reducer of type {what} for name={name}"
