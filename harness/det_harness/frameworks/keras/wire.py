"""What is added up over ranks: gradients and counts inside a training step, and the sums of metrics."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from det_harness.ranks import horovod_group
from det_harness.ranks.communicator import Communicator, lost
from det_harness.ranks.ring_communicator import RingCommunicator, in_words
from det_native.errors import DetError

logger = logging.getLogger("det_native")

# What is added up as it is; other numbers (bfloat16) travel as float32.
_AS_IT_IS = (tf.float16, tf.float32, tf.float64)


class Wire(Protocol):
    """Connects the ranks of a trial."""

    size: int

    def add_up(self, values: Sequence[Any], name: str) -> list[Any]:
        """Return the sums of tensors over the ranks: operations of the step that is being made.

        Parameters
        ----------
        name : str
            The same on every rank, and used once in a step.
        """

    def loss_behind(self, error: Exception) -> Exception | None:
        """Return what is behind an error of a step in which the exchange has failed; None if it has not."""


class NoWire(Wire):
    """One rank: a sum over it is the value."""

    size = 1

    def add_up(self, values: Sequence[Any], name: str) -> list[Any]:
        """Return the values."""
        return list(values)

    def loss_behind(self, error: Exception) -> Exception | None:
        """Return None."""
        return None


class HorovodWire(Wire):
    """Horovod, which ``ranks.horovod_group`` has started.

    Parameters
    ----------
    compress : bool
        Whether numbers travel in half precision (``optimizations.gradient_compression``).
    """

    def __init__(self, size: int, *, compress: bool = False) -> None:
        import horovod.tensorflow

        self.size = size
        self._horovod: Any = horovod.tensorflow
        self._compress = compress

    def add_up(self, values: Sequence[Any], name: str) -> list[Any]:
        """Return the sums over the ranks; of slices, all of them one behind the other."""
        return [self._added_up(value, f"{name}.{index}") for index, value in enumerate(values)]

    def loss_behind(self, error: Exception) -> Exception | None:
        """Return the error that says that a rank is gone, if Horovod says so."""
        return lost(error) if "Horovod" in str(error) else None

    def _added_up(self, value: Any, name: str) -> Any:
        if isinstance(value, tf.IndexedSlices):
            indices = self._horovod.allgather(value.indices, name=f"{name}.indices", ignore_name_scope=True)
            sent = _sent(value.values, self._compress)
            rows = self._horovod.allgather(sent, name=f"{name}.values", ignore_name_scope=True)
            return tf.IndexedSlices(tf.cast(rows, value.dtype), indices, value.dense_shape)
        sent = _sent(value, self._compress)
        found = self._horovod.allreduce(sent, op=self._horovod.Sum, name=name, ignore_name_scope=True)
        return tf.cast(found, value.dtype)


class RingWire(Wire):
    """The connections of the ranks themselves: one exchange for all values of a call, through the host's memory.

    Parameters
    ----------
    compress : bool
        Whether numbers travel in half precision (``optimizations.gradient_compression``).
    """

    def __init__(self, communicator: RingCommunicator, *, compress: bool = False) -> None:
        self.size = communicator.size
        self._ring = communicator.ring
        self._compress = compress
        self._error: Exception | None = None
        self._last: Any = None

    def add_up(self, values: Sequence[Any], name: str) -> list[Any]:
        """Return the sums over the ranks; of slices, all of them one behind the other."""
        is_sparse = [isinstance(value, tf.IndexedSlices) for value in values]
        given: list[Any] = []
        for value, sparse in zip(values, is_sparse, strict=True):
            given.append(_sent(value.values if sparse else value, self._compress))
            given += [value.indices] if sparse else []

        def exchange(*arrays: Any) -> list[Any]:
            try:
                with in_words():
                    return self._exchanged(list(arrays), is_sparse, name)
            except DetError as error:  # TensorFlow makes a text of it
                self._error = error
                raise

        with tf.device("CPU:0"), tf.control_dependencies(self._before()):
            tensors = tf.nest.flatten(tf.numpy_function(exchange, given, [tensor.dtype for tensor in given]))
        self._last = None if tf.executing_eagerly() else tensors[0]
        received = iter(tensors)
        found: list[Any] = []
        for value, sparse in zip(values, is_sparse, strict=True):
            tensor = tf.cast(next(received), value.dtype)
            if sparse:
                tensor.set_shape([None, *value.values.shape[1:]])
                indices = next(received)
                indices.set_shape([None])
                found.append(tf.IndexedSlices(tensor, indices, value.dense_shape))
            else:
                tensor.set_shape(value.shape)
                found.append(tensor)
        return found

    def _before(self) -> list[Any]:
        """Return what an exchange comes after, where a graph may have it so: each blocks a thread of TensorFlow's."""
        graph, last = tf.compat.v1.get_default_graph(), self._last
        if tf.executing_eagerly() or last is None or last.graph is not graph:
            return []
        return [last] if last.op._control_flow_context is graph._get_control_flow_context() else []

    def loss_behind(self, error: Exception) -> Exception | None:
        """Return the error with which the exchange has failed."""
        return self._error

    def _exchanged(self, arrays: list[Any], is_sparse: Sequence[bool], name: str) -> list[Any]:
        """Return sums of arrays, and for each pair of rows and their indices those of all ranks."""
        places: dict[Any, list[int]] = {}
        pairs: list[int] = []
        place = 0
        for sparse in is_sparse:
            if sparse:
                pairs.append(place)
            else:
                places.setdefault(arrays[place].dtype, []).append(place)
            place += 2 if sparse else 1
        found = list(arrays)
        for kind, of_kind in places.items():
            flat = np.concatenate([arrays[each].reshape(-1) for each in of_kind])
            self._ring.add_up(f"{name} ({kind})", flat)
            ends = np.cumsum([arrays[each].size for each in of_kind])
            for each, part in zip(of_kind, np.split(flat, ends[:-1]), strict=True):
                found[each] = part.reshape(arrays[each].shape)
        for pair in pairs:
            for each in (pair, pair + 1):
                parts = self._ring.all_gather(f"{name} (rows {each})", arrays[each].tobytes())
                rows = np.frombuffer(b"".join(parts), arrays[each].dtype)
                found[each] = rows.reshape(-1, *arrays[each].shape[1:])
        return found


