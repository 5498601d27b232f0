"""What has to be right about a user's PyTorchTrial before it is trained; messages name the class and the remedy."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from det_harness.trial.metrics import check_names
from det_native.errors import InvalidDataError, TrialDefinitionError
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext, Reducer
from det_native.pytorch.data import adapt_data_loader
from det_native.pytorch.native_call import len_of
from det_native.pytorch.wrapping import foreign_optimizer

logger = logging.getLogger("det_harness")

_WRAPPED_BY = {"build_model": "wrap_model", "optimizer": "wrap_optimizer", "create_lr_scheduler": "wrap_lr_scheduler"}
_PARAMETERS = {
    "train_batch": ("batch", "epoch_idx", "batch_idx"),
    "evaluate_batch": ("batch",),
    "evaluate_full_dataset": ("data_loader",),
}
_BATCH_METHODS = ("train_batch", "evaluate_batch", "evaluate_full_dataset")


def check_trial_class(trial_class: type[PyTorchTrial]) -> None:
    """Refuse a class that cannot be trained, before any of its code runs.

    Raises
    ------
    TrialDefinitionError
        If methods are missing, belong to the old interface or take other parameters, or both or none of the
        evaluation methods are there.
    """
    name = trial_class.__name__
    old = _old_methods(trial_class)
    # A class of today may well have a method of its own called build_model().
    if old and (inspect.isabstract(trial_class) or _takes_model(trial_class)):
        raise TrialDefinitionError(_migration(trial_class, old))
    missing = sorted(getattr(trial_class, "__abstractmethods__", ()))
    if missing:
        raise TrialDefinitionError(f"{name} lacks {', '.join(f'{one}()' for one in missing)}; define it in the class.")
    evaluations = [one for one in ("evaluate_batch", "evaluate_full_dataset") if overrides(trial_class, one)]
    if len(evaluations) != 1:
        found = "both are there" if evaluations else "neither is there"
        raise TrialDefinitionError(
            f"{name} must define exactly one of evaluate_batch() and evaluate_full_dataset(); {found}."
        )
    for method in ("train_batch", evaluations[0]):
        _check_parameters(trial_class, method)


def _check_parameters(trial_class: type[PyTorchTrial], method: str) -> None:
    function = inspect.getattr_static(trial_class, method)
    if not inspect.isfunction(function):
        return  # a static method or a decorator's object, which may take anything
    signature = inspect.signature(function)
    try:
        numbered = method == "evaluate_batch" and takes_batch_idx(function)
        signature.bind(None, *_PARAMETERS[method], **({"batch_idx": 0} if numbered else {}))
    except TypeError as error:
        raise TrialDefinitionError(
            f"{trial_class.__name__}.{method}{signature} must take (self, {', '.join(_PARAMETERS[method])}): {error}."
        ) from None


def takes_batch_idx(evaluate: Any) -> bool:
    """Return whether an ``evaluate_batch`` takes the number of the batch: Determined's may, since 0.18."""
    try:
        parameters = inspect.signature(evaluate).parameters
    except (TypeError, ValueError):
        return False
    return "batch_idx" in parameters


def check_wrapped(name: str, context: PyTorchTrialContext, trial_class: type[PyTorchTrial] | None = None) -> None:
    """Refuse a trial whose models or optimizers would not be trained and saved.

    Raises
    ------
    TrialDefinitionError
        If nothing is wrapped, or an optimizer has parameters of no wrapped model.
    """
    if not context.models:
        old = _old_methods(trial_class) if trial_class is not None else []
        if trial_class is not None and "build_model" in old and "optimizer" in old:
            raise TrialDefinitionError(_migration(trial_class, old))
        raise TrialDefinitionError(f"{name}.__init__() wrapped no model: call self.context.wrap_model(model) there.")
    if not context.optimizers:
        raise TrialDefinitionError(
            f"{name}.__init__() wrapped no optimizer: call self.context.wrap_optimizer(optimizer) there."
        )
    foreign = foreign_optimizer(context.models, context.optimizers)
    if foreign is not None:
        raise TrialDefinitionError(
            f"A {type(foreign).__name__} of {name} has parameters that belong to no wrapped model, so they would not "
            "be in checkpoints: wrap that model with self.context.wrap_model() too."
        )


def checked_loader(name: str, trial: PyTorchTrial, method: str) -> DataLoader:
    """Return what a ``build_*_data_loader`` method of the trial returns, as our loader.

    Raises
    ------
    InvalidDataError
        If it is no loader.
    """
    try:
        return adapt_data_loader(getattr(trial, method)(), f"{name}.{method}")
    except NotImplementedError as error:
        raise InvalidDataError(f"{name}.{method}() is not implemented: return a det.pytorch.DataLoader.") from error


