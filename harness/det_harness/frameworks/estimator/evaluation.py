"""Evaluations of an estimator as it is: in a graph and a session of their own, each rank on its share of the data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from det_harness.frameworks.estimator.data import Input
from det_harness.frameworks.estimator.definition import Definition
from det_harness.frameworks.estimator.exports import Exports
from det_harness.frameworks.estimator.ranks import EvaluationHook, Ranks
from det_harness.trial import activity
from det_harness.trial.services import Services


class Evaluations:
    """The evaluations of one run.

    Parameters
    ----------
    exports : Exports
        They see each evaluation, on the first rank.
    is_last : callable
        Whether the training ends with what is done.
    """

    def __init__(
        self, definition: Definition, services: Services, ranks: Ranks, exports: Exports, is_last: Callable[[], bool]
    ) -> None:
        self._definition = definition
        self._services = services
        self._ranks = ranks
        self._exports = exports
        self._is_last = is_last
        self._begun_at = self._saved_at = time.monotonic()
        self._made_at: float | None = None
        self._found: tuple[int, dict[str, Any]] | None = None  # of which batch, and what was found

    def metrics(self, evaluate: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """Return the metrics of the present state; None where it is too early for them. A collective call.

        Parameters
        ----------
        evaluate : callable
            Evaluates, unless that has been done for this batch.
        """
        batch = self._services.schedule.progress.batches
        if self._found is None or self._found[0] != batch:
            if self._definition.throttled and not self._is_last() and self._ranks.firsts(self._is_early):
                return None
            self._found = batch, evaluate()
        return self._found[1]

    def make(self, estimator: Any, prefix: str, source: Input) -> dict[str, Any]:
        """Evaluate, on all ranks, and have the exporters see it."""
        spec, most = self._definition.eval_spec, self._services.validation_batches
        steps = most if spec.steps is None else min(spec.steps, most or spec.steps)
        metrics = self._definition.context.experimental.metrics
        metrics.begin_evaluation()
        counting = _Counting()
        found: dict[str, Any] = estimator.evaluate(
            source.dataset if steps is not None else source.all_of_it,
            steps=steps,
            hooks=[*(spec.hooks or ()), counting, EvaluationHook(self._ranks, metrics.end_evaluation)],
            checkpoint_path=prefix,
            name=spec.name,
        )
        found = self._ranks.merged(found, counting.batches)
        if self._ranks.agree(counting.stop_asked):
            self._services.schedule.request_stop()
        self._made_at = time.monotonic()
        if self._ranks.first:
            self._exports.export(estimator, prefix, found, last=self._is_last())
        self._found = self._services.schedule.progress.batches, found
        return found

    def asked(self) -> bool:
        """Return whether it is time for one, where they come with the saves of a RunConfig that go by time."""
        every = self._definition.evaluates_every
        if every is None or time.monotonic() < self._saved_at + every:
            return False
        self._saved_at = time.monotonic()
        return not self._is_early()

    def _is_early(self) -> bool:
        """Return whether it is too early for another one, by the times of the EvalSpec."""
        spec = self._definition.eval_spec
        wait = spec.start_delay_secs if self._made_at is None else spec.throttle_secs
        since = self._begun_at if self._made_at is None else self._made_at
        return time.monotonic() < since + float(wait)


class _Counting(tf.estimator.SessionRunHook):  # type: ignore[misc]  # TensorFlow has no types
    """Counts the batches of an evaluation, as activity too, and notes whether a hook of the user's asks for a stop.

    It comes after those of the EvalSpec, and before that of TensorFlow's which ends the evaluation.
    """

    def __init__(self) -> None:
        self.batches = 0
        self.stop_asked = False

    def after_run(self, run_context: Any, run_values: Any) -> None:
        activity.step()
        self.batches += 1
        self.stop_asked = self.stop_asked or run_context.stop_requested
