"""Trains a PyTorchTrial that the code itself has made, for ``det.pytorch.Trainer``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from det_harness.frameworks.torch.checks import check_wrapped
from det_harness.frameworks.torch.controller import PyTorchTrialController
from det_harness.frameworks.torch.definition import TrialClass
from det_harness.frameworks.torch.training import TorchTraining
from det_harness.ranks.gang import SilentReporter
from det_harness.trial.lengths import one_of_each
from det_harness.trial.schedule import Periods
from det_harness.trial.services import Checkpoints, Services
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext
from det_native.pytorch.gradients import Gradients
from det_native.schema.lengths import UNTOLD, Length
from det_native.trainers.pytorch import Lengths, TrainerContext, TrainUnit, no_length


class MadeTrial(TrialClass):
    """A trial that there is already, and how long it trains.

    Raises
    ------
    TrialDefinitionError
        If its class breaks a rule of the API.
    """

    def __init__(
        self, trial: PyTorchTrial, context: TrainerContext, lengths: Lengths, services: Services, *, test: bool
    ) -> None:
        super().__init__(type(trial), services)
        check_wrapped(self.name, context, type(trial))
        self._trial = trial
        self._context = context
        self._lengths = lengths
        self._test = test

    def make(self, gradients: Gradients) -> tuple[PyTorchTrial, PyTorchTrialContext]:
        """Let the context that the trial was made with take part in the run."""
        self._context.join_run(self.services.environment, gradients, self.trainer, self.name)
        self._context.distributed.connect(self.services.communicator)
        return self._trial, self._context

    def epoch_length(self, loader: DataLoader, context: PyTorchTrialContext) -> int:
        """Return the batches of one pass over the training data, and say in the schedule what is due after how many."""
        length = super().epoch_length(loader, context)
        self.services.schedule.periods = one_of_each() if self._test else self._periods(length)
        return length

    def _periods(self, epoch: int) -> Periods:
        """Return what ``fit()`` was told, and what the configuration says of the rest."""
        lengths, environment, config = self._lengths, self.services.environment, self.services.environment.config
        records = environment.batch_size or 1

        def batches(given: TrainUnit | None, written: Any) -> int:
            if given is not None:
                return given.batches(epoch)
            length = Length.model_validate(written) if written else UNTOLD
            if length == UNTOLD or not length.units:
                return 0
            return max(length.to_batches(global_batch_size=records, records_per_epoch=records * epoch), 1)

        if environment.stage:
            length = batches(None, environment.stage)
        else:
            length = batches(lengths.max_length, (config.get("searcher") or {}).get("max_length"))
        if not length:
            raise no_length()
        reporting, initial = lengths.reporting_period, lengths.step_zero_validation
        return Periods(
            length=length,
            scheduling_unit=reporting.batches(epoch) if reporting else int(config.get("scheduling_unit", 100)),
            validation_period=batches(lengths.validation_period, config.get("min_validation_period")),
            checkpoint_period=batches(lengths.checkpoint_period, config.get("min_checkpoint_period")),
            initial_validation=bool(config.get("perform_initial_validation")) if initial is None else initial,
            policy=lengths.checkpoint_policy or config.get("checkpoint_policy", "best"),
        )


class MadeTrialController(PyTorchTrialController):
    """Runs it."""

    def __init__(self, definition: MadeTrial) -> None:
        self._training = TorchTraining(definition)


class ContinuedFrom:
    """Checkpoints of a trial that begins with another one than its latest.

    Parameters
    ----------
    checkpoints : Checkpoints
    path : Path
        The files of that one.
    """

    def __init__(self, checkpoints: Checkpoints, path: Path) -> None:
        self._checkpoints = checkpoints
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checkpoints, name)

    @contextmanager
    def restore(self) -> Iterator[Path | None]:
        """Give its folder."""
        with self._checkpoints.restore() as latest:
            yield latest or self._path


def train(
    trial: PyTorchTrial, context: TrainerContext, lengths: Lengths, latest_checkpoint: str | None, *, test: bool
) -> None:
    """Train a trial to its end; see ``det.pytorch.Trainer.fit()``."""
    core = context.core
    run = core.run
    # A launch layer connects the processes, not the worker.
    communicator = getattr(core.distributed, "exchange", None) or run.services.communicator
    services = replace(run.services, environment=context.env, communicator=communicator)
    if communicator.rank:
        services.reporter = SilentReporter()
    if test:
        services.validation_batches = 1
    with ExitStack() as stack:
        if latest_checkpoint is not None:
            path = stack.enter_context(core.checkpoint.restore_path(latest_checkpoint))
            services.checkpoints = cast(Checkpoints, ContinuedFrom(services.checkpoints, path))
        run.trained(MadeTrialController(MadeTrial(trial, context, lengths, services, test=test)).run())
