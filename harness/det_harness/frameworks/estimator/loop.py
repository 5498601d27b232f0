"""The hook inside of Estimator's own training loop, in which the schedule is asked between two batches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf

from det_harness.frameworks.estimator import internals
from det_harness.frameworks.estimator.data import TrainingData
from det_harness.frameworks.estimator.gradients import Gradients
from det_harness.frameworks.estimator.randomness import BatchNumber, replace_random_operations
from det_harness.frameworks.estimator.ranks import Ranks
from det_harness.trial import activity
from det_harness.trial.metrics import check_names, scalar
from det_harness.trial.services import Services
from det_native.errors import DetError

# Rows of training metrics wait at most so long (seconds) before they are reported.
_REPORT_INTERVAL = 0.25


class Training(Protocol):
    """What the hook asks of the controller (an ``EstimatorController``)."""

    services: Services
    data: TrainingData
    ranks: Ranks
    gradients: Gradients
    averages: bool

    def graph_ends(self) -> None:
        """Add to the graph of the training, which is still the default one, what is needed in its session."""

    def session_begins(self, session: Any, saver: Callable[[], Any]) -> None:
        """Take the session of the training, and what returns the saver of its variables."""

    def advance(self) -> bool:
        """Do all that is due before the next batch; returns whether there is one."""

    def stop_asked(self) -> bool:
        """Return whether the user's code, the master or a signal asks for an early end."""

    def evaluation_asked(self) -> bool:
        """Return whether it is time for an evaluation, where they go by time."""

    def evaluate_now(self) -> bool:
        """Evaluate, and do all that is due before the next batch; returns whether there is one."""


class NothingToTrainError(Exception):
    """The training is to end before its first batch; no hook can tell Estimator's loop that but by an exception."""


class TrainingHook(tf.estimator.SessionRunHook):  # type: ignore[misc]  # TensorFlow has no types
    """The last hook of a training: those of the user have seen a batch before the schedule is asked.

    Parameters
    ----------
    spec : tf.estimator.EstimatorSpec
        What the user's ``model_fn`` has returned.
    until : int
        When the schedule is asked first.
    listeners : sequence of tf.estimator.CheckpointSaverListener
        They are told of the begin and the end.

    Attributes
    ----------
    until : int
        When the schedule is asked again.
    stop_wanted : bool
        Whether a hook of this rank has requested a stop, on which the ranks have not agreed yet.
    """

    def __init__(self, training: Training, spec: Any, done: int, until: int, listeners: Sequence[Any] = ()) -> None:
        self.done = self._seen = done
        self.until = until
        training.services.count.ask(lambda: self._seen)
        self._training = training
        self._spec = spec
        self._listeners = listeners
        self._begun = False
        self.stop_wanted = False
        self._rows: list[tuple[int, dict[str, float | None]]] = []
        self._report_at = 0.0

    def begin(self) -> None:
        graph = tf.compat.v1.get_default_graph()
        environment = self._training.services.environment
        self._batch = BatchNumber()
        replace_random_operations(graph, self._batch, environment.trial_seed + environment.ranks.rank)
        for listener in self._listeners:
            listener.begin()
        fetched = {"loss": None, **scalar_summaries(graph)} | {"loss": self._spec.loss}
        # What a rank asks for travels in the step, with the gradients.
        self._asked = tf.compat.v1.placeholder_with_default(tf.zeros(2), (2,))
        wire = self._training.gradients.wire
        names = sorted(fetched) if self._training.averages else []
        given = [self._asked, *(tf.cast(fetched[name], tf.float32) for name in names)]
        # After the gradients: a session with one thread would run the two in another order on each rank.
        with tf.control_dependencies([self._spec.train_op]):
            told, *sums = wire.add_up([tf.identity(value) for value in given], "det_native.told")
        fetched |= {name: value / wire.size for name, value in zip(names, sums, strict=True)}
        self._fetched = fetched, told
        self._training.graph_ends()

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._begun:
            raise DetError(
                "TensorFlow has lost the session of the training, and made another one; the trial is to be restarted "
                "from its last checkpoint."
            )
        self._begun = True
        self._training.data.begin(session)
        self._training.session_begins(session, self._saver)
        if self.until <= self.done and not self._training.advance():
            raise NothingToTrainError

    def before_run(self, run_context: Any) -> Any:
        self._seen = self.done + 1  # the user's hooks see the batch before this one does
        given: dict[Any, Any] = {self._batch.tensor: self.done}
        if self._training.ranks.several:
            given[self._asked] = [self.stop_wanted or self._training.stop_asked(), self._training.evaluation_asked()]
        return tf.estimator.SessionRunArgs(self._fetched, feed_dict=given)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        training = self._training
        activity.step()
        self.done += 1
        self._seen = self.done
        results, told = run_values.results
        check_names(results, self.done, "The graph of model_fn()")
        self._rows.append((self.done, {name: scalar(value) for name, value in results.items()}))
        if training.ranks.several:
            stop, evaluate = bool(told[0]), bool(told[1])
            if run_context.stop_requested:  # by a hook of this rank: the others would wait for its next batch
                internals.withdraw_stop(run_context)
                self.stop_wanted = True
        else:
            stop, evaluate = run_context.stop_requested or training.stop_asked(), training.evaluation_asked()
        if stop:
            training.services.schedule.request_stop()
        if stop or self.done >= self.until:
            training.services.schedule.trained(self.done)
            if not training.advance():
                run_context.request_stop()
        elif evaluate:
            training.services.schedule.trained(self.done)
            if not training.evaluate_now():
                run_context.request_stop()
        elif time.monotonic() >= self._report_at:
            self.report()

    def end(self, session: Any) -> None:
        for listener in self._listeners:
            listener.end(session, self.done)

    def report(self) -> None:
        """Report the rows of the batches that were not reported yet."""
        self._report_at = time.monotonic() + _REPORT_INTERVAL
        rows, self._rows = self._rows, []
        if rows:
            names = dict.fromkeys(name for _, row in rows for name in row)
            columns = {name: [row.get(name) for _, row in rows] for name in names}
            self._training.services.reporter.training([batch for batch, _ in rows], columns)

    def diverged(self) -> None:
        """Report that the loss of the batch after those that are done is not a number."""
        self._rows.append((self.done + 1, {"loss": math.nan}))
        self.report()

    def _saver(self) -> Any:
        saver = self._spec.scaffold.saver
        return saver if saver is not None else tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.SAVERS)[0]


def scalar_summaries(graph: Any) -> dict[str, Any]:
    """Return the values of the scalar summaries of a graph, by their tags; Estimator adds the loss by itself."""
    found: dict[str, Any] = {}
    for summary in tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.SUMMARIES):
        operation = getattr(summary, "op", None)
        if operation is None or operation.type != "ScalarSummary":
            continue
        tag, value = operation.inputs
        name = tf.get_static_value(tag)
        if name is not None and graph.is_fetchable(value):
            found[tf.compat.as_str(name.item())] = value
    if "loss" not in found and "loss_1" in found:  # the user's code has a scalar of that name
        found["loss"] = found["loss_1"]
    found.pop("loss_1", None)
    return found
