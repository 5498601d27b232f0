"""Who the program's training calls are handed to where nothing is trained: it ends at the recorded call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal

from det_harness.program.calls import CallMatcher
from det_harness.program.made_up import MadeUpValues
from det_harness.program.null_handle import NullHandle
from det_harness.program.runner import ProgramStop
from det_native.schema.environment import TrialEnvironment


class StoppingHost(ABC):
    """Does something with what the recorded call is given, and stops the program; a ``runtime.ProgramHost``.

    Parameters
    ----------
    environment : TrialEnvironment
    calls : CallMatcher
        Tells the recorded call from others.
    role : str
        What the program's ``init()`` is told of this process.
    """

    def __init__(self, environment: TrialEnvironment, calls: CallMatcher, role: Literal["worker", "load"]) -> None:
        self.environment = environment
        self.role = role
        self.made_up = MadeUpValues(calls.source)
        self._calls = calls

    @abstractmethod
    def reached(self, payload: Any) -> None:
        """Take what the recorded call is given."""

    def take_call(self, kind: str, payload: Any) -> Any:
        """Take the recorded call, and stop the program there; any other call gives a null handle."""
        if not self._calls.is_recorded(kind):
            return NullHandle(self._calls.last_place, self.made_up)
        self._calls.taken = True
        self.reached(payload)
        raise ProgramStop

    def take_loop(self, kind: str, payload: Any) -> Callable[[], Iterator[Any]]:
        """Take the recorded loop, and stop the program there; any other loop has no batches."""
        result, cell = self.take_call(kind, payload), self._calls.cell
        assert isinstance(result, NullHandle)

        def begin() -> Iterator[Any]:
            if self._calls.cell != cell:
                self.take_call(kind, payload)
            return iter(())

        return begin

    def owns_init(self) -> bool:
        """Whether the ``init()`` being called is the one that the recorded call belongs to."""
        return self._calls.is_recorded_init()
