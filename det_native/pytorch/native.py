"""The context of ``det.experimental.pytorch.init()``: the user keeps objects and functions, or even the loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch

from det_native.errors import TrialDefinitionError, UnsupportedFeatureError
from det_native.loops.batches import LoopBatches
from det_native.loops.call import TrainingCall
from det_native.pytorch.native_call import TorchCall
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.stepping import SHARDED
from det_native.schema.environment import TrialEnvironment
from det_native.schema.signatures import names_checked
from det_native.trial import Role


class PyTorchNativeContext(PyTorchRunContext):
    """Wraps the user's own objects, and trains them in the user's own loop over ``epochs`` or ``train``, or by ``fit``.

    Parameters
    ----------
    environment : TrialEnvironment
        The facts of the trial.
    on_fit : callable, optional
        Takes a checked :class:`TorchCall`; its result is what ``fit`` returns. Without it (a context made by
        ``from_config``) nothing can be trained.
    on_train : callable, optional
        Takes a checked call of ``train`` or ``epochs``; its result begins the training, and returns what
        the loop goes over.
    role : {"local", "cluster", "worker", "load"}
        Who runs the program: a user who trains here, a user who submits, a worker, or a checkpoint being loaded.
    length_of : callable, optional
        Takes such a call; returns the batches of its training.

    Attributes
    ----------
    experiment : Experiment or None
        The handle of the experiment, once there is one.
    state : dict
        Variables of the user's own loop: what is in it when a checkpoint is made is in it again when the trial is
        continued from there. Anything picklable.
    """

    _public: ClassVar[tuple[str, ...]] = (
        "batch_idx",
        "epoch_idx",
        "epochs",
        "experiment",
        "fit",
        "report",
        "state",
        "train",
        "wrap",
    )

    def __init__(
        self,
        environment: TrialEnvironment,
        on_fit: Callable[[TorchCall], Any] | None = None,
        on_train: Callable[[TrainingCall], Callable[[], Iterator[Any]]] | None = None,
        role: Role = "local",
        length_of: Callable[[TrainingCall], int] | None = None,
    ) -> None:
        if (environment.config.get("distributed") or {}).get("strategy") == "fsdp" and environment.slots > 1:
            raise UnsupportedFeatureError(SHARDED)
        super().__init__(environment, role)
        self._on_fit = on_fit
        self._on_train = on_train
        self._length_of = length_of or self._length_of
        self._told_of_steps = False
        if role == "cluster":
            self.device = self.loading.device = torch.device("cpu")  # nothing is trained in the kernel

    def wrap_model(self, model: torch.nn.Module) -> torch.nn.Module:
        """Move `model` to the trial's device, and make the trial checkpoint it; returns it.

        See ``PyTorchTrialContext.wrap_model``. Of one that trains on the cluster, the kernel's stays on its device.
        Gradients that a loop by hand has left are dropped: :meth:`step_optimizer` zeroes them behind a step only.
        """
        wrapped = super().wrap_model(model)
        for parameter in wrapped.parameters():
            parameter.grad = None
        return wrapped

    def _move(self, model: torch.nn.Module) -> None:
        """Leave a model that trains on the cluster where it is: there the cells below use it."""
        if self.role != "cluster":
            super()._move(model)

    def wrap_optimizer(
        self, optimizer: torch.optim.Optimizer, backward_passes_per_step: int = 1
    ) -> torch.optim.Optimizer:
        """Make the trial checkpoint `optimizer`, and let ``step_optimizer`` step it; returns it.

        See ``PyTorchTrialContext.wrap_optimizer``. In cluster mode the first step that it makes in the kernel warns.
        """
        from det_native.pytorch.stepping import watch_steps

        super().wrap_optimizer(optimizer, backward_passes_per_step)
        if self.role == "cluster":
            watch_steps(optimizer, self._tell_of_step)
        return optimizer

    def wrap(self, *objects: Any) -> Any:
        """Take the objects of a loop over :meth:`epochs`: what they are is trained, stepped, loaded and checkpointed.

        Parameters
        ----------
        objects
            Models, optimizers, schedulers of the learning rate, gradient scalers, and loaders: ``torch`` DataLoaders,
            or lists and other iterables of batches. In any order. Schedulers are stepped by your own code.

        Returns
        -------
        object or tuple
            In the order given: the same objects, moved to the trial's device; a loader as one that gives its batches
            there. One object comes back by itself, several as a tuple.

        Raises
        ------
        ArgumentError
            If something cannot be wrapped, or was wrapped before.
        InvalidDataError
            If a loader has no batches.

        Examples
        --------
        >>> model, optimizer, train_loader = context.wrap(model, optimizer, train_loader)
        """
        from det_native.pytorch.wrap_all import wrap_all

        return wrap_all(self, objects)

    @names_checked("context.epochs")
    def epochs(self, *bounds: int, epochs: int | None = None, wait: bool | None = None) -> LoopBatches:
        """Give the numbers of the epochs, for a loop of the user's own in which everything else is plain PyTorch.

        The training begins, or is submitted, when the loop asks for the first epoch. Between two epochs everything
        else happens that is due: reports, checkpoints, the searcher's decisions, the end. A trial that is continued
        gets the epochs that are left. In cluster mode there are none here: the loop's body runs on the workers, and
        ``context.experiment`` is the handle. ``break`` and ``return`` end the training there, as completed.

        Parameters
        ----------
        bounds : int
            The number of epochs; or the first one and the end, as ``range`` has them: ``epochs(1, 11)``. Without,
            the configuration says how many.
        epochs : int, optional
            Their number, by name.
        wait : bool, optional
            See :meth:`fit`.

        Returns
        -------
        LoopBatches
            An iterator over the numbers of the epochs. Its ``len()`` is that of the whole training.

        Raises
        ------
        TrialDefinitionError, ArgumentError
            If something is missing or does not fit, before anything is trained.
        """
        from det_native.pytorch.epochs_call import TorchEpochsCall

        call = TorchEpochsCall.of(self, bounds if epochs is None else (*bounds, epochs), wait)
        return self._loop(call, call.epochs_in)

    @names_checked("context.fit")
    def fit(
        self,
        train_loader: Any = None,
        validation_loader: Any = None,
        train_batch: Callable[..., Any] | None = None,
        evaluate_batch: Callable[..., Any] | None = None,
        epochs: int | None = None,
        callbacks: Any = None,
        *,
        wait: bool | None = None,
    ) -> Any:
        """Train the wrapped objects with the user's functions: here to the end, or on the cluster.

        Parameters
        ----------
        train_loader : torch.utils.data.DataLoader or det_native.pytorch.DataLoader
            The training data. Their order follows from the trial's seed.
        validation_loader : torch.utils.data.DataLoader or det_native.pytorch.DataLoader, optional
            The validation data, with `evaluate_batch`. Without it, the means of the training metrics are what trials
            are compared by.
        train_batch : callable
            ``train_batch(batch, epoch_idx, batch_idx)`` trains on one batch, with ``context.backward(loss)`` and
            ``context.step_optimizer(optimizer)``, and returns the loss or metrics by name. Epochs and batches are
            counted from 0 since the start of training.
        evaluate_batch : callable, optional
            ``evaluate_batch(batch)`` returns the validation metrics of a batch by name; they are averaged over the
            records. Runs under ``torch.no_grad()`` with the models in evaluation mode.
        epochs : int, optional
            How long to train, where the configuration does not say it; 1 by default.
        callbacks : PyTorchCallback, list or dict, optional
            Callbacks, alone, in a list, or by name.
        wait : bool, optional
            False returns at once on the cluster; ``experiment.wait()`` brings home what the training has changed.

        Returns
        -------
        Experiment
            After the training; with ``wait=False`` at once.

        Raises
        ------
        TrialDefinitionError, InvalidDataError, ArgumentError
            If something is missing or does not fit, before anything is trained.
        """
        call = TorchCall.of(
            self,
            "fit",
            train_loader=train_loader,
            validation_loader=validation_loader,
            train_batch=train_batch,
            evaluate_batch=evaluate_batch,
            epochs=epochs,
            callbacks=callbacks,
            wait=wait,
        )
        __tracebackhide__ = True
        result = self._handled(self._on_fit)(call)
        if self.role == "cluster":
            self.experiment = result
        return result

    @names_checked("context.train")
    def train(
        self,
        train_loader: Any = None,
        epochs: int | None = None,
        *,
        validation_loader: Any = None,
        evaluate_batch: Callable[..., Any] | None = None,
        callbacks: Any = None,
        wait: bool | None = None,
    ) -> LoopBatches:
        """Give the batches of the whole training, for a loop of the user's own.

        The training begins, or is submitted, when the loop asks for the first batch. Between two batches everything
        else happens that is due: reports, validations, checkpoints, the end. A trial that is continued gets the batches
        that are left. In cluster mode there are none here: the loop's body runs on the workers, and
        ``context.experiment`` is the handle. Leaving the loop by ``break`` or ``return`` ends the training there, with
        a checkpoint and a validation, as completed.

        Parameters
        ----------
        train_loader, epochs, validation_loader, evaluate_batch, callbacks, wait
            See :meth:`fit`.

        Returns
        -------
        LoopBatches
            An iterator over what the loader gives, on the trial's device. Its ``len()`` is that of the whole training.

        Raises
        ------
        TrialDefinitionError, InvalidDataError, ArgumentError
            If something is missing or does not fit, before anything is trained.
        """
        call = TorchCall.of(
            self,
            "train",
            train_loader=train_loader,
            validation_loader=validation_loader,
            train_batch=None,
            evaluate_batch=evaluate_batch,
            epochs=epochs,
            callbacks=callbacks,
            wait=wait,
        )
        if self._amp is not None:
            raise TrialDefinitionError(
                "context.configure_apex_amp() casts inside of functions, so it works with context.fit(): in a loop of "
                "your own write `with torch.autocast(...)` around the forward pass, and use context.wrap_scaler()."
            )
        return self._loop(call)

    def _tell_of_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Say that a step was made where nothing is meant to be trained: in a loop that goes past this context."""
        if not self._told_of_steps:
            self._told_of_steps = True
            warnings.warn(
                f"{type(optimizer).__name__}.step() trains in this process, and nothing is submitted by it. To train "
                "on the cluster, write the loop as `for epoch in context.epochs(...)`; to train here, call init() with "
                "local=True.",
                UserWarning,
                stacklevel=4,
            )
