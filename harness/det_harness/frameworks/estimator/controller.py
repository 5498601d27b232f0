"""Trains an estimator: it keeps its own loop, and a hook in it asks the schedule."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.estimator import internals
from det_harness.frameworks.estimator.checkpoints import EstimatorCheckpoints
from det_harness.frameworks.estimator.data import Input, TrainingData
from det_harness.frameworks.estimator.definition import Definition
from det_harness.frameworks.estimator.evaluation import Evaluations
from det_harness.frameworks.estimator.exports import Exports
from det_harness.frameworks.estimator.gradients import Gradients
from det_harness.frameworks.estimator.loop import NothingToTrainError, TrainingHook
from det_harness.frameworks.estimator.model_files import Events, ModelFiles, link_or_copy
from det_harness.frameworks.estimator.ranks import Ranks, Variables
from det_harness.frameworks.keras.wire import wire_of
from det_harness.trial.divergence import CAUSES
from det_harness.trial.driver import Driver, TrainingPort
from det_harness.trial.schedule import Train
from det_harness.trial.services import Outcome, Services
from det_native.errors import CheckpointError, DivergedError, InvalidDataError, TrialDefinitionError
from det_native.keras.caches.reading import damage_behind
from det_native.keras.context import seed_keras
from det_native.schema.outputs import TEMPORARY_MODEL_DIR
from det_native.tensorboard.place import writing_to

logger = logging.getLogger("det_native")


class EstimatorController(TrainingPort):
    """Runs one trial of an estimator.

    Attributes
    ----------
    averages : bool
        Whether training metrics are reported as means over the ranks.
    """

    validated_by = "the evaluation of the estimator"

    def __init__(self, definition: Definition, services: Services) -> None:
        self.definition = definition
        self.services = services
        self.ranks = Ranks(services.communicator)
        self.driver = Driver(services, self)
        self._hook: TrainingHook | None = None
        self._session: Any = None
        self._variables: Variables | None = None
        self._until = 0
        context = definition.context
        context.use_environment(services.environment)
        context.experimental.metrics.gather = services.communicator.all_gather_object
        said = context.env.config.get("optimizations") or {}
        self.gradients = Gradients(
            wire_of(services.communicator, compress=bool(said.get("gradient_compression"))),
            frequency=int(said.get("aggregation_frequency", 1)),
            average=bool(said.get("average_aggregated_gradients", True)),
        )
        self.averages = self.ranks.several and bool(said.get("average_training_metrics"))
        context.tell_of_optimizers(self.gradients.hook)

    def run(self) -> Outcome:
        """Train to the end."""
        if not self.definition.native and self.definition.train_spec.max_steps is not None:
            logger.warning(
                "The TrainSpec's max_steps=%s has no effect: searcher.max_length of the configuration says how long "
                "the trial trains.",
                self.definition.train_spec.max_steps,
            )
        with tempfile.TemporaryDirectory(prefix="det-estimator-") as folder, self._closing():
            self._model = ModelFiles(Path(folder), self.ranks)
            with (
                self.services.checkpoints.restore() as restored,
                self._weights_of_another(restored) as weights,
                writing_to(self.services.tensorboard),
            ):
                self._estimator = self._rebuilt(weights)
                exports = Exports(self.definition.exporters, self._model.folder)
                self._exports = exports
                self._evaluations = Evaluations(self.definition, self.services, self.ranks, exports, self._is_last)
                self._events = self._events_of_trial()
                self._checkpoints = EstimatorCheckpoints(
                    self.definition, self.services, self.ranks, self._model, exports, self._events
                )
                self._restore(restored)
                if self._events is not None:
                    self._events.open(self.definition.eval_spec.name)
                try:
                    self._train()
                except BaseException:
                    self._broken_off()
                    raise
                finally:
                    self._leave_model_dir()
                self._checkpoints.save_end()
            return self.driver.finish()

    def stop_asked(self) -> bool:
        """Return whether the user's code, the master or a signal asks for an early end."""
        return self.services.stop_requested() or self.definition.context.stop_requested

    def evaluation_asked(self) -> bool:
        """Return whether it is time for an evaluation, where they go by time: on the first rank."""
        return self.ranks.first and self._evaluations.asked()

    def graph_ends(self) -> None:
        """Add to the graph of the training, which is still the default one, what is needed in its session."""
        self.gradients.prepare()
        if self.ranks.several:
            self._variables = Variables(self.ranks)
        if self._events is not None:
            self._events.add_graph(tf.compat.v1.get_default_graph())

    def session_begins(self, session: Any, saver: Any) -> None:
        """Take the session of the training, and what returns the saver of its variables."""
        self._session, self._saver = session, saver
        self._checkpoints.restore_changes()
        self.gradients.begin(session)
        if self._variables is not None:
            self._variables.begin(session, self._checkpoints.own)

    def advance(self) -> bool:
        """Do all that is due before the next batch; returns whether there is one."""
        if self.ranks.agree(self.stop_asked() or (self._hook is not None and self._hook.stop_wanted)):
            self.services.schedule.request_stop()
        return self._goes_on(self.driver.advance())

    def evaluate_now(self) -> bool:
        """Evaluate, and do all that is due before the next batch; returns whether there is one."""
        return self._goes_on(self.driver.advance(self._evaluate()))

    def _goes_on(self, action: Any) -> bool:
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
        yield self._evaluations.metrics(self._evaluate)

    def _evaluate(self) -> dict[str, Any]:
        source = self._input(
            self.definition.eval_spec.input_fn, "The input_fn of the EvalSpec", tf.estimator.ModeKeys.EVAL
        )
        with self._users_error():
            return self._evaluations.make(self._estimator, self._files_of_variables(), source)

    def _is_last(self) -> bool:
        schedule = self.services.schedule
        return schedule.progress.ended or schedule.progress.batches >= schedule.periods.length

    def save(self) -> None:
        """Take a checkpoint of the present state."""
        batch, session = self.services.schedule.progress.batches, self._session
        if self._exports and self._is_last() and not self.services.schedule.stop_requested:
            # What is exported after the last evaluation is to lie in the last checkpoint, which is taken before it.
            self._evaluate()
        listeners = list(self.definition.train_spec.saving_listeners or ()) if self.ranks.first else []
        for listener in listeners:
            listener.before_save(session, batch)
        variables = self._variables
        self._checkpoints.save(
            self._estimator,
            self._files_of_variables(),
            write_data=lambda folder: self.data.save(session, folder, batch),
            gradients=self.gradients.state(session),
            own=lambda: {} if variables is None else variables.save_own(session),
        )
        stops = [bool(listener.after_save(session, batch)) for listener in listeners]
        if self.ranks.agree(any(stops)):
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
            model_dir=str(self._model.folder),
            tf_random_seed=self.services.environment.trial_seed,
            save_checkpoints_secs=None,
            save_checkpoints_steps=None,
            keep_checkpoint_max=1,
        )
        if self.ranks.several:
            config = config.replace(session_config=_on_its_gpu(config.session_config, self.services.environment.ranks))

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

    def _events_of_trial(self) -> Events | None:
        """Return where the first rank's event files go."""
        folder = self.services.tensorboard if self.ranks.first else None
        return None if folder is None else Events(folder, self._model.folder)

    def _leave_model_dir(self) -> None:
        """Have the files of the estimator lie in its ``model_dir``: in the working directory, or a temporary folder."""
        path = Path(self.definition.estimator.config.model_dir or "").absolute()
        files = self.services.files
        if not self.ranks.first or files is None:
            return
        if files.root.absolute() not in path.parents:
            if not self.definition.native or Path(tempfile.gettempdir()) not in path.parents:
                return
            self.services.add_folder(TEMPORARY_MODEL_DIR, path)
        if self._events is not None:
            self._events.flush()
        try:
            self._model.copy_to(path)
            if self.services.tensorboard is not None:
                shutil.copytree(self.services.tensorboard, path, copy_function=link_or_copy, dirs_exist_ok=True)
        except OSError as error:
            logger.warning("The model_dir %s does not have all files of the estimator: %s", path, error)

    def _restore(self, folder: Path | None) -> None:
        source = self._input(
            self.definition.train_spec.input_fn, "The input_fn of the TrainSpec", tf.estimator.ModeKeys.TRAIN
        )
        self._checkpoints.open(folder)
        self.data = TrainingData(source, self._checkpoints.own, self.services.schedule.progress.batches)
        self._checkpoints.restore(folder, self.gradients.restore)

    def _train(self) -> None:
        schedule = self.services.schedule
        # Of a training that continues, all that is due already has its variables in files: it needs no session.
        if self._model.written >= 0 and not self.advance():
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
            if (self._model.written >= 0 or self.services.warm_start is not None) and self._session is None:
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

    def _files_of_variables(self) -> str:
        """Return where the present variables lie in files, which are written first if they do not."""
        return self._model.variables(self._session, lambda: self._saver(), self.services.schedule.progress.batches)

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
            loss = self.gradients.wire.loss_behind(error)
            if loss is not None:
                raise loss from error
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
            for hook in self.definition.run_hooks:
                hook.on_trial_close()


def _on_its_gpu(config: Any, ranks: Any) -> Any:
    """Return the configuration of a session that sees one GPU, where there are several: that of this slot."""
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) < 2:
        return config
    found = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    if config is not None:
        found.CopyFrom(config)
    found.gpu_options.visible_device_list = str(ranks.local_rank % len(gpus))
    return found
