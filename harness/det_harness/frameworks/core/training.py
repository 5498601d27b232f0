"""The training in a loop of the Core API: what the loop has changed is in its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.core.run import CoreRun
from det_harness.loops.facts import LoopFacts
from det_harness.loops.rows import EpochRows
from det_harness.loops.training import LoopTraining
from det_harness.trial import heap_file, rng
from det_harness.trial.driver import Driver
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import PassingReporter, Services
from det_harness.trial.throttle import Throttle
from det_native.core.cluster_info import get_cluster_info
from det_native.core.context import Context
from det_native.core.distributed import DistributedContext
from det_native.core.loop_call import CoreLoopCall, OperationsCall
from det_native.schema.lengths import UNTOLD
from det_native.tensorboard import place

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


_FACTS = "loop.json"
_ONE_PROCESS = DistributedContext(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)


class CoreLoop(LoopFacts):
    """A loop of the Core API."""

    further = (
        "context.train.report_training_metrics(steps_completed=..., metrics=...) keeps a row of each step of your own."
    )


class LoopReporter(PassingReporter):
    """Notes the metrics that the loop's body reports by steps of its own.

    Attributes
    ----------
    rows : EpochRows or None
        Where trials look for their metrics.
    used : bool
        Whether the body has reported anything since this was set to False.
    """

    def __init__(self, reporter: Any) -> None:
        super().__init__(reporter)
        self.rows: EpochRows | None = None
        self.used = False
        self._validations: dict[int, frozenset[str]] = {}

    def has_validation(self, batch: int | None = None) -> bool:
        """Whether the body has reported a validation, after so many batches or at all."""
        return bool(self._validations) if batch is None else batch in self._validations

    def of_loop(self) -> PassingReporter:
        """Return the reporter of the loop's body."""
        return _BodyReporter(self)

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Report metrics of a validation; those that the body has reported are known."""
        if not metrics.keys() <= self._validations.get(batch, frozenset()):
            self._reporter.validation(batch, metrics)

    def validation_of_body(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Report a validation of the loop's body."""
        assert self.rows is not None
        self.rows.note(metrics)
        self._validations[batch] = self._validations.get(batch, frozenset()) | metrics.keys()
        self._reporter.validation(batch, metrics)


class _BodyReporter(PassingReporter):
    _reporter: LoopReporter

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        self._reporter.used = True
        self._reporter.training(batches, metrics)

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        self._reporter.used = True
        self._reporter.validation_of_body(batch, metrics)


class BodyCheckpoints:
    """The checkpoints of the loop's body: each has, too, how the pass began in which it was made.

    A trial that goes on from one begins with that pass again.
    """

    def __init__(self, checkpoints: Any, training: CoreTraining) -> None:
        self._checkpoints, self._training = checkpoints, training

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checkpoints, name)

    def begin(self, batch: int) -> None:
        """Do nothing: the loop has begun."""

    def save(self, batch: int, write: Any, **named: Any) -> str:
        """Publish what `write` puts into a folder."""

        def with_state(folder: Path) -> None:
            write(folder)
            self._training.write_beginning(folder)

        uuid: str = self._checkpoints.save(batch, with_state, **named)
        return uuid


class LoopRun(CoreRun):
    """What the loop's body has reported; an operation is as long as it is to be where the body counts no steps."""

    def __init__(self, services: Services, training: CoreTraining) -> None:
        super().__init__(services, get_cluster_info(), _ONE_PROCESS)
        self._training = training
        self.length_asked = True  # the loop has it

    def completed(self, searcher_metric: Any) -> None:
        """Note that the operation of the search is done."""
        self.rows.pass_all()
        if self.steps <= self._training.done:
            self.done(self._training.done + self._training.rest)
        super().completed(searcher_metric)


