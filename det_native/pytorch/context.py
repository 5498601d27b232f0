"""What a PyTorchTrial asks of its surroundings: wraps models and optimizers, runs backward and optimizer steps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from det_native.errors import ArgumentError, TrialDefinitionError, UnsupportedFeatureError
from det_native.pytorch.as_wrapped import AsWrapped
from det_native.pytorch.experimental import PyTorchExperimentalContext
from det_native.pytorch.gradients import Gradients, LocalGradients
from det_native.pytorch.nesting import to_device
from det_native.pytorch.stepping import ClipGradients, OptimizerSteps
from det_native.pytorch.wrapping import check_in_time, check_model, check_optimizer, check_scaler, checked_scheduler
from det_native.schema.environment import TrialEnvironment
from det_native.trial import TrialContext

if TYPE_CHECKING:
    from det_native.pytorch.amp import MixedPrecision
    from det_native.pytorch.lr_scheduler import LRScheduler
    from det_native.pytorch.metric_reducer import MetricReducer

logger = logging.getLogger("det_native")


class PyTorchTrialContext(TrialContext):
    """The context that a :class:`PyTorchTrial` is made with.

    Attributes
    ----------
    models : list of torch.nn.Module
        The wrapped models, in the order in which they were wrapped.
    optimizers : list of torch.optim.Optimizer
        The wrapped optimizers, likewise.
    lr_schedulers : list of LRScheduler
        The wrapped schedulers with their step modes.
    scalers : list of torch.amp.GradScaler
        The wrapped scalers, and those of ``configure_apex_amp``.
    device : torch.device
        Where models and batches are.
    as_wrapped : AsWrapped
        What models and optimizers were like when they were wrapped.
    experimental : PyTorchExperimentalContext
        Has ``wrap_reducer``.
    computes_gradients : bool
        Whether ``backward()`` was called.
    """

    _public: ClassVar[tuple[str, ...]] = (
        "backward",
        "configure_apex_amp",
        "current_train_batch",
        "current_train_epoch",
        "device",
        "experimental",
        "get_optimizer",
        "is_epoch_end",
        "is_epoch_start",
        "lr_schedulers",
        "models",
        "optimizers",
        "step_optimizer",
        "to_device",
        "wrap_lr_scheduler",
        "wrap_metric",
        "wrap_model",
        "wrap_optimizer",
        "wrap_reducer",
        "wrap_scaler",
    )

    def __init__(
        self, environment: TrialEnvironment, *, gradients: Gradients | None = None, owner: str = "The trial"
    ) -> None:
        super().__init__(environment)
        self.experimental = PyTorchExperimentalContext(owner)
        self.scalers: list[Any] = []
        self.models: list[torch.nn.Module] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        self.lr_schedulers: list[LRScheduler] = []
        self.as_wrapped = AsWrapped()
        self._wrapped_at: dict[int, float] = {}  # when which objects were, by identity, for capture
        on_gpu = environment.managed and torch.cuda.is_available()
        # A process sees all GPUs of its machine, or its own only.
        gpu = environment.ranks.local_rank % torch.cuda.device_count() if on_gpu else 0
        self.device = torch.device("cuda", gpu) if on_gpu else torch.device("cpu")
        optimizations = environment.config.get("optimizations") or {}
        self._owner = owner
        self._steps = OptimizerSteps(
            int(optimizations.get("aggregation_frequency", 1)),
            average=bool(optimizations.get("average_aggregated_gradients", True)),
            gradients=gradients or LocalGradients(),
            owner=owner,
        )
        self._amp: MixedPrecision | None = None
        self._amp_optimizers: list[torch.optim.Optimizer] | None = None
        self._batch_index: int | None = None
        self._epoch_length: int | None = None
        self._trains = False
        self.computes_gradients = False

    def wrap_model(self, model: torch.nn.Module) -> torch.nn.Module:
        """Make the trial train and checkpoint `model`; returns it, moved to the trial's device.

        Raises
        ------
        ArgumentError
            If `model` is not a module, or was wrapped before.
        """
        check_model(self._wrapping("wrap_model"), model, self.models)
        self._steps.prepare(model)
        self._move(model)
        self.models.append(model)
        self.as_wrapped.add_model(model)
        self._wrapped_at[id(model)] = time.time()
        return model

    def _move(self, model: torch.nn.Module) -> None:
        """Move a model to where it trains."""
        model.to(self.device)

    def wrap_optimizer(
        self, optimizer: torch.optim.Optimizer, backward_passes_per_step: int = 1
    ) -> torch.optim.Optimizer:
        """Make the trial checkpoint `optimizer`, and let ``step_optimizer`` step it; returns it.

        Parameters
        ----------
        optimizer : torch.optim.Optimizer
            An optimizer over parameters of wrapped models.
        backward_passes_per_step : int
            Calls of ``backward`` in one ``train_batch`` that add to the gradients of one step.

        Raises
        ------
        ArgumentError
            If `optimizer` is not an optimizer or was wrapped before, or the passes are under 1.
        """
        check_optimizer(self._wrapping("wrap_optimizer"), optimizer, self.optimizers, backward_passes_per_step)
        self.optimizers.append(optimizer)
        self.as_wrapped.add_optimizer(optimizer)
        self._wrapped_at[id(optimizer)] = time.time()
        self._steps.add(optimizer, backward_passes_per_step)
        return optimizer

    def wrap_lr_scheduler(self, lr_scheduler: Any, step_mode: LRScheduler.StepMode | None = None) -> Any:
        """Make the trial step and checkpoint `lr_scheduler`; returns the torch scheduler.

        Parameters
        ----------
        lr_scheduler : torch.optim.lr_scheduler.LRScheduler or LRScheduler
            A scheduler of a wrapped optimizer, or one of ours around it.
        step_mode : LRScheduler.StepMode
            When it steps; may be left out for one of ours, which says it.

        Raises
        ------
        ArgumentError
            If its optimizer is not wrapped, or `step_mode` does not fit.
        """
        owner = self._wrapping("wrap_lr_scheduler")
        wrapped = checked_scheduler(owner, lr_scheduler, step_mode, self.optimizers, self._amp_optimizers)
        self.lr_schedulers.append(wrapped)
        return wrapped.scheduler

    def get_optimizer(self, index: int = 0) -> torch.optim.Optimizer:
        """Return a wrapped optimizer by its place in the order of wrapping.

        Raises
        ------
        ArgumentError
            If there are not that many.
        """
        if not -len(self.optimizers) <= index < len(self.optimizers):
            known = len(self.optimizers)
            raise ArgumentError(
                f"get_optimizer({index}) asks for an optimizer that {self.owner} has not wrapped: it has {known} so "
                "far, counted from 0. Call it after wrap_optimizer()."
            )
        return self.optimizers[index]

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Compute the gradients of `loss`; the arguments are those of ``torch.Tensor.backward``.

        Raises
        ------
        ArgumentError
            If `loss` is no tensor.
        """
        self.computes_gradients = True
        if not isinstance(loss, torch.Tensor):
            raise ArgumentError(
                f"context.backward() takes the loss as a tensor, not {type(loss).__name__} ({loss!r:.60}): pass what "
                "the loss function returned, without .item() or float()."
            )
        if self._amp is not None:
            self._amp.backward(
                loss,
                lambda scaled: scaled.backward(  # type: ignore[no-untyped-call]
                    gradient, retain_graph or create_graph, create_graph
                ),
            )
            return
        loss.backward(gradient, retain_graph or create_graph, create_graph)  # type: ignore[no-untyped-call]

    def step_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: ClipGradients | None = None,
        auto_zero_grads: bool = True,
        scaler: Any = None,
        *,
        backward_passes_per_step: int | None = None,
    ) -> None:
        """Step `optimizer`, then zero its gradients; once per optimizer and batch.

        With ``optimizations.aggregation_frequency`` = k > 1 the gradients of k batches are gathered (and averaged,
        unless ``average_aggregated_gradients`` is off), and the step happens at every k-th batch.

        Parameters
        ----------
        optimizer : torch.optim.Optimizer
            A wrapped optimizer.
        clip_grads : callable, optional
            Called with the list of the optimizer's parameters just before the step; gradients are averaged, and a
            scaler's scale is taken out, by then.
        auto_zero_grads : bool
            Zero the gradients after the step; must be True when gradients are aggregated.
        scaler : torch.amp.GradScaler, optional
            What ``wrap_scaler`` returned, if it scaled the loss. Your code calls its ``update()``.
        backward_passes_per_step : int, optional
            Accepted for older code; must be what ``wrap_optimizer`` was told, if it was told a number.

        Raises
        ------
        ArgumentError
            If the optimizer is not wrapped or arguments contradict each other.
        TrialDefinitionError
            If no gradient was computed before the first step.
        """
        plainly = auto_zero_grads and clip_grads is None and scaler is None and backward_passes_per_step is None
        if plainly and id(optimizer) in self._steps.simple:  # nearly every batch comes here, and should cost nothing
            optimizer.step()
            optimizer.zero_grad()
        else:
            self._steps.step(optimizer, clip_grads, auto_zero_grads, scaler, backward_passes_per_step)

    def to_device(self, data: Any) -> Any:
        """Move the arrays and tensors of `data`, in any nesting, to the trial's device."""
        return to_device(data, self.device)

    def is_epoch_start(self) -> bool:
        """Return whether the current batch is the first of its epoch.

        Raises
        ------
        TrialDefinitionError
            Before training.
        """
        batch, length = self._place("is_epoch_start")
        return batch % length == 0

    def is_epoch_end(self) -> bool:
        """Return whether the current batch is the last of its epoch.

        Raises
        ------
        TrialDefinitionError
            Before training.
        """
        batch, length = self._place("is_epoch_end")
        return batch % length == length - 1

    def current_train_batch(self) -> int:
        """Return how many batches were completed before the one that is being trained, or was trained last.

        Raises
        ------
        TrialDefinitionError
            Before training.
        """
        return self._place("current_train_batch")[0]

    def current_train_epoch(self) -> int:
        """Return how many epochs were completed before the one of that batch.

        Raises
        ------
        TrialDefinitionError
            Before training.
        """
        batch, length = self._place("current_train_epoch")
        return batch // length

    def wrap_scaler(self, scaler: Any) -> Any:
        """Make the trial checkpoint a ``torch.amp.GradScaler``; returns it.

        Give it to ``step_optimizer(optimizer, scaler=scaler)`` instead of calling ``scaler.step(optimizer)``.

        Raises
        ------
        ArgumentError
            If it is no scaler, was wrapped before, or ``configure_apex_amp`` was called.
        """
        check_scaler(self._wrapping("wrap_scaler"), scaler, self.scalers, scaled=self._amp is not None)
        self.scalers.append(scaler)
        return scaler

    def configure_apex_amp(
        self,
        models: Any,
        optimizers: Any,
        enabled: bool | None = True,
        opt_level: str | None = "O1",
        cast_model_type: torch.dtype | None = None,
        patch_torch_functions: bool | None = None,
        keep_batchnorm_fp32: bool | str | None = None,
        master_weights: bool | None = None,
        loss_scale: float | str | None = None,
        cast_model_outputs: torch.dtype | None = None,
        num_losses: int | None = 1,
        verbosity: int | None = 1,
        min_loss_scale: float | None = None,
        max_loss_scale: float | None = 2.0**24,
    ) -> tuple[Any, Any]:
        """Train with mixed precision, by ``torch.amp``; the arguments are those of ``apex.amp.initialize``.

        Parameters
        ----------
        models : module or list of modules
            Wrapped models.
        optimizers : optimizer or list of optimizers
            Wrapped optimizers.
        enabled : bool
            False leaves everything as it is.
        opt_level : {"O0", "O1", "O2", "O3"}
            O0: float32. O1: autocast in ``train_batch`` and the evaluation. O2: autocast in the models' forwards only,
            whose outputs are float32. O3: the weights themselves are cast. ``docs/pytorch.md`` has the whole mapping.
        cast_model_type : torch.dtype, optional
            What is cast to; float16 on a GPU and bfloat16 on a CPU by default.
        patch_torch_functions : bool, optional
            Autocast in ``train_batch`` and the evaluation, whatever the level.
        keep_batchnorm_fp32 : bool or "True" or "False", optional
            For O3: batch norms keep float32.
        master_weights : bool, optional
            Only checked: O0 to O2 keep float32 weights, O3 does not.
        loss_scale : float or "dynamic", optional
            By default dynamic for float16 with O1 and O2, and 1.0 otherwise.
        cast_model_outputs : torch.dtype, optional
            What the models' outputs are cast to.
        num_losses : int
            More than 1: the n-th ``backward`` of a batch has the n-th loss scale.
        verbosity : int
            0 leaves out the line in the log.
        min_loss_scale, max_loss_scale : float, optional
            Bounds of a dynamic scale.

        Returns
        -------
        models, optimizers
            The very same objects, as lists where lists were given.

        Raises
        ------
        ArgumentError
            If something is not wrapped, an argument has no meaning, this was called before, or the training has begun.
        """
        from det_native.pytorch.amp import MixedPrecision, check_wrapped, listed
        from det_native.pytorch.amp_levels import resolve

        self._wrapping("configure_apex_amp")
        check_wrapped("models", models, self.models, "wrap_model()")
        check_wrapped("optimizers", optimizers, self.optimizers, "wrap_optimizer()")
        if self._amp_optimizers is not None or self.scalers:
            before = "wrap_scaler()" if self._amp_optimizers is None else "configure_apex_amp()"
            raise ArgumentError(f"configure_apex_amp() was called after {before}: call it once, with all optimizers.")
        settings = resolve(
            self.device,
            opt_level=opt_level,
            cast_model_type=cast_model_type,
            patch_torch_functions=patch_torch_functions,
            keep_batchnorm_fp32=keep_batchnorm_fp32,
            master_weights=master_weights,
            loss_scale=loss_scale,
            cast_model_outputs=cast_model_outputs,
            num_losses=num_losses,
            min_loss_scale=min_loss_scale,
            max_loss_scale=max_loss_scale,
        )
        if self._steps.sharded and opt_level not in ("O0", "O1", None):
            raise UnsupportedFeatureError(
                f'configure_apex_amp(opt_level="{opt_level}") casts whole models, and distributed.strategy: fsdp has '
                'parts of them only: use opt_level="O1".'
            )
        if settings.num_losses > 1 and self.env.ranks.size > 1:
            raise UnsupportedFeatureError(
                f"configure_apex_amp(num_losses={settings.num_losses}) works on one slot only; with several, leave "
                "num_losses at 1 for one scale for all losses."
            )
        if enabled and self.env.managed:
            self._amp = MixedPrecision(settings, self.device, listed(models), lambda: self.optimizers)
            self._amp_optimizers = listed(optimizers)
            self._steps.amp = self._amp
            self.scalers.extend(self._amp.scalers)
            if verbosity:
                logger.info("Mixed precision %s.", settings)
        return models, optimizers

    def wrap_reducer(
        self,
        reducer: Callable[[list[Any]], Any] | MetricReducer,
        name: str | None = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> Any:
        """Have a metric computed from all that is given to a reducer; see ``context.experimental.wrap_reducer``."""
        return self.experimental.wrap_reducer(reducer, name, for_training, for_validation)

    def wrap_metric(self, *arguments: Any, **keywords: Any) -> Any:
        """Refused: the name stands in Determined's documents by mistake.

        Raises
        ------
        UnsupportedFeatureError
        """
        raise UnsupportedFeatureError(
            "There is no context.wrap_metric(): call context.wrap_reducer(reducer, name=...)."
        )

    def around_training(self, train_batch: Callable[..., Any]) -> Callable[..., Any]:
        """Return a ``train_batch`` that runs under what ``configure_apex_amp`` set up (for controllers)."""
        return train_batch if self._amp is None else self._amp.around_training(train_batch)

    def around_evaluation(self, evaluate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return an evaluation method that runs under what ``configure_apex_amp`` set up (for controllers)."""
        return evaluate if self._amp is None else self._amp.around_evaluation(evaluate)

    def call_before_steps(self, hooks: Iterable[Callable[[Iterator[torch.nn.Parameter]], Any]]) -> None:
        """Have `hooks` called with the parameters of an optimizer before each of its steps (for controllers)."""
        self._steps.hooks = tuple(hooks)
        self._steps.simple.clear()

    def asked_to_step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Return whether ``step_optimizer`` was called for an optimizer (for controllers)."""
        return self._steps.asked(optimizer)

    def steps_watched(self) -> AbstractContextManager[None]:
        """Refuse, in the block, steps of optimizers by other means, where they would be wrong (for controllers)."""
        return self._steps.watched(self.optimizers)

    @property
    def owner(self) -> str:
        """Name of the user's Trial class, for messages."""
        return self._owner

    def enter_batch(self, batch_index: int) -> None:
        """Say which batch, counted from 0, is being trained (for controllers)."""
        self._batch_index = batch_index
        if self._steps.aggregates:
            self._steps.enter_batch(batch_index)

    def leave_batches(self) -> None:
        """Say that no batch of the training to come has begun (for controllers)."""
        self._batch_index = None

    @property
    def present_batch(self) -> int | None:
        """The batch, counted from 0, that is being trained, or was trained last; None before (for controllers)."""
        return self._batch_index

    def note_training(self) -> None:
        """Note that the user's code trains on its batch (for controllers)."""

    def set_epoch_length(self, batches: int) -> None:
        """Say how many batches an epoch has, when the training is about to begin (for controllers)."""
        self._epoch_length, self._trains = batches, True

    def end_training(self) -> None:
        """Say that the training has ended: more may be wrapped for another one (for controllers)."""
        self._trains = False

    def _wrapping(self, method: str) -> str:
        check_in_time(self.owner, method, begun=self._trains)
        return self.owner

    def _place(self, method: str) -> tuple[int, int]:
        if self._batch_index is None or self._epoch_length is None:
            raise TrialDefinitionError(
                f"{self._owner} called context.{method}(), which has a meaning in train_batch() only, not before "
                "training."
            )
        return self._batch_index, self._epoch_length
