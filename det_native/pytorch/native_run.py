"""What a run does with the context of ``det.experimental.pytorch.init()``: what was trained, and what was reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from det_native.errors import TrialDefinitionError
from det_native.loops.context import LoopContext
from det_native.pytorch.context import PyTorchTrialContext
from det_native.pytorch.gradients import Gradients
from det_native.pytorch.wrapped_loader import Loading, WrappedLoader
from det_native.schema.environment import TrialEnvironment
from det_native.trial import Role

if TYPE_CHECKING:
    pass


class PyTorchRunContext(LoopContext, PyTorchTrialContext):
    """What the user's functions or loop ask while they train, and what those who run them tell the context.

    Parameters
    ----------
    environment : TrialEnvironment
        The facts of the trial.
    role : {"local", "cluster", "worker", "load"}
        Who runs the program: a user who trains here, a user who submits, a worker, or a checkpoint being loaded.

    Attributes
    ----------
    state : dict
        Variables of the user's own loop: what is in it when a checkpoint is made is in it again when the trial is
        continued from there. Anything picklable.
    loaders : list of WrappedLoader
        The wrapped loaders, in the order in which they were wrapped.
    loading : Loading
        What they have in common.
    """

    _init = "det.experimental.pytorch.init()"
    _where_to_report = (
        "the body of `for epoch in context.epochs(...)`, or of `for batch in context.train(...)`; the train_batch "
        "function of context.fit() returns its metrics"
    )

    def __init__(self, environment: TrialEnvironment, role: Role = "local") -> None:
        super().__init__(environment, role, owner="The program")
        self.state: dict[Any, Any] = {}
        self.loaders: list[WrappedLoader] = []
        self.loading = Loading(self.device)
        self._reported: dict[str, Any] | None = None
        self._trained = False
        self._before_training: Callable[[], None] | None = None

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Compute the gradients of `loss`; the arguments are those of ``torch.Tensor.backward``."""
        self.note_training()
        super().backward(loss, gradient, retain_graph, create_graph)

    def step_optimizer(self, optimizer: torch.optim.Optimizer, *arguments: Any, **named: Any) -> None:
        """Step `optimizer`, then zero its gradients; see ``PyTorchTrialContext.step_optimizer``."""
        self.note_training()
        super().step_optimizer(optimizer, *arguments, **named)

    @property
    def batch_idx(self) -> int:
        """Number of the present batch, from 0 since the start of training.

        Raises
        ------
        TrialDefinitionError
            Before training.
        """
        return self._place("batch_idx")[0]

    @property
    def epoch_idx(self) -> int:
        """Number of the present epoch, from 0 since the start of training.

        Raises
        ------
        TrialDefinitionError
            Before training.
        """
        batch, length = self._place("epoch_idx")
        return batch // length

    # For controllers and those who run them.

    def join_run(self, environment: TrialEnvironment, gradients: Gradients, trainer: str, owner: str) -> None:
        """Take part in a run: `trainer` is what trains on a batch, `owner` the call, for messages."""
        self.env = environment
        self._owner = owner
        self._steps.join(self.optimizers, gradients, trainer)

    def begin_loop(self, add_reported: Callable[[Mapping[str, Any]], None] | None = None) -> None:
        """Let ``report`` take metrics: for `add_reported`, or until `take_reported` is asked for them."""
        self._reported = {}
        super().begin_loop(add_reported or self._keep_reported)

    def _keep_reported(self, metrics: Mapping[str, Any]) -> None:
        assert self._reported is not None
        self._reported.update(metrics)

    @contextmanager
    def steps_watched(self) -> Iterator[None]:
        """Note also, in the block, which batches of a loop were stepped by ``optimizer.step()`` itself."""
        watched = self.optimizers if self._reported is not None else []
        hooks = [optimizer.register_step_pre_hook(self._note_step) for optimizer in watched]
        try:
            with super().steps_watched():
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def begin_batch(self, before_training: Callable[[], None] | None) -> None:
        """Note that the loop is given another batch; `before_training` is called when its body begins to train."""
        self._trained, self._before_training = False, before_training

    @property
    def batch_used(self) -> bool:
        """Whether the loop's body has trained on its batch, or has reported something of it."""
        return self._trained or bool(self._reported)

    def take_reported(self) -> dict[str, Any]:
        """Return what was reported since the last time."""
        reported, self._reported = self._reported or {}, {}
        return reported

    def end_loop(self) -> None:
        """Let ``report`` refuse metrics."""
        super().end_loop()
        self._reported = self._before_training = None

    def note_training(self) -> None:
        """Note that the loop's body trains on its batch, by this context or by torch alone."""
        before, self._before_training = self._before_training, None
        if before is not None:
            before()  # may raise: then the batch is not trained on
        self._trained = True

    def _note_step(self, *arguments: Any) -> None:
        self.note_training()

    def _place(self, method: str) -> tuple[int, int]:
        if self._batch_index is None or self._epoch_length is None:
            raise TrialDefinitionError(
                f"context.{method} has a meaning in train_batch() of context.fit() and in the loop over "
                "context.train() only, not before training."
            )
        return self._batch_index, self._epoch_length
