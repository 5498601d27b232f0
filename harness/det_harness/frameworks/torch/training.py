"""One training of a PyTorch trial: the user's objects and what surrounds them, whoever owns the loop over batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.torch.checkpoints import TorchCheckpoints
from det_harness.frameworks.torch.compilation import Compilation
from det_harness.frameworks.torch.definition import Definition
from det_harness.frameworks.torch.evaluation import shard_of
from det_harness.frameworks.torch.gradients import gradients_of
from det_harness.frameworks.torch.hooks import CallbackHooks
from det_harness.frameworks.torch.modes import evaluating
from det_harness.frameworks.torch.ranks import RanksInStep
from det_harness.frameworks.torch.recorder import TrainingRecorder
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.frameworks.torch.step_watch import StepWatch
from det_harness.ranks.communicator import losses_named
from det_harness.trial import rng
from det_harness.trial.averages import averaged
from det_harness.trial.driver import Driver, TrainingPort
from det_harness.trial.metrics import scalar
from det_native.imports import Later, load_optimizers
from det_native.pytorch import LRScheduler
from det_native.tensorboard import place

if TYPE_CHECKING:
    from det_harness.frameworks.torch import sharded_state, trial_state
    from det_native.heap.call import CallSnapshot
else:
    sharded_state = Later("det_harness.frameworks.torch.sharded_state")
    trial_state = Later("det_harness.frameworks.torch.trial_state")


class TorchTraining(TrainingPort):
    """Builds, restores, validates and saves a trial for its driver.

    A loop over batches uses it so: in `running`, in it `started`; there it trains between the actions of `driver`.

    Parameters
    ----------
    own_loop : bool
        Whether the user's own loop trains: buffers are equal on all ranks after each backward, else before each batch.

    Attributes
    ----------
    services, schedule, recorder, compilation, driver
        What it is run with.
    trial, context, hooks, ranks, reduction, epoch_length
        What it is made of, in `running`.
    batches : iterator
        The training data from the batch that comes next, in `started`.
    """

    batches: Iterator[Any]

    def __init__(self, definition: Definition, *, own_loop: bool = False) -> None:
        self.definition = definition
        self._own_loop = own_loop
        self._changed_after_validation = -1
        self.services = services = definition.services
        self.schedule = services.schedule
        self._communicator = communicator = services.communicator
        config = services.environment.config
        averages = communicator.size > 1 and bool(
            (config.get("optimizations") or {}).get("average_training_metrics", False)
        )
        self.recorder = TrainingRecorder(
            services.reporter,
            definition.trainer,
            (lambda batches, columns: averaged(batches, columns, communicator)) if averages else None,
            definition.verb,
        )
        self.compilation = Compilation(config, definition.name)
        self.driver = Driver(services, self)
        self.done = 0
        self._step_watch: StepWatch | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Build the user's objects for the block, and end them after it.

        Raises
        ------
        TrialDefinitionError
            If the definition breaks a rule of the API.
        """
        with place.writing_to(self._event_files()), self.explained():
            self._build()
            try:
                with self._shutdown_in_any_case():
                    yield
            finally:
                self.context.end_training()

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Let what goes wrong in the block be said in words: a rank that is gone, models that cannot be compiled."""
        with losses_named(), self.compilation.explained():
            yield

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Be ready for the batch that comes next, in the block: the first one, or the one after a checkpoint."""
        self._position: Any = None
        self.context.leave_batches()
        self.services.count.ask(self._count)
        sampler = self._sampler_as_made()
        position = self._checkpoints.restore()
        if sampler is not None and position is not None:
            sampler.undo()  # the pass that was under way is begun again
        self.done = self.schedule.progress.batches
        self.ranks.start()
        self.batches = self._batches_from(position)
        try:
            if not self.done:
                self.definition.begin(self.context)
            with rng.preserved():  # it runs at every start, also of a trial that is continued
                self.hooks.call("on_training_start")
            context = self.context
            averaged = self._gradients.averaged_by_hooks(
                context.models,
                context.optimizers,
                begins=context.note_training,
                ends=self.ranks.send_buffers if self._own_loop else None,
            )
            with averaged, context.steps_watched(), self._optimizers_watched():
                yield
        finally:
            # A loop that the garbage collector ends may save after this: the order in which it closes is its own.
            self._position = getattr(self.batches, "position", None)
            del self.batches  # ends the loader's workers
            self._checkpoints.settle()

    @contextlib.contextmanager
    def _optimizers_watched(self) -> Iterator[None]:
        """Tell of optimizers that are not stepped in the block, where the loop over the batches is ours."""
        if self._own_loop:
            yield
            return
        optimizations = self.services.environment.config.get("optimizations") or {}
        self._step_watch = watch = StepWatch(
            self.context,
            self.definition.trainer,
            int(optimizations.get("aggregation_frequency", 1)),
            done=self.done,
            quiet=self._communicator.rank > 0,
        )
        try:
            yield
            if self.done >= self.schedule.periods.length:
                watch.training_ended(self.done, self.epoch_length)
        finally:
            watch.close()
            self._step_watch = None

    def _count(self) -> int:
        """Return how many batches are done, with the one that is being trained."""
        present = self.context.present_batch
        return self.done if present is None else max(self.done, present + 1)

    def _sampler_as_made(self) -> CallSnapshot | None:
        """Return the sampler of a call as its program has made it; checkpoints have it in the midst of a pass."""
        if self._loader is None or getattr(self.context, "snapshot", None) is None:
            return None
        from det_native.heap.call import CallSnapshot

        kept = [self._loader.dataset, *self.context.models, *self.context.optimizers]
        return CallSnapshot({}, given={"sampler": self._loader.plain_sampler}, kept_elsewhere=kept, keep_small=True)

    def _batches_from(self, position: Any) -> Iterator[Any]:
        """Return the training data from the batch that comes next."""
        assert self._loader is not None
        environment = self.services.environment
        of_torch = self.definition.as_in_torch and environment.ranks.size == 1
        if of_torch and (position is not None or not self.done):  # else it was begun on several slots
            others = self.definition.further_generators()
            found: Iterator[Any] = self._loader.training_as_in_torch(
                environment.trial_seed, self.done, position, others
            )
            return found
        return iter(
            self._loader.get_data_loader(repeat=True, skip=self.done, position=position, **shard_of(environment))
        )

    # -- the parts between which the ends of epochs and workloads lie

    def part_end(self) -> int:
        """Return the batch up to which nothing has to be done but training: the end of the epoch or workload."""
        epoch = self.done - self.done % self.epoch_length + self.epoch_length
        if not self.reduction:
            return epoch
        unit = self.schedule.periods.scheduling_unit
        return min(epoch, self.done - self.done % unit + unit)

    def begin_part(self) -> None:
        """Do what is due at the beginning of an epoch, if one begins."""
        epoch, first = divmod(self.done, self.epoch_length)
        if first == 0:
            self.hooks.call("on_training_epoch_start", epoch)

    def end_part(self) -> None:
        """Do what is due at the end of an epoch or workload, if one has ended."""
        epoch, rest = divmod(self.done, self.epoch_length)
        if rest == 0:
            for scheduler in self.schedulers(LRScheduler.StepMode.STEP_EVERY_EPOCH):
                scheduler.step()
            self.hooks.call("on_training_epoch_end", epoch - 1)
            if self._step_watch is not None:
                self._step_watch.epoch_ended(self.done)
        if self.reduction and self.schedule.ends_workload(self.done):
            self.report_workload()
        elif self.ranks.agree(self.done >= self.recorder.due or monotonic() >= self.recorder.late):
            self.recorder.report()
        if self.ranks.agree(self.context.get_stop_requested()):
            self.schedule.request_stop()

    def report_workload(self) -> None:
        """Report, with the batches, what the reducers make of the workload that has ended."""
        self.recorder.report(self.reduction.reduce(), self.done)
        self.reduction.reset()

    def schedulers(self, mode: LRScheduler.StepMode) -> list[LRScheduler]:
        """Return the schedulers that are stepped with every batch, or every epoch."""
        return [scheduler for scheduler in self.context.lr_schedulers if scheduler.step_mode is mode]

    # -- for the driver

    @property
    def validated_by(self) -> str:
        """What computes the validation metrics."""
        return self._evaluation.owner

    @property
    def verb(self) -> str:
        """What it does with them."""
        return self._evaluation.verb

    def report(self) -> None:
        """Report the training metrics that were not reported yet."""
        self.recorder.report()

    @contextlib.contextmanager
    def validation(self) -> Iterator[dict[str, Any] | None]:
        """Validate, with the hooks before; the models stay in evaluation mode in the block."""
        self.hooks.call("on_validation_step_start")
        self.hooks.call("on_validation_start")
        self.ranks.send_buffers()
        with evaluating(self.context.models):
            found = self._evaluation.run()
            self.definition.validated(found)
            yield found
        self.ranks.end_validation()
        if self.ranks.agree(self.ranks.stops):
            self.schedule.request_stop()

    def validated(self, metrics: dict[str, Any]) -> None:
        """Call the hooks after a validation, and note whether they have changed what was validated."""
        hooks = ("on_validation_step_end", "on_validation_end")
        sharded = sharded_state.mesh_of(self.context.models) is not None
        before = trial_state.digest(self.context) if any(map(self.hooks.of, hooks)) and not sharded else None
        for hook in hooks:
            self.hooks.call_with_metrics(hook, metrics)
        if self.ranks.agree(before is not None and trial_state.digest(self.context) != before):
            self._changed_after_validation = self.schedule.progress.batches

    def save(self) -> None:
        """Save the present state."""
        changed = self._changed_after_validation == self.schedule.progress.batches
        metrics = self._validated_again() if changed else None
        self._checkpoints.save(lambda: getattr(getattr(self, "batches", None), "position", self._position), metrics)

    def _validated_again(self) -> dict[str, float]:
        """Return the validation metrics of weights that hooks have changed since the validation; a collective call."""
        with evaluating(self.context.models), rng.preserved():
            numbers = {name: scalar(value) for name, value in self._evaluation.run().items()}
        return {name: number for name, number in numbers.items() if number is not None}

    @property
    def awaits_uploads(self) -> bool:
        """Whether a callback has the hook for published checkpoints."""
        return bool(self.hooks.of("on_checkpoint_upload_end"))

    def uploaded(self, uuid: str) -> None:
        """Call that hook."""
        self.hooks.call("on_checkpoint_upload_end", uuid)

    def wait(self) -> None:
        """Block until every checkpoint is published."""
        self._checkpoints.wait()

    def _build(self) -> None:
        load_optimizers()
        environment = self.services.environment
        if not self.definition.as_in_torch:
            rng.seed_all(environment.trial_seed)
        name = self.definition.name
        gradients = gradients_of(self._communicator, environment.config, name)
        self.trial, self.context = trial, context = self.definition.make(gradients)
        self._gradients = gradients
        self.compilation.apply(context.models, context.device)
        self.ranks = RanksInStep(context, self._communicator, gradients, self.services.stop_requested)
        self._loader = self.definition.training_loader(trial)
        reducers = context.experimental.reducers
        self.reduction = Reduction((one for one in reducers if one.for_training), self._communicator)
        self._evaluation = self.definition.evaluation(
            trial, context, Reduction((one for one in reducers if one.for_validation), self._communicator, "validation")
        )
        self.hooks = CallbackHooks(name, trial.build_callbacks(), rank_zero=environment.ranks.rank == 0)
        context.call_before_steps(self.hooks.of("on_before_optimizer_step"))
        self._checkpoints = TorchCheckpoints(self.services, context, self.hooks, self.reduction)
        self.epoch_length = self.definition.epoch_length(self._loader, context)
        context.set_epoch_length(self.epoch_length)

    def _event_files(self) -> Path | None:
        """Return the folder for TensorBoard's files: every rank has its own, lest their curves mix."""
        folder, rank = self.services.tensorboard, self._communicator.rank
        return folder / f"rank-{rank}" if folder is not None and rank > 0 else folder

    @contextlib.contextmanager
    def _shutdown_in_any_case(self) -> Iterator[None]:
        """Run ``on_trial_shutdown`` after the block; what goes wrong in it does not hide what went wrong before."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):
                self.hooks.call("on_trial_shutdown")
            raise
        changed = self.schedule.over and self._changed_after_validation == self.schedule.progress.batches
        metrics = self._validated_again() if changed else {}  # now: the hooks may close what a validation needs
        validated = trial_state.digest(self.context) if changed else None
        self.hooks.call("on_trial_shutdown")
        if not self.services.stop_requested():  # else it goes on elsewhere, from before this
            self._checkpoints.save_end(metrics, validated)