class CoreTraining(LoopTraining):
    """Restores and saves a trial by what its loop has changed.

    A pass counts as the steps that its body has reported in it, as those of the pass before where it reports none.
    """

    def __init__(self, call: CoreLoopCall, services: Services) -> None:
        self._reporter = LoopReporter(services.reporter)
        self.services = services = replace(services, reporter=self._reporter)
        self._call = call
        self.loop = CoreLoop(call, services)
        self.schedule = services.schedule
        self.rows = self._reporter.rows = EpochRows(self.loop)
        self.driver = Driver(services, self)
        self.done = self._passes = 0
        self.epoch_length = self.loop.batches
        self._total = 1 if isinstance(call, OperationsCall) else self.schedule.periods.length // self.epoch_length
        self._changes = heap_file.KeptChanges(lambda: call.context.snapshot)
        self._stores = self._left = self._told = False
        self._beginning: tuple[dict[str, Any], bytes, dict[str, Any]] = {}, b"", {}

    # -- for the controller

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have the Core API of the context report for this trial in the block."""
        with place.writing_to(self.services.tensorboard):
            environment = self.services.environment
            if self.loop.quick:
                environment = replace(environment, stage={"batches": 1})
            users = replace(
                self.services,
                environment=environment,
                reporter=self._reporter.of_loop(),
                checkpoints=BodyCheckpoints(self.services.checkpoints, self),
                schedule=Schedule(self.schedule.periods),
                count=None,  # type: ignore[arg-type]  # made of the schedule
            )
            self.core = Context(LoopRun(users, self))
            self._call.context.join(self.core)
            yield
            if self._left and not self.services.stop_requested():
                self._changes.save_end(self.services.checkpoints)

    @contextmanager
    def started(self) -> Iterator[None]:
        """Go on from a checkpoint, if there is one."""
        self.services.count.ask(self._count)
        with self.services.checkpoints.restore() as folder:
            self._restore(folder)
        self.run.begin(self.done)
        self.begin_pass()
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self.run.rows.close()
            raise
        else:
            self.run.rows.close()
        finally:
            self.run.measure(None)

    @property
    def run(self) -> CoreRun:
        """What the body has reported."""
        return self.core.run

    def explained(self) -> AbstractContextManager[None]:
        """Return a block in which nothing is added to an exception."""
        return nullcontext()

    @property
    def passes(self) -> int:
        """How many passes are done."""
        return self._passes

    @property
    def is_used(self) -> bool:
        """Whether the body has reported something in its pass, or there is nothing that could be gone back to."""
        return self._reporter.used or not self.done

    @property
    def rest(self) -> int:
        """Batches that an operation has at least."""
        length = self.schedule.periods.length
        return 1 if length >= UNTOLD.units else max(1, length - self.done)

    def begin_pass(self) -> None:
        """Note how a pass begins, where the body makes checkpoints of its own."""
        self._reporter.used = self.run.acknowledged = False
        self.run.services.schedule.progress.last_checkpointed = UNTOLD.units  # the loop saves what it does
        if self._stores or not self._beginning[0]:
            self._note_beginning(self._changes.content() if self._stores else self._changes.before)

    def leave(self) -> None:
        """Note that the loop was left in a pass that does not count: what it has changed is kept all the same."""
        self._left = True

    def end_pass(self) -> None:
        """Count a pass that has ended as the steps that were reported in it."""
        steps = self.run.steps - self.done
        if isinstance(self._call, OperationsCall):
            self.rows.epoch_length = self.epoch_length = max(steps, self.rest)
        elif steps > 0 and steps != self.epoch_length:
            self.count_passes_as(steps)
        self._passes += 1
        self.rows.end_epoch()
        if not self._told and not self._reporter.has_validation():
            self.services.reporter.no_validation()
        self._told = True
        self.done += self.epoch_length
        if self._reporter.has_validation(self.done):  # one row of both
            self._reporter.validation(self.done, self.rows.latest())
        self._set_length()
        self.schedule.trained(self.done)

    def _set_length(self) -> None:
        left = (self._total - self._passes) * self.epoch_length
        self.schedule.periods = replace(self.schedule.periods, length=self.done + max(left, 0))

    def _count(self) -> int:
        return max(super()._count(), self.run.steps, self.run.rows.last)

    # -- for the driver

    @property
    def validated_by(self) -> str:
        """What reports the metrics."""
        return self.loop.trainer

    @property
    def verb(self) -> str:
        """What it does with them."""
        return self.loop.verb

    def wait(self) -> None:
        """Block until every checkpoint is published."""
        self.services.checkpoints.wait()

    def save(self) -> None:
        """Save what has changed since the loop began."""
        place.flush()
        with rng.preserved():
            self._note_beginning(self._changes.content())
            self.services.checkpoints.save(self.schedule.progress.batches, self._write, beside=True)

    def _write(self, folder: Path) -> Any:
        facts, content, states = self._beginning
        (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        rng.save(folder, states)
        if self.services.files is not None:
            self.services.files.save(folder)

        def rest(throttle: Throttle) -> None:
            heap_file.write(folder, content)

        return rest

    def write_beginning(self, folder: Path) -> None:
        """Write into a checkpoint of the body's own how its pass began."""
        self._stores = True
        self._write(folder)(Throttle())

    def _note_beginning(self, content: bytes) -> None:
        facts = {"schedule": self.schedule.snapshot(), "passes": self._passes, "epoch_length": self.epoch_length}
        self._beginning = facts, content, rng.capture()

    def _restore(self, folder: Path | None) -> None:
        files, warm_start = self.services.files, self.services.warm_start
        if folder is not None:
            facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
            self.schedule.restore(facts["schedule"])
            self.done, self._passes = self.schedule.progress.batches, facts["passes"]
            if isinstance(self._call, OperationsCall):
                self._total = self._passes + 1
            else:
                self.count_passes_as(facts["epoch_length"])
                self._set_length()
            self._put_back(folder)
            rng.load(folder)
            if files is not None:
                files.restore(folder)
        elif warm_start is not None:
            with warm_start.folder() as other:
                self._put_back(other)
        if files is not None:
            files.begin()

    def _put_back(self, folder: Path) -> None:
        self._changes.open(folder)
        content = self._changes.before
        self._changes.restore()
        self._changes.before = content