def wire_of(communicator: Communicator, *, compress: bool) -> Wire:
    """Return what connects the training steps of the ranks."""
    if communicator.size == 1:
        return NoWire()
    if horovod_group.is_started("tensorflow"):
        return HorovodWire(communicator.size, compress=compress)
    assert isinstance(communicator, RingCommunicator)
    if communicator.rank == 0 and tf.config.list_physical_devices("GPU"):
        logger.warning(
            "The gradients of the %d slots go through the host's memory. They go from GPU to GPU where Horovod "
            "is built with NCCL: HOROVOD_GPU_OPERATIONS=NCCL sh tools/horovod.sh.",
            communicator.size,
        )
    return RingWire(communicator, compress=compress)


def _sent(value: Any, compress: bool) -> Any:
    if compress and value.dtype.is_floating:
        return tf.cast(value, tf.float16)
    return value if value.dtype in _AS_IT_IS else tf.cast(value, tf.float32)


def is_number(variable: Any) -> bool:
    """Return whether a variable can be added up over ranks."""
    kind = tf.as_dtype(variable.dtype).base_dtype
    return bool(kind.is_floating or kind.is_integer or kind.is_bool)


def added_up(variable: Any, values: Sequence[Any]) -> Any:
    """Return what a metric's variable has over all ranks, as TensorFlow's own strategies put it together."""
    how = getattr(variable.aggregation, "name", variable.aggregation).lower()  # of Keras 3 it is a text
    if how == "only_first_replica":
        return values[0]
    added = np.sum(values, axis=0, dtype=np.asarray(values[0]).dtype)
    return added / len(values) if how == "mean" else added
