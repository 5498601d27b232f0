"""What a run does with the context of an ``init()``: the experiment, and what the user's loop reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.heap.call import CallSnapshot
from det_native.loops.batches import LoopBatches
from det_native.loops.call import TrainingCall
from det_native.runtime import MadeLater
from det_native.schema.environment import TrialEnvironment
from det_native.trial import Role, TrialContext

T = TypeVar("T")


class LoopContext(TrialContext):
    """What every context has whose loop is the user's.

    Parameters
    ----------
    environment : TrialEnvironment
        The facts of the trial.
    role : {"local", "cluster", "worker", "load"}
        Who runs the program: a user who trains here, a user who submits, a worker, or a checkpoint being loaded.

    Attributes
    ----------
    experiment : Experiment or None
        The handle of the experiment, once there is one.
    snapshot : CallSnapshot or None
        What its last loop or call could reach when it began.
    metric_said : bool
        Whether the user has said by which metric trials are compared; else the first reported one is it.
    """

    experiment = MadeLater()
    _init: ClassVar[str]
    _where_to_report = "the body of `for epoch in context.epochs(...)`"

    def __init__(self, environment: TrialEnvironment, role: Role = "local", **named: Any) -> None:
        super().__init__(environment, **named)
        self.role = role
        self.metric_said = environment.metric is not None
        self.experiment = None
        self.snapshot: CallSnapshot | None = None
        self._add_reported: Callable[[Mapping[str, Any]], None] | None = None
        self._on_train: Callable[[TrainingCall], Callable[[], Iterator[Any]]] | None = None
        self._length_of: Callable[[TrainingCall], int] = _unknown_length

    def report(self, metrics: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Report metrics: of the present batch in a loop over ``train``, of the present epoch in one over ``epochs``.

        A name that was reported of an epoch before is a further row of it, at the batch that the loop has come to.

        Parameters
        ----------
        metrics : mapping, optional
            Scalars by name: numbers, arrays or tensors of one, which are not read before a report is due.
        named
            Likewise: ``context.report(loss=loss)``.

        Raises
        ------
        TrialDefinitionError
            Outside such a loop.
        """
        add = self._add_reported
        if add is None:
            raise TrialDefinitionError(f"context.report() is for {self._where_to_report}.")
        if metrics is not None:
            if not isinstance(metrics, Mapping) or not all(isinstance(name, str) for name in metrics):
                raise ArgumentError(
                    f"context.report() takes metrics by name, not {metrics!r:.60}: context.report(loss=loss)."
                )
            named = {**metrics, **named}
        add(named)

    def _loop(self, call: TrainingCall, parts: Callable[[int], int] = int) -> LoopBatches:
        """Return what a loop goes over; `parts` makes their number of that of batches."""
        begin = self._handled(self._on_train)(call)
        return LoopBatches(call.name, begin, lambda: parts(self._length_of(call)))

    def _handled(self, handler: Callable[[Any], T] | None) -> Callable[[Any], T]:
        if handler is None:
            raise ArgumentError(
                f"This context was made by from_config(), outside any run: only one of {self._init} can train."
            )
        return handler

    # For controllers and those who run them.

    def begin_loop(self, add_reported: Callable[[Mapping[str, Any]], None]) -> None:
        """Let ``report`` take metrics, for `add_reported`."""
        self._add_reported = add_reported

    def end_loop(self) -> None:
        """Let ``report`` refuse metrics."""
        self._add_reported = None


def _unknown_length(call: TrainingCall) -> int:
    raise TypeError(f"The loop over {call.name}() has no len() here.")
