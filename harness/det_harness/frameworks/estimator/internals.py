"""Private attributes of TensorFlow 2.15 and its estimators, which have no public ones for what is asked here."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def warm_start_of(estimator: Any) -> Any:
    """Return what an estimator's variables start from (``warm_start_from``), as a constructor takes it."""
    return estimator._warm_start_settings


def resource_of(iterator: Any) -> Any:
    """Return the tensor of a Dataset's iterator that operations on its state take."""
    return iterator._iterator_resource


def graph_of(dataset: Any) -> Any:
    """Return a tensor of the serialized operations that a Dataset is made of."""
    return dataset._as_serialized_graph()


def is_in_control_flow(operation: Any) -> bool:
    """Return whether an operation lies in a loop or a branch of a graph."""
    return operation._get_control_flow_context() is not None


def replace_input(operation: Any, index: int, tensor: Any) -> None:
    """Give an operation, of a graph that is still being built, another tensor as one of its inputs."""
    operation._update_input(index, tensor)


def withdraw_stop(run_context: Any) -> None:
    """Take back that a hook has requested a stop after this batch: the loop looks after all hooks have been asked."""
    run_context._stop_requested = False


def write_events_to(folder: str, writer: Any) -> None:
    """Have Estimator write the event files of a folder with this writer, whose folder may be another one."""
    tf.compat.v1.summary.FileWriterCache._cache[folder] = writer


def best_of(exporter: Any) -> Any:
    """Return the metrics of what an exporter of the best has exported last; None of another, or before that."""
    return exporter._best_eval_result if getattr(exporter, "_has_exported", False) else None


def set_best(exporter: Any, model_dir: str, metrics: Any) -> None:
    """Have an exporter of the best, in another process, compare with these metrics."""
    exporter._model_dir, exporter._best_eval_result, exporter._has_exported = model_dir, metrics, True
