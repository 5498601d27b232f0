"""Whether a training is to end, so that it can go on later."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from det_native.core.distributed import refuse_other_ranks
from det_native.core.modes import PreemptMode
from det_native.errors import ArgumentError
from det_native.public_names import PublicNames

if TYPE_CHECKING:
    from det_harness.core.run import CoreRun


class PreemptContext(PublicNames):
    """``context.preempt``.

    Examples
    --------
    >>> for step in range(first, steps):
    ...     train(step)
    ...     if context.preempt.should_preempt():
    ...         save(step)
    ...         break
    """

    _public: ClassVar[tuple[str, ...]] = ("acknowledge_preemption_signal", "close", "should_preempt", "start")

    def __init__(self, run: CoreRun, mode: PreemptMode = PreemptMode.WorkersAskChief) -> None:
        if not isinstance(mode, PreemptMode):
            raise ArgumentError(
                f"preempt_mode={mode!r}: give det.core.PreemptMode.WorkersAskChief, .ChiefOnly or .WorkersAskMaster."
            )
        self._run = run
        self._mode = mode

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """Return whether the training is to save a checkpoint and end: it was paused, stopped, or gives its slots up.

        Parameters
        ----------
        auto_ack : bool
            Whether asking is an answer, too: a training that ends after True was returned goes on later. With False
            :meth:`acknowledge_preemption_signal` says so.
        """
        run = self._run
        if run.distributed.size == 1:
            answer = run.stop_requested()
        elif self._mode is PreemptMode.WorkersAskChief:
            asked = run.distributed.rank == 0 and run.stop_requested()
            answer = bool(run.distributed.broadcast(asked))
        else:
            if self._mode is PreemptMode.ChiefOnly:
                refuse_other_ranks(run.distributed, "context.preempt.should_preempt() in the mode ChiefOnly")
            answer = run.stop_requested()
        if answer and auto_ack:
            run.acknowledged = True
        return answer

    def acknowledge_preemption_signal(self) -> None:
        """Say that the training ends since :meth:`should_preempt` was True."""
        self._run.acknowledged = True

    def start(self) -> Self:
        """Return itself: there is nothing to start."""
        return self

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
