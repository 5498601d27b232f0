"""Runs a call of ``train_and_evaluate()`` in a role that does not lead: it is ended when the training is over.

TensorFlow's function may never return in such a role, a parameter server's does not. So it has a thread of its own,
and the process ends without it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.tf_estimator import model_dir
from det_harness.frameworks.tf_estimator.joining import InRole
from det_harness.frameworks.tf_estimator.observing import ActivityHook, EvaluationListener
from det_harness.ranks.exchange import wait_until
from det_harness.trial.services import Outcome, Services
from det_native.estimator.roles.call import UnchangedCall
from det_native.estimator.roles.entry import tensorflows_own

logger = logging.getLogger("det_native")

# For a worker that has not seen the last step yet.
_WORKER_SECONDS = 30.0
_LAST_EVALUATION_SECONDS = 3600.0


class Follower:
    """A worker, a parameter server or the evaluator of a trial."""

    def __init__(self, call: UnchangedCall, services: Services, place: InRole, folder: Path) -> None:
        self._call = call
        self._services = services
        self._place = place
        self._folder = folder
        self._failure: BaseException | None = None
        self._evaluating = threading.Lock()
        self._last = False
        self._evaluated = -1

    def run(self, train_spec: Any) -> Outcome:
        """Do what the role does until it has done it, or the training is over."""
        thread = threading.Thread(target=self._in_thread, args=(train_spec,), name="det-role", daemon=True)
        thread.start()
        exchange, role = self._place.exchange, self._place.role
        wait_until(lambda: not thread.is_alive() or exchange.ending() is not None or self._services.stop_requested())
        if self._failure is None and thread.is_alive() and exchange.ending() == "completed":
            if role.name == "worker":
                wait_until(lambda: not thread.is_alive(), _WORKER_SECONDS)
            elif role.name == "ps":
                wait_until(lambda: exchange.has_ended(0) or self._services.stop_requested())
            else:
                self._evaluate_last(thread)
        if self._failure is not None:
            raise self._failure
        if thread.is_alive():
            logger.info("The training is over: %s ends.", role.title)
        return Outcome(max(self._evaluated, 0), stopped=exchange.ending() is None and self._services.stop_requested())

    def evaluated(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Hand an evaluation to the process that reports."""
        self._evaluated = step
        self._place.exchange.add_evaluation(step, dict(metrics))
        if self._evaluating.locked():
            self._evaluating.release()

    def eval_spec(self) -> Any:
        """Return the EvalSpec with what tells of each evaluation."""
        spec, most = self._call.eval_spec, self._services.validation_batches
        steps = spec.steps if most is None else min(spec.steps or most, most)
        hooks, exporters = (
            (*spec.hooks, ActivityHook(self._begin)),
            (*spec.exporters, EvaluationListener(self.evaluated)),
        )
        return spec._replace(steps=steps, hooks=hooks, exporters=exporters)

    def _in_thread(self, train_spec: Any) -> None:
        try:
            tensorflows_own(self._call.estimator, train_spec, self.eval_spec())
        except BaseException as error:  # noqa: BLE001 (raised again in the main thread)
            self._failure = error

    def _begin(self) -> None:
        """Begin an evaluation; the thread does not begin one any more once the last one is made in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            self._evaluating.acquire()
            if self._last:
                threading.Event().wait()

    def _evaluate_last(self, thread: threading.Thread) -> None:
        """Evaluate the last checkpoint at once: TensorFlow's own evaluator would wait out its ``throttle_secs``."""
        acquired = False

        def begun() -> bool:
            nonlocal acquired
            acquired = self._evaluating.acquire(blocking=False)
            return acquired or not thread.is_alive()  # one that fails in an evaluation does not release it

        wait_until(begun, _LAST_EVALUATION_SECONDS)
        if not acquired:
            return
        self._last = True
        self._evaluating.release()
        prefix = model_dir.latest(self._folder)
        if self._failure is not None or prefix is None or int(prefix.rpartition("-")[2]) <= self._evaluated:
            return
        estimator, spec = self._call.estimator, self.eval_spec()
        metrics = estimator.evaluate(
            spec.input_fn, steps=spec.steps, hooks=list(spec.hooks), checkpoint_path=prefix, name=spec.name
        )
        for exporter in spec.exporters:
            exporter.export(
                estimator=estimator,
                export_path=os.path.join(tf.compat.as_str_any(estimator.model_dir), model_dir.EXPORTS, exporter.name),
                checkpoint_path=prefix,
                eval_result=metrics,
                is_the_final_export=True,
            )
