"""What the ranks of a PyTorchTrial do together between batches, so that they stay equal and go the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from det_harness.ranks.communicator import Communicator
from det_native.pytorch import PyTorchTrialContext
from det_native.pytorch.gradients import Gradients


@dataclass(frozen=True)
class Met:
    """What any of the ranks is about to do with a batch of a user's own loop.

    Attributes
    ----------
    stops, due : bool
        As of ``RanksInStep.begin_batch``.
    left : bool
        The loop was left there.
    trained, passed : bool
        The batch is trained on there, or not.
    """

    stops: bool
    due: bool
    left: bool
    trained: bool
    passed: bool


class RanksInStep:
    """Keeps models, optimizers' settings and decisions of the ranks equal; on one rank it does nothing.

    Parameters
    ----------
    stop_requested : callable
        Whether the master or a signal asks for an early end.
    """

    def __init__(
        self,
        context: PyTorchTrialContext,
        communicator: Communicator,
        gradients: Gradients,
        stop_requested: Callable[[], bool],
    ) -> None:
        self.several = communicator.size > 1
        self._context = context
        self._communicator = communicator
        self._gradients = gradients
        self._stop_requested = stop_requested
        self._send_buffers: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Make the models equal before the first batch, and be ready to exchange gradients."""
        if self.several:
            from det_harness.frameworks.torch.gradients.replicas import Buffers, broadcast_models, check_alike
            from det_harness.frameworks.torch.trial_state import wrapper_of

            context = self._context
            check_alike(wrapper_of(context.owner), context.models, context.optimizers, self._communicator)
            broadcast_models(context.models, self._communicator)
            self._send_buffers = Buffers(context.models, self._communicator).send
        self._gradients.start()

    def begin_batch(self, *, due: bool) -> Callable[[], list[bool]]:
        """Make the buffers equal, and begin to ask all ranks.

        Asked while the batch is computed, the answer costs next to nothing; what comes up meanwhile is in the next one.

        Parameters
        ----------
        due : bool
            Whether this rank is to report after the batch.

        Returns
        -------
        callable
            Returns whether any rank is to stop, and whether any is to report.
        """
        self._send_buffers()
        self._gradients.next_batch()
        return self._communicator.all_reduce_any(self.stops, due)

    def meet(self, *, due: bool, left: bool, trained: bool) -> Met:
        """Make known how each rank goes on with the batch of a user's own loop, and wait for the others.

        Gradients are exchanged after this only: ranks that go different ways would wait for each other for ever.

        Parameters
        ----------
        due : bool
            Whether this rank is to report after the batch.
        left : bool
            Whether this rank's loop was left.
        trained : bool
            Whether this rank is about to train on the batch; False once it will not.
        """
        return Met(*self._communicator.all_reduce_any(self.stops, due, left, trained, not (left or trained))())

    def send_buffers(self) -> None:
        """Make the buffers equal."""
        self._send_buffers()

    def end_validation(self) -> None:
        """Make the settings of the optimizers (learning rates) those of the first rank.

        ``on_validation_end`` runs there only, and may have changed them.
        """
        if not self.several:
            return
        optimizers = self._context.optimizers
        own = [
            [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
            for optimizer in optimizers
        ]
        sent: list[list[dict[str, Any]]] = self._communicator.broadcast_object(own)
        for optimizer, groups in zip(optimizers, sent, strict=True):
            for group, settings in zip(optimizer.param_groups, groups, strict=True):
                group.update(settings)

    def agree(self, flag: bool) -> bool:
        """Return whether a flag is set on any rank."""
        return self._communicator.all_reduce_any(flag)()[0] if self.several else flag

    @property
    def stops(self) -> bool:
        """Whether this rank is asked for an early end, by the user's code or from outside."""
        return self._stop_requested() or self._context.get_stop_requested()
