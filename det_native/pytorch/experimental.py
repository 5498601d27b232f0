"""``context.experimental``: custom reducers of metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from det_native.errors import ArgumentError, UnsupportedFeatureError
from det_native.public_names import PublicNames
from det_native.pytorch.metric_reducer import FunctionReducer, MetricReducer


@dataclass(frozen=True)
class WrappedReducer:
    """A reducer, the name of its metric (None: it returns several by name), and what it is used for."""

    reducer: MetricReducer
    name: str | None
    for_training: bool
    for_validation: bool


class PyTorchExperimentalContext(PublicNames):
    """What ``context.experimental`` is.

    Parameters
    ----------
    owner : str
        Name of the user's class, for messages.

    Attributes
    ----------
    reducers : list of WrappedReducer
        In the order in which they were wrapped.
    """

    _public: ClassVar[tuple[str, ...]] = (
        "wrap_metric",
        "wrap_reducer",
    )

    def __init__(self, owner: str = "The trial") -> None:
        self._owner = owner
        self.reducers: list[WrappedReducer] = []

    def wrap_reducer(
        self,
        reducer: Callable[[list[Any]], Any] | MetricReducer,
        name: str | None = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> Any:
        """Have a metric computed from all that is given to a reducer, over all batches and slots.

        Parameters
        ----------
        reducer : callable or MetricReducer
            A function of the flat list of everything that was given to ``update()``, or a reducer of your own.
        name : str, optional
            Name of the metric; without one, the result must be a dictionary of metrics by name.
        for_training : bool
            Reduce at the end of each training workload: every ``scheduling_unit`` batches, before each validation, and
            at the end.
        for_validation : bool
            Reduce after each validation.

        Returns
        -------
        MetricReducer
            What was given, or for a function an object with ``update(value)``.

        Raises
        ------
        ArgumentError
            If `reducer` is neither, or was wrapped before, or the name is taken or no text.
        """
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"{self._owner}: wrap_reducer() takes a text or None as name, not {name!r}.")
        if not isinstance(reducer, MetricReducer):
            if not callable(reducer) or isinstance(reducer, type):
                what = f"the class {reducer.__name__}" if isinstance(reducer, type) else type(reducer).__name__
                raise ArgumentError(
                    f"{self._owner}: wrap_reducer() takes a function or an instance of det.pytorch.MetricReducer, not "
                    f"{what}."
                )
            reducer = FunctionReducer(reducer)
        for known in self.reducers:
            if known.reducer is reducer:
                raise ArgumentError(
                    f"{self._owner}: this {type(reducer).__name__} is wrapped already; call wrap_reducer() once."
                )
            both = (known.for_training and for_training) or (known.for_validation and for_validation)
            if both and name is not None and known.name == name:
                raise ArgumentError(
                    f"{self._owner}: wrap_reducer(name={name!r}) was called twice; give each metric its own name."
                )
        self.reducers.append(WrappedReducer(reducer, name, for_training, for_validation))
        return reducer

    def wrap_metric(self, *arguments: Any, **keywords: Any) -> Any:
        """Refused: the name stands in Determined's documents by mistake.

        Raises
        ------
        UnsupportedFeatureError
        """
        raise UnsupportedFeatureError(
            "There is no context.experimental.wrap_metric(): call wrap_reducer(reducer, name=...)."
        )
