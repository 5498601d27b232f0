"""The objects and functions of ``det.experimental.pytorch``, as something that is trained like a PyTorchTrial."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import torch

from det_harness.frameworks.torch.call_snapshot import begin_call
from det_harness.frameworks.torch.definition import Definition
from det_harness.frameworks.torch.evaluation import Evaluation, Validation, Wording
from det_harness.frameworks.torch.modes import evaluating
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.frameworks.torch.training_means import TrainingMeans
from det_harness.trial import rng
from det_harness.trial.lengths import in_whole_epochs
from det_harness.trial.metric_choice import MetricChoice
from det_harness.trial.metrics import checked_validation, numbers_of
from det_harness.trial.services import Services
from det_native.errors import TrialDefinitionError
from det_native.pytorch import DataLoader, PyTorchCallback, PyTorchTrial, PyTorchTrialContext
from det_native.pytorch.gradients import Gradients
from det_native.pytorch.native_call import TorchCall, function_name
from det_native.pytorch.passes import unchanged

# The name of a callback of our own, which keeps what belongs to a checkpoint besides the user's objects.
_MEANS = "det_native.means"


class CapturedCall(Definition):
    """A captured call of ``context.fit()`` or ``context.train()``: what the user has built in the program.

    Attributes
    ----------
    means : TrainingMeans or None
        What stands for a validation where the call has none.
    """

    as_in_torch = True

    def __init__(self, call: TorchCall, services: Services) -> None:
        environment = services.environment
        call.context.env = environment
        call.check(environment)
        self.name = call.name
        self.trainer = call.trainer
        self.verb = "report" if call.train_batch is None else "return"
        self.means: TrainingMeans | None = None
        if call.evaluate_batch is None:
            self.means = TrainingMeans(
                services.reporter, services.communicator, call, self._compared_by, self._check_reported
            )
            services = replace(services, reporter=self.means)
        self.services = services
        self._choice = MetricChoice(services, self.name, said=call.context.metric_said)
        schedule = services.schedule
        schedule.periods = in_whole_epochs(schedule.periods, environment, call.steps_per_epoch(environment))
        self._call = call
        self._evaluation: Evaluation | None = None

    def make(self, gradients: Gradients) -> tuple[PyTorchTrial, PyTorchTrialContext]:
        """Let the context that the user's objects belong to take part in the run."""
        call = self._call
        call.context.join_run(self.services.environment, gradients, call.trainer, call.name)
        call.context.distributed.connect(self.services.communicator)
        if call.train_batch is not None:
            begin_call(call)
        kept: dict[str, PyTorchCallback] = {}
        if self.means is not None:
            kept[_MEANS] = self.means.keeper
        # The name of the class is what messages say before the name of a method.
        trial_class = type(call.name, (_Adapter,), {"call": call, "kept": kept})
        return trial_class(call.context), call.context

    def evaluation(self, trial: PyTorchTrial, context: PyTorchTrialContext, reduction: Reduction) -> Validation:
        """Return what validates with the user's function, or the means of the training metrics."""
        if self.means is not None:
            return self.means
        loader = self._call.validation()
        assert loader is not None
        wording = Wording(
            owner=f"{function_name(self._call.evaluate_batch)}()",
            loader=f"validation_loader of {self.name}()",
            length_remedy=(
                "let the batches of validation_loader be tensors, or tuples or dictionaries of them, with the records "
                "along the first dimension (collate_fn= of the DataLoader makes them)"
            ),
        )
        self._evaluation = Evaluation(trial, context, loader, self.services, reduction, wording, as_in_torch=True)
        return self._evaluation

    def epoch_length(self, loader: DataLoader, context: PyTorchTrialContext) -> int:
        """Return the batches of an epoch, which ``records_per_epoch`` may say."""
        return self._call.steps_per_epoch(self.services.environment)

    def further_generators(self) -> dict[str, torch.Generator]:
        """Return the generators of the validation loader."""
        loader = self._call.validation()
        found = {} if loader is None else loader.generators
        return {f"validation {name}": generator for name, generator in found.items()}

    def begin(self, context: PyTorchTrialContext) -> None:
        """Have the models train, and find out on one batch whether the evaluation returns the searcher's metric."""
        for model in context.models:
            if not model.training:  # evaluated before, say; the modules of one that trains may be frozen on purpose
                model.train()
        evaluation = self._evaluation
        if evaluation is None or self._choice.metric is None:
            return
        if any(one.for_validation for one in context.experimental.reducers):
            return  # they may compute it, over all batches
        loader = self._call.validation()
        assert loader is not None
        with evaluating(context.models), rng.preserved(), unchanged(loader.generators):
            first = evaluation.first()
        if first is None:
            return  # this slot has no batch; whether any has one, the validation itself tells
        checked_validation(dict.fromkeys(first, 0.0), self._choice.look(numbers_of(first)), evaluation.owner)

    def validated(self, metrics: Mapping[str, Any]) -> None:
        """Choose by which metric of the first validation trials are compared, where nobody has said it."""
        self._choice.look(numbers_of(metrics))

    def _check_reported(self, names: Collection[str]) -> None:
        """Find out whether the first report has what the configuration names, unless reducers may compute it."""
        context = self._call.context
        if context.metric_said and not context.experimental.reducers:
            others = self.services.environment.metrics
            checked_validation(dict.fromkeys(names, 0.0), self._choice.metric, self.trainer, self.verb, others=others)

    def _compared_by(self, names: Collection[str]) -> str | None:
        return self._choice.look(names)


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
