"""Runs a trial of a loop of the Core API."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

from det_harness.frameworks.base import harness_of
from det_harness.frameworks.core.training import CoreTraining
from det_harness.loops.controller import PassesController
from det_harness.trial.services import Services
from det_native.core.loop_call import CoreLoopCall, OperationsCall
from det_native.core.searcher import SearcherOperation
from det_native.core.train import invalid_hp


class CoreLoopController(PassesController):
    """See ``PassesController``; it gives operations, too."""

    _training: CoreTraining

    def __init__(self, call: CoreLoopCall, services: Services) -> None:
        super().__init__(call, CoreTraining(call, services))
        self._operations: Iterator[SearcherOperation] = iter(())
        self._operation: SearcherOperation | None = None

    def _join(self, frame: FrameType | None) -> None:
        if self._call.context.role == "worker":  # here nothing goes on from a checkpoint
            harness_of("core").begin_loop(self._call.context, frame)

    def _next(self) -> Any:
        if not isinstance(self._call, OperationsCall):
            return super()._next()
        self._operations = self._training.core.searcher.operations()
        self._operation = next(self._operations)
        return self._operation

    def _begin_pass(self) -> None:
        self._training.begin_pass()

    def _after_body(self) -> None:
        run = self._training.run
        run.rows.pass_all()
        if run.invalid:
            raise invalid_hp()
        if not self._left:
            next(self._operations, None)  # says if the operation was not reported as completed
        super()._after_body()

    def _is_used(self) -> bool:
        if self._operation is not None and self._training.run.acknowledged:
            return self._operation.completed
        return super()._is_used() or self._training.is_used

    def _goes_on_later(self) -> bool:
        completed = self._operation.completed if self._operation is not None else not self._left
        return self._training.run.acknowledged and not completed