def check_evaluation(name: str, loader: DataLoader, trial: PyTorchTrial, metric: str | None) -> None:
    """Refuse, before the training, what no validation could be made with.

    Parameters
    ----------
    name : str
        Of the user's class.
    metric : str or None
        The searcher's, if it has to come out of the evaluation method.

    Raises
    ------
    TrialDefinitionError
    """
    if len_of(loader) == 0:
        raise TrialDefinitionError(
            f"The loader that {name}.build_validation_data_loader() returned has no batches; validation needs data."
        )
    reducers = trial.evaluation_reducer()
    for reducer in reducers.values() if isinstance(reducers, dict) else [reducers]:
        if not isinstance(reducer, Reducer):
            raise TrialDefinitionError(
                f"{name}.evaluation_reducer() returned {reducer!r}, which is no det.pytorch.Reducer: return one, "
                "such as Reducer.AVG, for all metrics, or a dictionary with one for each."
            )
    whole = overrides(type(trial), "evaluate_full_dataset")
    if isinstance(reducers, dict) and not whole and metric is not None and metric not in reducers:
        raise TrialDefinitionError(
            f"{name}.evaluation_reducer() has no det.pytorch.Reducer for the metric '{metric}', which is "
            "searcher.metric; return one reducer for all metrics, or a dictionary with one for each."
        )


def batches_of_an_epoch(name: str, loader: DataLoader, context: PyTorchTrialContext) -> int:
    """Return the batches that each slot trains on in an epoch, the same on all of them.

    Raises
    ------
    TrialDefinitionError
        If there is none, or their number cannot be known.
    """
    environment = context.env
    try:
        batches = -(-len(loader) // environment.ranks.size)
    except TypeError as error:
        records = int(environment.config.get("records_per_epoch") or 0)
        if not records:
            raise TrialDefinitionError(
                f"{name}.build_training_data_loader() returned a loader of {type(loader.dataset).__name__}, which has "
                "no length: give it a __len__() with its records, or set records_per_epoch in the configuration."
            ) from error
        batches = max(records // context.get_global_batch_size(), 1)
    if batches < 1:
        raise TrialDefinitionError(
            f"{name}.build_training_data_loader() returned a loader without batches: its dataset has fewer records "
            "than one batch, or none."
        )
    if environment.ranks.rank == 0 and context.env.batch_size is not None:
        _tell_of_other_batch_size(name, loader, context)
    return batches


def _tell_of_other_batch_size(name: str, loader: DataLoader, context: PyTorchTrialContext) -> None:
    own, expected = loader.batch_size, context.get_per_slot_batch_size()
    if own in (None, expected):
        return
    slots = context.distributed.get_size()
    share = f", {expected} for each of {slots} slots" if slots > 1 else ""
    logger.warning(
        "%s.build_training_data_loader() makes batches of %d, but hyperparameters.global_batch_size is %d%s: lengths "
        "in records are counted by the latter. Give the loader batch_size=self.context.get_per_slot_batch_size().",
        name,
        own,
        context.get_global_batch_size(),
        share,
    )


def checked_by_name(owner: str, metrics: Any) -> dict[str, Any]:
    """Return metrics of an evaluation method or function, `owner`, which have to be a dictionary.

    Raises
    ------
    TrialDefinitionError
        If they are anything else.
    """
    if not isinstance(metrics, dict):
        raise TrialDefinitionError(f"{owner} returned {type(metrics).__name__}; return metrics by name, a dictionary.")
    check_names(metrics, None, owner)
    return metrics


def overrides(trial_class: type[PyTorchTrial], method: str) -> bool:
    """Return whether the user's class defines a method of PyTorchTrial anew."""
    return getattr(trial_class, method) is not getattr(PyTorchTrial, method)


def _old_methods(trial_class: type[PyTorchTrial]) -> list[str]:
    return [method for method in _WRAPPED_BY if callable(getattr(trial_class, method, None))]


def _takes_model(trial_class: type[PyTorchTrial]) -> bool:
    """Return whether a method of a batch takes the model as an argument, as the old interface had it."""
    functions = [getattr(trial_class, method) for method in _BATCH_METHODS if overrides(trial_class, method)]
    return any("model" in inspect.signature(function).parameters for function in functions if callable(function))


def _migration(trial_class: type[PyTorchTrial], old: list[str]) -> str:
    return (
        f"{trial_class.__name__} uses the interface of Determined 0.12.12 and earlier ({_listed(old)}): in "
        f"__init__(self, context), make and keep in self what these made, and wrap it with "
        f"{' and '.join(f'context.{_WRAPPED_BY[one]}()' for one in old)}. Methods take no model any more, and "
        "train_batch() calls context.backward(loss), then context.step_optimizer(optimizer)."
    )


def _listed(methods: list[str]) -> str:
    return ", ".join(f"{method}()" for method in methods)
