"""Ranks connected by Horovod, through its part for PyTorch or the one for TensorFlow; the other is not imported.

Horovod itself says in the output which ranks wait for which; nothing here notices a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from det_harness.ranks.communicator import Communicator, lost
from det_harness.ranks.signed import packed, unpacked

Library = Literal["torch", "tensorflow"]
Array = NDArray[Any]

# A name is used again when the operation that had it is long over: Horovod keeps what it knows of each.
_NAMES = 64


class Arrays(Protocol):
    """What is needed of one of Horovod's parts: its operations on arrays.

    Attributes
    ----------
    failures : tuple of type
        What an operation raises when a rank is gone.
    """

    failures: tuple[type[Exception], ...]

    def gather(self, array: Array, name: str) -> Array:
        """Return the arrays of all ranks one behind the other; they may be of different lengths."""

    def broadcast(self, array: Array, name: str) -> Array:
        """Return the array of rank 0; those of the others have its form."""

    def add_up(self, array: Array, name: str) -> Callable[[], Array]:
        """Begin to add up the arrays of all ranks; what is returned waits for the sum."""


class HorovodCommunicator(Communicator):
    """The ranks of a trial in which Horovod has begun.

    Parameters
    ----------
    arrays : Arrays
    rank, size : int
    secret : bytes
    name : str
        What the names of its operations begin with.
    """

    def __init__(self, arrays: Arrays, rank: int, size: int, secret: bytes, name: str = "det_native.ranks") -> None:
        self.rank, self.size = rank, size
        self._arrays = arrays
        self._secret = secret
        self._prefix = name
        self._calls = self._groups = 0

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the values of all ranks, by rank, on every rank.

        Raises
        ------
        RankLostError
            If another rank is gone.
        """
        own = np.frombuffer(packed(value, self._secret), np.uint8)
        lengths = self._run(self._arrays.gather, np.array([own.size], np.int64))
        parts = np.split(self._run(self._arrays.gather, own), np.cumsum(lengths)[:-1])
        return [unpacked(part.tobytes(), self._secret) for part in parts]

    def gather_object(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks, by rank, on the first rank, and None on the others.

        Horovod has no such operation: all ranks get all values.

        Raises
        ------
        RankLostError
            If another rank is gone.
        """
        gathered = self.all_gather_object(value)
        return gathered if self.rank == 0 else None

    def broadcast_object(self, value: Any) -> Any:
        """Return the first rank's value, on every rank; what the others give is not sent.

        Raises
        ------
        RankLostError
            If another rank is gone.
        """
        own = np.frombuffer(packed(value if self.rank == 0 else None, self._secret), np.uint8)
        length = self._run(self._arrays.broadcast, np.array([own.size], np.int64))
        given = own if self.rank == 0 else np.zeros(int(length[0]), np.uint8)
        sent = self._run(self._arrays.broadcast, given)
        return value if self.rank == 0 else unpacked(sent.tobytes(), self._secret)

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        """Begin to find out which flags are set on any rank; what is returned waits for the answer.

        Raises
        ------
        RankLostError
            If another rank is gone.
        """
        added_up = self._run(self._arrays.add_up, np.array(flags, np.int32))

        def answer() -> list[bool]:
            return [bool(count) for count in self._translated(added_up)]

        return answer

    def barrier(self) -> None:
        """Return once every rank has called it.

        Raises
        ------
        RankLostError
            If another rank is gone.
        """
        self.all_reduce_any(True)()

    def monitored(self, work: Any, *, on_gpu: bool = False) -> Any:
        """Return the handle as it is."""
        return work

    def new_group(self) -> HorovodCommunicator:
        """Return another communicator of the same ranks, for calls of another thread meanwhile."""
        self._groups += 1
        name = f"{self._prefix}.{self._groups}"
        return HorovodCommunicator(self._arrays, self.rank, self.size, self._secret, name)

    def _run(self, operation: Callable[[Array, str], Any], array: Array) -> Any:
        self._calls += 1
        name = f"{self._prefix}/{self._calls % _NAMES}"
        return self._translated(lambda: operation(array, name))

    def _translated(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._arrays.failures as error:
            raise lost(error) from error


def arrays_of(library: Library) -> Arrays:
    """Return the operations of one of Horovod's parts, which is imported here."""
    return _OfTorch() if library == "torch" else _OfTensorFlow()


class _OfTorch(Arrays):
    failures = (RuntimeError,)

    def __init__(self) -> None:
        import horovod.torch
        import torch

        self._horovod: Any = horovod.torch
        self._torch = torch

    def gather(self, array: Array, name: str) -> Array:
        gathered: Array = self._horovod.allgather(self._tensor(array), name=name).numpy()
        return gathered

    def broadcast(self, array: Array, name: str) -> Array:
        sent: Array = self._horovod.broadcast(self._tensor(array), 0, name=name).numpy()
        return sent

    def add_up(self, array: Array, name: str) -> Callable[[], Array]:
        horovod = self._horovod
        handle = horovod.allreduce_async(self._tensor(array), op=horovod.Sum, name=name)
        return lambda: horovod.synchronize(handle).numpy()

    def _tensor(self, array: Array) -> Any:
        return self._torch.from_numpy(np.array(array))  # a copy: it has to be writable


class _OfTensorFlow(Arrays):
    """Each operation in a graph and a session of its own: they are there too where eager execution is switched off.

    Nor would eager ones do: TensorFlow keeps the kernel of such an operation, with the name that it had in the first
    call, and two threads would send under one name.
    """

    def __init__(self) -> None:
        import horovod.tensorflow
        import tensorflow as tf

        self._horovod: Any = horovod.tensorflow
        self._tf = tf
        self._made: dict[str, Callable[[Any], Any]] = {}
        self.failures = (tf.errors.OpError, RuntimeError)

    def gather(self, array: Array, name: str) -> Array:
        return self._run("allgather", array, name)

    def broadcast(self, array: Array, name: str) -> Array:
        return self._run("broadcast", array, name, root_rank=0)

    def add_up(self, array: Array, name: str) -> Callable[[], Array]:
        sent = self._run("allreduce", array, name, op=self._horovod.Sum)
        return lambda: sent  # TensorFlow has waited already

    def _run(self, operation: str, array: Array, name: str, **options: Any) -> Array:
        name = f"{name.partition('/')[0]}.{operation}.{array.dtype}"
        call = self._made.get(name)
        if call is None:
            call = self._made[name] = self._make(operation, array, {"name": name, **options})
        found: Array = call(array)
        return found

    def _make(self, operation: str, array: Array, options: dict[str, Any]) -> Callable[[Any], Any]:
        v1 = self._tf.compat.v1
        with self._tf.Graph().as_default() as graph, self._tf.device("CPU:0"):
            given = v1.placeholder(array.dtype, [None])
            answer = getattr(self._horovod, operation)(given, **options)
        # A GPU is left to the sessions of the training, with the options that those have.
        call: Callable[[Any], Any] = v1.Session(
            graph=graph, config=v1.ConfigProto(device_count={"GPU": 0}, use_per_session_threads=False)
        ).make_callable(answer, [given])
        return call
