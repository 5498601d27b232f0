"""Runs a call of TensorFlow's own ``train_and_evaluate()``, in whatever role, and tells what happens in it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.estimator.exports import Results
from det_harness.frameworks.estimator.loop import scalar_summaries
from det_harness.frameworks.tf_estimator import model_dir
from det_harness.frameworks.tf_estimator.following import Follower
from det_harness.frameworks.tf_estimator.joining import InRole
from det_harness.frameworks.tf_estimator.observing import (
    ActivityHook,
    EvaluationListener,
    WatchedExporter,
)
from det_harness.frameworks.tf_estimator.shared_folder import check_shared, marked
from det_harness.ranks.exchange import wait_until
from det_harness.trial import activity, heap_file
from det_harness.trial.metrics import check_names, scalar
from det_harness.trial.services import Outcome, Services
from det_native.errors import CallValueError, InvalidDataError, RankLostError
from det_native.estimator.roles.call import UnchangedCall
from det_native.estimator.roles.entry import tensorflows_own
from det_native.schema.exports import write as write_exports
from det_native.schema.lengths import UNTOLD

logger = logging.getLogger("det_native")

_READY = "ready"
# The last evaluation is among what is waited for.
_ENDING_SECONDS = 4000.0
# Rows of training metrics wait at most so long (seconds) before they are reported.
_REPORT_INTERVAL = 0.25


class RolesController:
    """Runs one trial, as its only process or in one of its roles."""

    def __init__(self, call: UnchangedCall, services: Services) -> None:
        self.call = call
        self.services = services
        self._begun_at = 0
        self._step = 0
        self._kept = -1  # the step of the last checkpoint
        self._in_role: InRole | None = None
        self._stopped = False
        self._hook: StepHook | None = None
        self._pending: int | None = None
        self._exporters = [WatchedExporter(exporter) for exporter in call.eval_spec.exporters or ()]
        self._changes = heap_file.KeptChanges(lambda: call.snapshot)
        self._results = Results(self._exporters, Path(call.estimator.model_dir))

    def run(self) -> Outcome:
        """Train to the end, and return what TensorFlow's function has."""
        place = self.services.communicator
        self._in_role = place if isinstance(place, InRole) else None
        self.call.check(self.services.environment)
        if self._in_role is not None:
            self._check_role(self._in_role)
        if self._in_role is not None and not self._in_role.role.leads:
            return self._follow(self._in_role)
        self._folder = self._place()
        self._tell_length()
        with self.services.checkpoints.restore() as restored:
            self._restore(restored)
            self._changes.open(restored)
        try:
            with self._ready():
                result = tensorflows_own(self.call.estimator, self._train_spec(), self._eval_spec())
        finally:
            # Estimator leaves its writers of event files open for whoever writes to the same folder next.
            tf.compat.v1.summary.FileWriterCache.clear()
        metrics, exports = result if result is not None else (None, [])
        if self._in_role is not None:
            self._end_others(self._in_role)
        self._keep_exports()
        self._changes.save_end(self.services.checkpoints)
        self.services.checkpoints.wait()
        return self._outcome(metrics, exports)

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """Have the other roles begin."""
        place = self._in_role
        with marked(self._folder) if place is not None and place.machines > 1 else nullcontext("") as mark:
            if place is not None:
                place.exchange.say(_READY, mark)
            yield

    def _check_role(self, place: InRole) -> None:
        config = self.call.estimator.config
        if (config.task_type, config.task_id) != (place.role.name, place.role.index):
            raise CallValueError(
                f"The estimator's RunConfig is that of {config.task_type} {config.task_id}, and this process is "
                f"{place.role.title}: leave TF_CONFIG as it is, which distributed.roles has set."
            )

    def _follow(self, place: InRole) -> Outcome:
        [mark] = place.exchange.await_all([_READY], "the trial's first process did not begin to train")
        self._folder = self._place()
        if place.machine > 0:
            check_shared(self._folder, mark, place.role)
        most = self._most()
        spec = self.call.train_spec
        spec = spec._replace(max_steps=most, hooks=(*spec.hooks, ActivityHook()))
        return Follower(self.call, self.services, place, self._folder).run(spec)

    def _end_others(self, place: InRole) -> None:
        """Say that the training is over, and wait for what the others do then; report the last evaluations.

        A ps serves on: the estimator's variables lie with it, also where the code predicts after the call.
        """
        place.exchange.end("stopped" if self._stopped else "completed")
        others = range(1, len(place.ranks))
        awaited = [rank for rank in others if place.ranks[rank].name != "ps"]

        def gone() -> bool:
            activity.step()
            self._pass_on(place)
            for rank in others:
                if place.exchange.has_failed(rank):
                    raise RankLostError(f"{place.ranks[rank].title} of the trial has failed; its output says why.")
            return all(place.exchange.has_ended(rank) for rank in awaited) or self.services.stop_requested()

        if not wait_until(gone, _ENDING_SECONDS):
            left = ", ".join(place.ranks[rank].title for rank in awaited if not place.exchange.has_ended(rank))
            logger.warning("The training is over, and these have not ended by themselves: %s.", left)
        self._pass_on(place)

    def _pass_on(self, place: InRole) -> None:
        for step, metrics in place.exchange.new_evaluations():
            self.evaluated(step, metrics)

    # -- told from inside the call

    def begun(self) -> None:
        """Bring what the training had changed in the program to where it was; the user's hooks have begun."""
        self._changes.restore()

    def trained(self, rows: list[tuple[int, dict[str, float | None]]]) -> None:
        """Report the metrics of steps."""
        if self._in_role is not None:
            self._pass_on(self._in_role)
        if not rows:
            return
        self._step = rows[-1][0]
        self.services.schedule.trained(self._step)
        names = dict.fromkeys(name for _, row in rows for name in row)
        columns = {name: [row.get(name) for _, row in rows] for name in names}
        self.services.reporter.training([step for step, _ in rows], columns)

    def saved(self, step: int) -> None:
        """Keep what the estimator has saved as a checkpoint of the trial."""
        if step == self._kept or (step == self._begun_at and step == 0):
            return  # without a step, there is nothing to go on from
        self._pending = step

    def settled(self) -> None:
        """Keep what was saved: Estimator saves before hooks see the step, whose row is to come first."""
        if self._pending is not None and self._hook is not None:
            step, self._pending = self._pending, None
            self._hook.report()
            self._keep(step)

    def evaluated(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Report an evaluation."""
        self.services.reporter.validation(step, metrics)

    def stop_asked(self) -> bool:
        """Return whether the master, a signal or Ctrl-C asks for an early end."""
        self._stopped = self._stopped or self.services.stop_requested()
        return self._stopped

    # -- the call

    def _place(self) -> Path:
        named = self.call.estimator.model_dir
        ours = self.services.tensorboard
        if self.services.users_process or ours is None:
            if ours is not None and not ours.exists():
                ours.symlink_to(Path(named).absolute(), target_is_directory=True)  # for TensorBoard
            return Path(named)
        searcher = (self.services.environment.config.get("searcher") or {}).get("name", "single")
        folder = model_dir.place(named, ours, Path.cwd(), shared=searcher != "single")
        if folder == ours:
            self.services.add_folder(model_dir.path_of_user(named, Path.cwd()), ours)
        return folder

    def _restore(self, restored: Path | None) -> None:
        files = self.services.files
        if restored is not None:
            model_dir.restore(restored, self._folder)
            if files is not None:
                files.restore(restored)
        elif not self.services.users_process and self._folder == self.services.tensorboard:
            model_dir.clear(self._folder)
        if files is not None:
            files.begin()
        prefix = model_dir.latest(self._folder)
        if prefix is not None:
            self._begun_at = self._step = self._kept = int(prefix.rpartition("-")[2])

    def _train_spec(self) -> Any:
        spec, most = self.call.train_spec, self._most()
        self._hook = hook = StepHook(self, most)
        self.services.count.ask(lambda: hook.seen)
        return spec._replace(
            max_steps=most,
            hooks=(*spec.hooks, self._hook),
            saving_listeners=(*spec.saving_listeners, SavingListener(self)),
        )

    def _eval_spec(self) -> Any:
        spec, most = self.call.eval_spec, self.services.validation_batches
        steps = spec.steps if most is None else min(spec.steps or most, most)
        return spec._replace(
            steps=steps,
            hooks=(*spec.hooks, ActivityHook()),
            exporters=(*self._exporters, EvaluationListener(self.evaluated)),
        )

    def _most(self) -> int | None:
        """Return how many steps there are in all: those of the TrainSpec, fewer where the trial's length says so."""
        length, most = self.services.schedule.periods.length, self.call.train_spec.max_steps
        if length >= UNTOLD.units:
            return None if most is None else int(most)
        return int(length if most is None else min(length, most))

    def _tell_length(self) -> None:
        schedule, most = self.services.schedule, self._most()
        if most is not None:
            schedule.periods = replace(schedule.periods, length=most)

    def _keep(self, step: int) -> None:
        files = self.services.files

        def write(folder: Path) -> None:
            model_dir.keep(self._folder, step, folder)
            self._changes.save(folder)
            if self._exporters and self._in_role is None and not self.services.users_process:
                write_exports(self._results.entries([each.made for each in self._exporters]), folder)
            if files is not None:
                files.save(folder)

        self.services.checkpoints.save(step, write)
        self._kept = step

    def _keep_exports(self) -> None:
        """Have the last checkpoint hold what was exported after it had been taken."""
        if self._in_role is None:
            return  # they were exported before
        prefix = model_dir.latest(self._folder)
        if prefix is not None and self.call.eval_spec.exporters and (self._folder / model_dir.EXPORTS).is_dir():
            self._keep(int(prefix.rpartition("-")[2]))

    def _outcome(self, metrics: Any, exports: Any) -> Outcome:
        most = self._most()
        prefix = model_dir.latest(self._folder)
        done = self._step if prefix is None else int(prefix.rpartition("-")[2])
        if done == 0:
            raise InvalidDataError("The input_fn of the TrainSpec gave no batch; nothing was trained.")
        stopped = self._stopped and (most is None or done < most)
        self.services.schedule.trained(done)
        if not stopped and (most is None or done < most):
            self.services.schedule.progress.ended = True  # by the data's end, or by a hook
        given = None if exports is None else list(exports)[: len(self.call.eval_spec.exporters)]
        return Outcome(done, stopped=stopped, result=(metrics, given), goes_on=not stopped)


class StepHook(tf.estimator.SessionRunHook):  # type: ignore[misc]  # TensorFlow has no types
    """Reads the loss and the scalar summaries of each step of a training.

    Parameters
    ----------
    most : int or None
        Steps of the training.

    Attributes
    ----------
    seen : int
        Steps that the user's hooks have seen.
    """

    def __init__(self, observer: RolesController, most: int | None) -> None:
        self._observer = observer
        self._most = most
        self._rows: list[tuple[int, dict[str, float | None]]] = []
        self._report_at = 0.0
        self._step = 0
        self.seen = 0

    def begin(self) -> None:
        graph = tf.compat.v1.get_default_graph()
        self._counter = tf.compat.v1.train.get_global_step()
        self._fetched = {"step": self._counter, "scalars": scalar_summaries(graph)}

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._step = self.seen = int(session.run(self._counter))
        self._observer.begun()

    def before_run(self, run_context: Any) -> Any:
        self.seen = self._step + 1  # the user's hooks see the step before this one does
        return tf.estimator.SessionRunArgs(self._fetched)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        activity.step()
        # It is read before or after this step counts, as the graph has it; other workers count steps meanwhile.
        step = max(self._step + 1, int(run_values.results["step"]))
        self._step = self.seen = step if self._most is None else min(step, self._most)
        scalars = run_values.results["scalars"]
        check_names(scalars, self._step, "The graph of model_fn()")
        self._rows.append((self._step, {name: scalar(value) for name, value in scalars.items()}))
        if self._observer.stop_asked():
            run_context.request_stop()
        if time.monotonic() >= self._report_at:
            self.report()
        self._observer.settled()

    def end(self, session: Any) -> None:
        self.report()
        self._observer.settled()

    def report(self) -> None:
        """Tell the rows that were not told yet."""
        self._report_at = time.monotonic() + _REPORT_INTERVAL
        rows, self._rows = self._rows, []
        self._observer.trained(rows)


class SavingListener(tf.estimator.CheckpointSaverListener):  # type: ignore[misc]  # TensorFlow has no types
    """Tells of each checkpoint that the estimator saves."""

    def __init__(self, observer: RolesController) -> None:
        self._observer = observer

    def after_save(self, session: Any, global_step_value: int) -> None:
        self._observer.saved(int(global_step_value))
