"""What is put into a call of ``train_and_evaluate()`` to see it: a hook, a listener and an exporter, all public."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import tensorflow as tf

from det_harness.frameworks.estimator.loop import scalar_summaries
from det_harness.trial import activity
from det_harness.trial.metrics import check_names, scalar
from det_harness.trial.side_metrics import SideMetrics

# Rows of training metrics wait at most so long (seconds) before they are reported.
_REPORT_INTERVAL = 0.25


class Observer(Protocol):
    """What is told (a ``RolesController``)."""

    def begun(self) -> None:
        """The hooks of the training have begun, which begin anew after each evaluation."""

    def trained(self, rows: list[tuple[int, dict[str, float | None]]]) -> None:
        """Take the metrics of steps."""

    def saved(self, step: int) -> None:
        """The estimator has saved a checkpoint."""

    def settled(self) -> None:
        """All that belongs to the last step has been told."""

    def stop_asked(self) -> bool:
        """Return whether the training is to end early; asked between two steps."""


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

    def __init__(self, observer: Observer, most: int | None) -> None:
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

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def after_save(self, session: Any, global_step_value: int) -> None:
        self._observer.saved(int(global_step_value))


class EvaluationListener(tf.estimator.Exporter):  # type: ignore[misc]  # TensorFlow has no types
    """Tells of each evaluation: an exporter is given its metrics, and this one exports nothing.

    Parameters
    ----------
    tell : callable
        Takes the step and the metrics.
    """

    name = "det_native"

    def __init__(self, tell: Callable[[int, Mapping[str, Any]], None]) -> None:
        self._tell = tell
        self._side_metrics = SideMetrics()

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> None:
        found = dict(eval_result)
        step = int(found.pop(tf.compat.v1.GraphKeys.GLOBAL_STEP))
        self._tell(step, self._side_metrics.recorded(found, "The evaluation of train_and_evaluate()"))


class WatchedExporter(tf.estimator.Exporter):  # type: ignore[misc]  # TensorFlow has no types
    """An exporter of the user's, of which is noted what it returns.

    Attributes
    ----------
    made
        What it has returned last.
    """

    def __init__(self, exporter: Any) -> None:
        self._exporter = exporter
        self.made: Any = None

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self._exporter.name
        return name

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        self.made = self._exporter.export(
            estimator=estimator,
            export_path=export_path,
            checkpoint_path=checkpoint_path,
            eval_result=eval_result,
            is_the_final_export=is_the_final_export,
        )
        return self.made


class ActivityHook(tf.estimator.SessionRunHook):  # type: ignore[misc]  # TensorFlow has no types
    """Counts the batches of an evaluation as activity.

    Parameters
    ----------
    allowed : callable
        Called before an evaluation; it does not return where there is to be none any more.
    """

    def __init__(self, allowed: Callable[[], None] = lambda: None) -> None:
        self._allowed = allowed

    def begin(self) -> None:
        self._allowed()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        activity.step()
