"""Who the program's training calls are handed to where nothing is trained: it ends at the recorded call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal, NoReturn

from det_harness.program.calls import CallMatcher
from det_harness.program.earlier import Files, OtherCalls
from det_harness.program.made_up import MadeUpValues
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
    read_blob : callable
        Gives the raw content of a blob by its hash.
    files : callable
        Gives a folder with the files of the checkpoint of an earlier training, for a block.
    """

    def __init__(
        self,
        environment: TrialEnvironment,
        calls: CallMatcher,
        role: Literal["worker", "load"],
        *,
        read_blob: Callable[[str], bytes],
        files: Files,
    ) -> None:
        self.environment = environment
        self.role = role
        self._calls = calls
        self._others = OtherCalls(calls, MadeUpValues(calls.source), read_blob, files)

    @property
    def takes_any_call(self) -> bool:
        """Whether the program's first training call is the trial's, whichever it is."""
        return self._calls.any_call

    @abstractmethod
    def reached(self, payload: Any) -> None:
        """Take what the recorded call is given."""

    def take_call(self, kind: str, payload: Any) -> Any:
        """Take the recorded call, and stop the program there; any other call gives what it has trained before."""
        if not self._calls.is_recorded(kind):
            return self._others.result(payload, self._calls.earlier)
        self._stop_at(payload)

    def _stop_at(self, payload: Any) -> NoReturn:
        self._calls.taken = True
        self.reached(payload)
        raise ProgramStop

    def take_loop(self, kind: str, payload: Any) -> Callable[[], Iterator[Any]]:
        """Take the recorded loop, and stop the program there; any other loop has no batches."""
        if self._calls.is_recorded(kind):
            self._stop_at(payload)
        earlier, cell = self._calls.earlier, self._calls.cell

        def begin() -> Iterator[Any]:
            if self._calls.cell != cell:
                self.take_call(kind, payload)
            else:
                self._others.result(payload, earlier)
            return iter(())

        return begin

    def stand_in(self, place: str) -> Any:
        """Return a null handle; `place` says which training it is of."""
        return self._others.stand_in(place)

    def owns_init(self) -> bool:
        """Whether the ``init()`` being called is the one that the recorded call belongs to."""
        return self._calls.is_recorded_init()

    def set_streams_of_init(self) -> None:
        """Have a trial with the notebook's seed draw from here on what the notebook drew after its ``init()``."""
        self._calls.at_init()
