"""Trains the objects and functions of ``det.experimental.pytorch``: ``fit()`` by the loop of a PyTorchTrial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from det_harness.frameworks.torch.checks import checked_by_name
from det_harness.frameworks.torch.controller import PyTorchTrialController
from det_harness.frameworks.torch.evaluation import Evaluation, Validation
from det_harness.frameworks.torch.modes import evaluating
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.frameworks.torch.training_means import TrainingMeans
from det_harness.frameworks.torch.trial_state import USERS_STATE
from det_harness.frameworks.torch.users_state import StateKeeper
from det_harness.trial import rng
from det_harness.trial.lengths import in_whole_epochs
from det_harness.trial.metrics import checked_validation
from det_harness.trial.services import Services
from det_native.errors import TrialDefinitionError
from det_native.pytorch import DataLoader, PyTorchCallback, PyTorchTrial, PyTorchTrialContext
from det_native.pytorch.gradients import Gradients
from det_native.pytorch.native_call import TorchCall, function_name
from det_native.schema.environment import TrialEnvironment

# The name of a callback of our own, which keeps what belongs to a checkpoint besides the user's objects.
_MEANS = "det_native.means"


class _NativeEvaluation(Evaluation):
    """Validates with the user's function."""

    @property
    def _call(self) -> TorchCall:
        assert isinstance(self._trial, _Adapter)
        return self._trial.call

    @property
    def owner(self) -> str:
        """What computes the metrics, for messages."""
        return f"{function_name(self._call.evaluate_batch)}()"

    @property
    def _loader_owner(self) -> str:
        return f"validation_loader of {self._name}()"

    @property
    def _length_remedy(self) -> str:
        return (
            "let the batches of validation_loader be tensors, or tuples or dictionaries of them, with the records "
            "along the first dimension (collate_fn= of the DataLoader makes them)"
        )

    def names(self) -> list[str] | None:
        """Return the names of the metrics of this slot's first batch; None if it has none."""
        batch = next(iter(self._loader), None)
        if batch is None:
            return None
        with torch.no_grad():
            metrics = self._evaluate(self._context.to_device(batch))
        return list(checked_by_name(self.owner, metrics))


class NativeTorchController(PyTorchTrialController):
    """Runs one trial of a captured call of ``context.fit()``.

    Parameters
    ----------
    call : TorchCall
        The user's objects, loaders and functions.
    services : Services
    """

    _evaluation_class = _NativeEvaluation

    def __init__(self, call: TorchCall, services: Services) -> None:
        environment = services.environment
        call.context.env = environment
        call.check(environment)
        self._call = call
        self._means: TrainingMeans | None = None
        if call.evaluate_batch is None:
            self._means = TrainingMeans(services.reporter, services.communicator, call, self._searched(environment))
            services = replace(services, reporter=self._means)
        schedule = services.schedule
        schedule.periods = in_whole_epochs(schedule.periods, environment, call.steps_per_epoch(environment))
        super().__init__(_adapter_class(call), services, call.trainer)

    @staticmethod
    def _searched(environment: TrialEnvironment) -> str | None:
        metric: str | None = (environment.config.get("searcher") or {}).get("metric")
        return metric

    def _make_trial(self, gradients: Gradients) -> None:
        call = self._call
        self._context = context = call.context
        call.context.join_run(self._services.environment, gradients, call.trainer, call.name)
        kept: dict[str, PyTorchCallback] = {USERS_STATE: StateKeeper(call.context)}
        if self._means is not None:
            kept[_MEANS] = self._means.keeper
        self._trial = self._trial_class(context)
        assert isinstance(self._trial, _Adapter)
        self._trial.kept = kept

    def _make_evaluation(self, reduction: Reduction) -> Validation:
        return self._means if self._means is not None else super()._make_evaluation(reduction)

    def _validation_loader(self) -> DataLoader:
        loader = self._call.validation()
        assert loader is not None
        return loader

    def _batches_of_an_epoch(self) -> int:
        return self._call.steps_per_epoch(self._services.environment)

    def _begun(self) -> None:
        if self._done:
            return  # modes are those of the checkpoint
        for model in self._context.models:
            if not model.training:  # evaluated before, say; the modules of one that trains may be frozen on purpose
                model.train()
        self._check_metric()

    def _enter_training_mode(self) -> None:
        """Do nothing: modes are the user's own."""

    def _check_metric(self) -> None:
        """Find out on one batch, before any training, whether the searcher's metric comes out of the evaluation."""
        if self._metric is None or not isinstance(self._evaluation, _NativeEvaluation):
            return
        if any(one.for_validation for one in self._context.experimental.reducers):
            return  # they may compute it, over all batches
        with evaluating(self._context.models), rng.preserved():
            names = self._evaluation.names()
        if names is None:
            return  # this slot has no batch; whether any has one, the validation itself tells
        checked_validation(dict.fromkeys(names, 0.0), self._metric, self._evaluation.owner)


class _Adapter(PyTorchTrial):
    """The user's functions as a trial."""

    call: TorchCall
    kept: dict[str, PyTorchCallback]

    def __init__(self, context: PyTorchTrialContext) -> None:
        function = self.call.train_batch
        if function is not None:
            self.train_batch = function  # type: ignore[method-assign]  # called as it is, for every batch

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        raise TrialDefinitionError("The loop over context.train() trains by itself.")

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        assert self.call.evaluate_batch is not None
        metrics: dict[str, Any] = self.call.evaluate_batch(batch)
        return metrics

    def build_training_data_loader(self) -> DataLoader:
        return self.call.training(self.call.context.env)

    def build_validation_data_loader(self) -> Any:
        return self.call.validation_loader

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {**self.kept, **self.call.callbacks}


def _adapter_class(call: TorchCall) -> type[_Adapter]:
    # The name of the class is what messages say before the name of a method.
    return type(call.name, (_Adapter,), {"call": call})
