"""What is added up over ranks: gradients and counts inside a training step, by Horovod, and the sums of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

# What Horovod adds up as it is; other numbers (bfloat16) travel as float32.
_AS_IT_IS = (tf.float16, tf.float32, tf.float64)


class Wire(Protocol):
    """Connects the ranks of a trial.

    Attributes
    ----------
    size : int
        How many there are.
    """

    size: int

    def add_up(self, value: Any, name: str) -> Any:
        """Return the sum of a tensor over the ranks: an operation of the step that is being made.

        Parameters
        ----------
        value : tf.Tensor or tf.IndexedSlices
        name : str
            The same on every rank, and used once in a step.
        """


class NoWire(Wire):
    """One rank: a sum over it is the value."""

    size = 1

    def add_up(self, value: Any, name: str) -> Any:
        """Return the value."""
        return value


class HorovodWire(Wire):
    """Horovod, which ``ranks.horovod_group`` has started.

    Parameters
    ----------
    size : int
    compress : bool
        Whether numbers travel in half precision (``optimizations.gradient_compression``).
    """

    def __init__(self, size: int, *, compress: bool = False) -> None:
        import horovod.tensorflow

        self.size = size
        self._horovod: Any = horovod.tensorflow
        self._compress = compress

    def add_up(self, value: Any, name: str) -> Any:
        """Return the sum over the ranks; of slices, all of them one behind the other."""
        if isinstance(value, tf.IndexedSlices):
            indices = self._horovod.allgather(value.indices, name=f"{name}.indices", ignore_name_scope=True)
            sent = self._packed(value.values)
            rows = self._horovod.allgather(sent, name=f"{name}.values", ignore_name_scope=True)
            return tf.IndexedSlices(tf.cast(rows, value.dtype), indices, value.dense_shape)
        sent = self._packed(value)
        found = self._horovod.allreduce(sent, op=self._horovod.Sum, name=name, ignore_name_scope=True)
        return tf.cast(found, value.dtype)

    def _packed(self, value: Any) -> Any:
        if self._compress and value.dtype.is_floating:
            return tf.cast(value, tf.float16)
        return value if value.dtype in _AS_IT_IS else tf.cast(value, tf.float32)


def is_number(variable: Any) -> bool:
    """Return whether a variable can be added up over ranks."""
    kind = variable.dtype.base_dtype
    return bool(kind.is_floating or kind.is_integer or kind.is_bool)


def added_up(variable: Any, values: Sequence[Any]) -> Any:
    """Return what a metric's variable has over all ranks, as TensorFlow's own strategies put it together."""
    if variable.aggregation == tf.VariableAggregation.ONLY_FIRST_REPLICA:
        return values[0]
    added = np.sum(values, axis=0, dtype=np.asarray(values[0]).dtype)
    return added / len(values) if variable.aggregation == tf.VariableAggregation.MEAN else added
