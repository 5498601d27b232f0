"""What is put into a call of ``train_and_evaluate()``, in whatever role, to see it: hooks and exporters, all public."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from det_harness.trial import activity
from det_harness.trial.side_metrics import SideMetrics


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
