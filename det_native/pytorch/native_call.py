"""A call of ``context.fit()`` or ``context.train()``, and what it says about the experiment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch.utils.data as torch_data

from det_native.errors import ArgumentError, InvalidDataError, TrialDefinitionError
from det_native.heap.ownership import is_users_module
from det_native.heap.roots import running_loop
from det_native.loops.call import checked_epochs
from det_native.pytorch.callback import PyTorchCallback
from det_native.pytorch.data import DataLoader, check_unshared
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.training_call import TorchTrainingCall, check_wrapped
from det_native.schema.checks import BATCH_SIZE
from det_native.schema.environment import TrialEnvironment
from det_native.schema.proof import Input
from det_native.schema.signatures import checked_wait

_NO_CALLBACKS = "{}: callbacks must be det.pytorch.PyTorchCallback objects, in a list or by name, not {}."


@dataclass
class TorchCall(TorchTrainingCall):
    """One call of ``fit`` or ``train``, checked.

    Attributes
    ----------
    train_loader, validation_loader : torch.utils.data.DataLoader or det_native.pytorch.DataLoader
        As they were given; the second may be None.
    train_batch : callable or None
        None for ``train``, whose loop is the user's.
    evaluate_batch : callable or None
    epochs : int or None
        None where the call does not say it.
    callbacks : dict
        By name.
    """

    train_loader: Any = None
    validation_loader: Any = None
    train_batch: Callable[..., Any] | None = None
    evaluate_batch: Callable[..., Any] | None = None
    callbacks: dict[str, PyTorchCallback] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        context: PyTorchRunContext,
        kind: Literal["fit", "train"],
        *,
        train_loader: Any,
        validation_loader: Any,
        train_batch: Any,
        evaluate_batch: Any,
        epochs: Any,
        callbacks: Any,
        wait: Any = None,
    ) -> TorchCall:
        """Check the arguments of a call.

        Raises
        ------
        TrialDefinitionError
            If nothing is wrapped, or a function is missing.
        InvalidDataError
            If a loader is none, or is empty.
        ArgumentError
            If another argument makes no sense.
        """
        name = f"context.{kind}()"
        check_wrapped(name, context)
        if kind == "fit":
            _check_function(name, "train_batch", train_batch, ("batch", "epoch_idx", "batch_idx"))
        _check_loader(name, "train_loader", train_loader)
        if validation_loader is not None:
            _check_loader(name, "validation_loader", validation_loader)
        _check_evaluation(name, validation_loader, evaluate_batch)
        call = cls(
            context,
            checked_epochs(name, epochs),
            kind,
            checked_wait(name, wait),
            train_loader=train_loader,
            validation_loader=validation_loader,
            train_batch=train_batch,
            evaluate_batch=evaluate_batch,
            callbacks=_by_name(name, callbacks),
        )
        call._check_length()
        return call

    @property
    def name(self) -> str:
        """``context.fit`` or ``context.train``, for messages."""
        return f"context.{self.kind}"

    @property
    def trainer(self) -> str:
        """What trains on a batch, for messages."""
        return f"{function_name(self.train_batch)}()" if self.train_batch is not None else "the loop of context.train()"

    @property
    def batch_size(self) -> int | None:
        """Records per batch of the training loader; None if it does not tell."""
        loader = self.train_loader
        size = loader.batch_size if loader.batch_size is not None else getattr(loader.batch_sampler, "batch_size", None)
        return size if isinstance(size, int) and size > 0 else None

    @property
    def batches(self) -> int | None:
        """Batches of the training loader; None if it has no length."""
        return len_of(self.train_loader)

    @property
    def assumed(self) -> frozenset[str]:
        """Fields among ``configuration_fills`` that nobody typed: they contradict no configuration."""
        fields = {"searcher.metric", "records_per_epoch", "min_validation_period"}
        if self.epochs is None:
            fields.add("searcher.max_length")
        environment = self.context.env
        # A sample of what is searched over, or a slot's share of the batch, which the loader was made with.
        if BATCH_SIZE in environment.hparams and self.batch_size in (
            environment.hparams[BATCH_SIZE],
            environment.per_slot_batch_size,
        ):
            fields.add(f"hyperparameters.{BATCH_SIZE}")
        return frozenset(fields)

    def configuration_fills(self) -> dict[str, Any]:
        """Return what the call says about fields of the configuration, by dotted path; see ``assumed``.

        Used where the configuration is silent; where both speak, the configuration wins.

        Raises
        ------
        InvalidDataError
            If the length of an epoch cannot be known from the loader and the configuration.
        """
        environment, size, batches = self.context.env, self.batch_size, self.batches
        configured = int(environment.config.get("records_per_epoch") or 0)
        epochs = self.epochs if self.epochs is not None else 1
        fills: dict[str, Any] = {"searcher.metric": "loss" if self.evaluate_batch is None else "val_loss"}
        known_size = size or environment.hparams.get(BATCH_SIZE)
        if size is not None:
            fills[f"hyperparameters.{BATCH_SIZE}"] = size
        if known_size and (batches or configured):
            if batches:
                fills["records_per_epoch"] = self._records() or batches * known_size
            fills["searcher.max_length"] = {"epochs": epochs}
            fills["min_validation_period"] = {"epochs": 1}
        elif batches:
            fills["searcher.max_length"] = {"batches": epochs * batches}
            fills["min_validation_period"] = {"batches": batches}
        else:
            raise InvalidDataError(
                f"train_loader of {self.name}() does not tell where an epoch ends: give its dataset, "
                f"{type(self.train_loader.dataset).__name__}, a __len__() with its records, or set records_per_epoch "
                "and hyperparameters.global_batch_size in the configuration."
            )
        return fills

    def steps_per_epoch(self, environment: TrialEnvironment) -> int:
        """Return the batches of one epoch on each slot, for a configuration that is complete.

        ``records_per_epoch`` of the configuration rules; where it agrees with the data, an epoch is one pass over the
        loader, with its smaller last batch.
        """
        configured = int(environment.config.get("records_per_epoch") or 0)
        loader = self.training(environment)
        own = len_of(loader) or 0
        size = int(environment.hparams.get(BATCH_SIZE) or 0)
        agrees = not configured or not size or configured in (self._records(), own * size // environment.ranks.size)
        if own and agrees:
            return -(-own // environment.ranks.size)
        return max(configured // environment.global_batch_size, 1)

    def inputs(self) -> dict[str, Input]:
        """Return what the call is given, by what it is called in messages: what a worker compares."""
        given = self.inputs_of_parts()
        for name, loader in (("train_loader", self.train_loader), ("validation_loader", self.validation_loader)):
            if loader is not None:
                given |= inputs_of_loader(name, loader)
        for name, function in (("train_batch", self.train_batch), ("evaluate_batch", self.evaluate_batch)):
            if function is not None:
                given[name] = Input(function, "code")
        if self.kind == "train":
            given["the loop"] = Input(running_loop(), "code")
        for name, callback in self.callbacks.items():
            given[f"the callback {name}"] = Input(callback, "callback")
        return given

    def training(self, environment: TrialEnvironment) -> DataLoader:
        """Return the training loader of this process, with the batch size that the configuration says."""
        return self._loader(self.train_loader, environment)

    def validation(self) -> DataLoader | None:
        """Return the validation loader, None if there is none."""
        return None if self.validation_loader is None else as_ours(self.validation_loader)

    def check(self, environment: TrialEnvironment) -> None:
        """Check the call against a complete configuration, before any batch.

        Raises
        ------
        TrialDefinitionError
            If the searcher's metric cannot come out of this call.
        InvalidDataError
            If the loader cannot have the batch size of the configuration.
        """
        metric = environment.metric or ""
        # A loop may report a validation of its own under such a name.
        if metric.startswith("val") and self.evaluate_batch is None and self.train_batch is not None:
            raise TrialDefinitionError(
                f"searcher.metric is '{metric}', but {self.name}() has no validation. Pass validation_loader and "
                "evaluate_batch, or set searcher.metric to 'loss' or another metric of the training."
            )
        if len_of(self.training(environment)) == 0:
            raise InvalidDataError(
                f"train_loader of {self.name}() has no batch of {environment.per_slot_batch_size} records: lower "
                "hyperparameters.global_batch_size."
            )

    def _loader(self, loader: Any, environment: TrialEnvironment) -> DataLoader:
        ours, own = as_ours(loader), self.batch_size
        if BATCH_SIZE not in environment.hparams or own is None:
            return ours
        wanted = environment.per_slot_batch_size
        if wanted == own:
            return ours
        if not ours.plain_batches:
            raise InvalidDataError(
                f"hyperparameters.global_batch_size makes {wanted} records a batch on each slot, but train_loader of "
                f"{self.name}() has a batch_sampler of its own, with {own}: make it with "
                "context.get_per_slot_batch_size()."
            )
        return ours.with_batch_size(wanted)

    def _records(self) -> int:
        """Return the records of one pass, 0 if they are not known: a batch sampler may make anything."""
        ours = as_ours(self.train_loader)
        if not ours.plain_batches or ours.drop_last:
            return 0
        return len_of(ours.dataset if ours.iterable else ours.sampler) or 0

    def _check_length(self) -> None:
        for what, loader in (("train_loader", self.train_loader), ("validation_loader", self.validation_loader)):
            if loader is not None and len_of(loader) == 0:
                raise InvalidDataError(
                    f"{what} of {self.name}() has no batches: its dataset has fewer records than one batch, or none."
                )


def inputs_of_loader(name: str, loader: Any) -> dict[str, Input]:
    """Return the data of a loader, and how it picks records and makes batches; their size is the configuration's."""
    batches = getattr(loader, "batch_sampler", None)
    settings = {
        "order": loader.sampler,
        "batches": batches if is_users_module(type(batches).__module__) else type(batches),
        "drop_last": loader.drop_last,
        "collate_fn": loader.collate_fn,
    }
    return {name: Input(loader.dataset), f"the settings of {name}": Input(settings, "loader")}


