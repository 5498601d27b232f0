"""Trains an estimator: it keeps its own loop, and a hook in it asks the schedule."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.estimator import internals, saved_models
from det_harness.frameworks.estimator.data import Input, TrainingData
from det_harness.frameworks.estimator.definition import Definition
from det_harness.frameworks.estimator.exports import Exports
from det_harness.frameworks.estimator.loop import NothingToTrainError, TrainingHook
from det_harness.trial import activity, rng, state_files
from det_harness.trial.divergence import CAUSES
from det_harness.trial.driver import Driver, TrainingPort
from det_harness.trial.schedule import Train
from det_harness.trial.services import Outcome, Services
from det_native.errors import (
    CheckpointCorruptError,
    CheckpointError,
    DivergedError,
    InvalidDataError,
    TrialDefinitionError,
)
from det_native.estimator.hooks import RunHook
from det_native.keras.caches.reading import damage_behind
from det_native.keras.context import seed_keras
from det_native.tensorboard.place import writing_to

logger = logging.getLogger("det_native")

_FORMAT = 1
_MODEL = "model.ckpt"


class EstimatorController(TrainingPort):
    """Runs one trial of an estimator.

    Parameters
    ----------
    definition : Definition
        The user's estimator, specs and serving functions.
    services : Services
        Schedule, reports and checkpoints.
    """

    validated_by = "the evaluation of the estimator"

    def __init__(self, definition: Definition, services: Services) -> None:
        self.definition = definition
        self.services = services
        self.driver = Driver(services, self)
        self._hooks = definition.run_hooks
        self._files = services.files
        self._hook: TrainingHook | None = None
        self._session: Any = None
        self._until = 0
        self._begun_at = time.monotonic()
        self._evaluated_at: float | None = None
        self._evaluated: tuple[int, dict[str, Any]] | None = None  # of which batch, and what was found
        self._written = -1  # the batch of which the model's folder has the variables
        definition.context.use_environment(services.environment)
        definition.context.experimental.metrics.gather = services.communicator.all_gather_object

    def run(self) -> Outcome:
        """Train to the end."""
        if not self.definition.native and self.definition.train_spec.max_steps is not None:
            logger.warning(
                "The TrainSpec's max_steps=%s has no effect: searcher.max_length of the configuration says how long "
                "the trial trains.",
                self.definition.train_spec.max_steps,
            )
        with tempfile.TemporaryDirectory(prefix="det-estimator-") as folder, self._closing():
            self._model_dir = Path(folder)
            with (
                self.services.checkpoints.restore() as restored,
                self._weights_of_another(restored) as weights,
                writing_to(self.services.tensorboard),
            ):
                self._estimator = self._rebuilt(weights)
                self._exports = Exports(self.definition.exporters, self._model_dir)
                self._restore(restored)
                try:
                    self._train()
                except BaseException:
                    self._broken_off()
                    raise
            return self.driver.finish()

    def stop_asked(self) -> bool:
        """Return whether the user's code, the master or a signal asks for an early end."""
        return self.services.stop_requested() or self.definition.context.stop_requested

    def session_begins(self, session: Any, saver: Any) -> None:
        """Take the session of the training, and what returns the saver of its variables."""
        self._session, self._saver = session, saver

    def advance(self) -> bool:
        """Do all that is due before the next batch; returns whether there is one."""
        if self.stop_asked():
            self.services.schedule.request_stop()
        action = self.driver.advance()
        if not isinstance(action, Train):
            return False
        self._until = action.until
        if self._hook is not None:
            self._hook.until = action.until
        return True

    # -- for the driver

    def report(self) -> None:
        """Report the training metrics that were not reported yet."""
        if self._hook is not None:
            self._hook.report()

    @contextmanager
    def validation(self) -> Iterator[dict[str, Any] | None]:
        """Evaluate the estimator as it is, in a graph and a session of its own."""
        batch = self.services.schedule.progress.batches
        if self._evaluated is None or self._evaluated[0] != batch:
            if self._is_early():
                yield None
                return
            self._evaluated = batch, self._evaluate()
        yield self._evaluated[1]

    def _evaluate(self) -> dict[str, Any]:
        spec, most = self.definition.eval_spec, self.services.validation_batches
        steps = most if spec.steps is None else min(spec.steps, most or spec.steps)
        source = self._input(spec.input_fn, "The input_fn of the EvalSpec", tf.estimator.ModeKeys.EVAL)
        with self._users_error():
            found: dict[str, Any] = self._estimator.evaluate(
                source.dataset if steps is not None else source.all_of_it,
                steps=steps,
                hooks=[*(spec.hooks or ()), _Counting()],
                checkpoint_path=self._variables(),
                name=spec.name,
            )
        self._evaluated_at = time.monotonic()
        self._exports.export(self._estimator, self._variables(), found, last=self._is_last())
        return found

    def _is_early(self) -> bool:
        """Return whether it is too early for another evaluation, where the EvalSpec's times count."""
        spec = self.definition.eval_spec
        if not self.definition.throttled or self._is_last():
            return False
        wait = spec.start_delay_secs if self._evaluated_at is None else spec.throttle_secs
        since = self._begun_at if self._evaluated_at is None else self._evaluated_at
        return time.monotonic() < since + float(wait)

    def _is_last(self) -> bool:
        schedule = self.services.schedule
        return schedule.progress.ended or schedule.progress.batches >= schedule.periods.length

    def save(self) -> None:
        """Take a checkpoint of the present state."""
        batch = self.services.schedule.progress.batches
        if self._exports and self._is_last() and not self.services.schedule.stop_requested:
            # What is exported after the last evaluation is to lie in the last checkpoint, which is taken before it.
            self._evaluated = batch, self._evaluate()
        listeners = list(self.definition.train_spec.saving_listeners or ())
        for listener in listeners:
            listener.before_save(self._session, batch)

        def write(folder: Path) -> None:
            prefix = self._variables()
            for path in [*self._model_dir.glob(f"{Path(prefix).name}.*"), self._model_dir / "graph.pbtxt"]:
                _link_or_copy(path, folder / path.name)
            tf.compat.v1.train.update_checkpoint_state(str(folder), Path(prefix).name)
            training = {"format": _FORMAT, "progress": self.services.schedule.snapshot()}
            state_files.dump(folder, "training", training)
            self.data.save(self._session, folder, batch)
            rng.save(folder)
            if self._files is not None:
                self._files.save(folder)
            saved_models.export(self._estimator, self.definition.serving, prefix, folder)
            self._exports.save(folder)

        told = [hook for hook in self._hooks if type(hook).on_checkpoint_end is not RunHook.on_checkpoint_end]

        def tell(uuid: str, folder: Path) -> None:
            for hook in told:
                hook.on_checkpoint_end(str(folder))

        self.services.checkpoints.save(batch, write, on_saved=tell if told else None)
        for listener in listeners:
            if listener.after_save(self._session, batch):
                self.services.schedule.request_stop()

    def wait(self) -> None:
        """Block until every checkpoint is published."""
        self.services.checkpoints.wait()

    # -- the training

    @contextmanager
    def _weights_of_another(self, own: Path | None) -> Iterator[str | None]:
        """Give the files of the variables that a trial without a checkpoint begins with, if they are another's."""
        if own is not None or self.services.warm_start is None:
            yield None
            return
        with self.services.warm_start.folder() as folder:
            yield tf.train.latest_checkpoint(str(folder))

    def _rebuilt(self, weights: str | None) -> Any:
        """Return the user's estimator with a folder, a seed and a ``model_fn`` of ours around its own."""
        users = self.definition.estimator
        config = users.config.replace(
            model_dir=str(self._model_dir),
            tf_random_seed=self.services.environment.trial_seed,
            save_checkpoints_secs=None,
            save_checkpoints_steps=None,
            keep_checkpoint_max=1,
        )

        def model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
            # Layers of tf.keras draw the seeds of their weights from where earlier graphs of the process have left it.
            seed_keras(self.services.environment.trial_seed)
            spec = users.model_fn(features, labels, mode, config)
            if mode != tf.estimator.ModeKeys.TRAIN:
                return spec
            self._check_optimizer()
            schedule = self.services.schedule
            listeners = list(self.definition.train_spec.saving_listeners or ())
            self._hook = TrainingHook(self, spec, schedule.progress.batches, self._until, listeners)
            return spec._replace(training_hooks=[*spec.training_hooks, self._hook])

        # Of files that are named, TensorFlow takes the trainable variables, as far as the model has them.
        warm_start_from = weights or internals.warm_start_of(users)
        return tf.estimator.Estimator(model_fn, config=config, warm_start_from=warm_start_from)

    def _check_optimizer(self) -> None:
        context = self.definition.context
        if context.env.managed and not context.wrapped_optimizers:
            raise TrialDefinitionError(
                f"The optimizer of {self.definition.name} is not wrapped: call optimizer = "
                "context.wrap_optimizer(optimizer) right after it is made, and give that to the estimator."
            )

    def _restore(self, folder: Path | None) -> None:
        schedule = self.services.schedule
        source = self._input(
            self.definition.train_spec.input_fn, "The input_fn of the TrainSpec", tf.estimator.ModeKeys.TRAIN
        )
        self.data = TrainingData(source, folder)
        if folder is None:
            if self._files is not None:
                self._files.begin()
            return
        schedule.restore(_progress_of(folder))
        self._written = schedule.progress.batches
        for path in folder.iterdir():
            if path.name.startswith(f"{_MODEL}-") or path.name in ("checkpoint", "graph.pbtxt"):
                shutil.copyfile(path, self._model_dir / path.name)
        if self._files is not None:
            self._files.restore(folder)
            self._files.begin()
        self._exports.restore(folder)
        for hook in self._hooks:
            hook.on_checkpoint_load(str(folder))
        rng.load(folder)

    def _train(self) -> None:
        schedule = self.services.schedule
        # Of a training that continues, all that is due already has its variables in files: it needs no session.
        if self._written >= 0 and not self.advance():
            return
        before = schedule.progress.batches
        try:
            with self._users_error():
                self._estimator.train(self.data, hooks=list(self.definition.train_spec.hooks))
        except NothingToTrainError:
            return
        except tf.estimator.NanLossDuringTrainingError as error:
            assert self._hook is not None
            self._hook.diverged()  # raises, if the configuration ends such trials
            raise DivergedError(
                "The loss became NaN", f", with which tf.estimator ends a training. {CAUSES}", self._hook.done + 1
            ) from error
        except (ValueError, tf.errors.OpError) as error:
            if (self._written >= 0 or self.services.warm_start is not None) and self._session is None:
                raise CheckpointError(
                    f"The checkpoint does not fit the estimator of {self.definition.name}: its variables have changed "
                    f"since. ({str(error).splitlines()[0]})"
                ) from error
            raise
        finally:
            self._session = None
        assert self._hook is not None
        if self._hook.done == before and isinstance(schedule.next(), Train):
            raise InvalidDataError(
                "The input_fn of the TrainSpec returned a Dataset without batches; nothing to train on."
            )

    def _broken_off(self) -> None:
        """Something was raised: report the batches that were done, and tell the schedule how many those are."""
        self.report()
        if self._hook is not None:
            self.services.schedule.trained(self._hook.done)

    def _variables(self) -> str:
        """Return where the present variables lie in files, which are written first if they do not."""
        batch = self.services.schedule.progress.batches
        prefix = self._model_dir / f"{_MODEL}-{batch}"
        if self._written != batch:
            if not (self._model_dir / "graph.pbtxt").exists():
                tf.io.write_graph(self._session.graph, str(self._model_dir), "graph.pbtxt")
            self._saver().save(self._session, str(self._model_dir / _MODEL), global_step=batch)
            self._written = batch
        return str(prefix)

    def _input(self, function: Any, what: str, mode: Any) -> Input:
        users = self.definition.estimator
        arguments = {"mode": mode, "params": users.params, "config": self._estimator.config}
        return Input(function, what, self.definition.context, arguments)

    @contextmanager
    def _users_error(self) -> Iterator[None]:
        """Raise what is behind an error of TensorFlow's: what a reducer has raised, or a damaged cache."""
        metrics = self.definition.context.experimental.metrics
        try:
            yield
        except tf.errors.OpError as error:
            found = metrics.error or damage_behind(error)
            if found is not None:
                raise found from error
            raise

    @contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        finally:
            # Estimator leaves its writers of event files open for whoever writes to the same folder next.
            tf.compat.v1.summary.FileWriterCache.clear()
            for hook in self._hooks:
                hook.on_trial_close()


class _Counting(tf.estimator.SessionRunHook):  # type: ignore[misc]  # TensorFlow has no types
    """Counts the batches of an evaluation as activity."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        activity.step()


def _progress_of(folder: Path) -> dict[str, Any]:
    try:
        training = state_files.load(folder, "training")
    except FileNotFoundError:
        raise CheckpointCorruptError(f"{folder.name} is not a checkpoint of an estimator.") from None
    if training["format"] != _FORMAT:
        raise CheckpointCorruptError(f"{folder.name} has format {training['format']}; this version reads {_FORMAT}.")
    progress: dict[str, Any] = training["progress"]
    return progress


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk, or a file system without links
        shutil.copyfile(source, target)