def as_ours(loader: Any) -> DataLoader:
    """Return a loader of torch's or ours as ours."""
    return loader if isinstance(loader, DataLoader) else DataLoader.from_torch(loader)


def len_of(loader: Any) -> int | None:
    """Return the batches of a loader; None if it has no length."""
    try:
        return len(loader)
    except TypeError:
        return None


def function_name(function: Any) -> str:
    """Return how the user calls a function."""
    return str(getattr(function, "__name__", type(function).__name__))


def _check_function(name: str, what: str, function: Any, parameters: Sequence[str]) -> None:
    written = f"{what}({', '.join(parameters)})"
    if function is None:
        raise TrialDefinitionError(f"{name} needs {what}=..., a function {written} that returns metrics by name.")
    if not callable(function):
        raise TrialDefinitionError(f"{name}: {what} must be a function {written}, not {type(function).__name__}.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*parameters)
    except TypeError as error:
        raise TrialDefinitionError(
            f"{name}: {function_name(function)}{signature} must take ({', '.join(parameters)}): {error}."
        ) from None


def _check_evaluation(name: str, validation_loader: Any, evaluate_batch: Any) -> None:
    if validation_loader is None and evaluate_batch is not None:
        raise TrialDefinitionError(
            f"{name} was given evaluate_batch={function_name(evaluate_batch)}, but no validation_loader: pass the "
            "loader of the validation data too, or leave evaluate_batch out."
        )
    if validation_loader is not None and evaluate_batch is None:
        raise TrialDefinitionError(
            f"{name} was given a validation_loader, but no evaluate_batch: pass evaluate_batch=..., a function of one "
            "batch that returns validation metrics by name, or leave the loader out."
        )
    if evaluate_batch is not None:
        _check_function(name, "evaluate_batch", evaluate_batch, ("batch",))


def _check_loader(name: str, what: str, loader: Any) -> None:
    if isinstance(loader, DataLoader | torch_data.DataLoader):
        check_unshared(f"{name} was given {what}, a loader", loader)
        return
    if loader is None:
        raise InvalidDataError(f"{name} needs {what}=..., a torch.utils.data.DataLoader or a det.pytorch.DataLoader.")
    remedy = "make one of it: DataLoader(dataset, batch_size=...)"
    if not isinstance(loader, torch_data.Dataset):
        remedy = "wrap the data in a Dataset and that in a DataLoader: DataLoader(TensorDataset(x, y), batch_size=...)"
    raise InvalidDataError(
        f"{name}: {what} must be a torch.utils.data.DataLoader or a det.pytorch.DataLoader, not "
        f"{type(loader).__name__}; {remedy}."
    )


def _by_name(name: str, callbacks: Any) -> dict[str, PyTorchCallback]:
    """Return callbacks by name; those of a list are named by their class and place."""
    if callbacks is None:
        return {}
    if isinstance(callbacks, PyTorchCallback):
        callbacks = [callbacks]
    if isinstance(callbacks, Mapping):
        found = dict(callbacks)
    elif isinstance(callbacks, Sequence) and not isinstance(callbacks, str):
        found = {f"{type(one).__name__}-{number}": one for number, one in enumerate(callbacks)}
    else:
        raise ArgumentError(_NO_CALLBACKS.format(name, type(callbacks).__name__))
    for key, one in found.items():
        if not isinstance(key, str) or not isinstance(one, PyTorchCallback):
            wrong = f"the class {one.__name__}: make an object of it" if isinstance(one, type) else type(one).__name__
            raise ArgumentError(_NO_CALLBACKS.format(name, wrong))
    return found
