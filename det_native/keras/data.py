"""What the data of a call of ``fit`` are: their kind, their length, and whether they can be used at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import tensorflow as tf

from det_native.errors import InvalidDataError
from det_native.heap.call import CallSnapshot
from det_native.heap.roots import roots_of_call
from det_native.keras import shuffles
from det_native.keras.generations import NUMBER
from det_native.keras.pipelines import batch_size_of_step, count_elements, steps_up
from det_native.keras.streams import global_state, swapped_state
from det_native.keras.values import elements_of, number_of
from det_native.schema.environment import TrialEnvironment


class Kind(StrEnum):
    """Kinds of data that ``fit`` takes."""

    ARRAYS = "arrays"
    ARRAY_LIKES = "array-likes"
    SPARSE = "sparse or ragged tensors"
    DATASET = "a tf.data.Dataset"
    SEQUENCE = f"a keras.utils.{'PyDataset' if NUMBER > 2 else 'Sequence'}"
    GENERATOR = "a generator"

    @property
    def indexed(self) -> bool:
        """Whether x, y and sample weights come as separate structures of rows, which we batch."""
        return self in {Kind.ARRAYS, Kind.ARRAY_LIKES, Kind.SPARSE}


@dataclass(frozen=True)
class Data:
    """Training or validation data, as given.

    Attributes
    ----------
    x, y, sample_weight
        For indexed kinds the structures of rows (lists of numbers already made arrays), weights only with targets; else
        `x` alone.
    records : int or None
        Rows of indexed data; None for the other kinds.
    """

    kind: Kind
    x: Any
    y: Any = None
    sample_weight: Any = None
    records: int | None = None

    def split(self, fraction: float) -> tuple[Data, Data]:
        """Split off the last `fraction` of the rows, as ``validation_split`` does.

        Raises
        ------
        InvalidDataError
            For data that are not arrays, a fraction outside (0, 1), or when one part would be empty.
        """
        if self.kind is not Kind.ARRAYS or self.records is None:
            raise InvalidDataError(
                f"validation_split works with arrays, not with {self.kind}; give validation_data instead."
            )
        first = math.floor(self.records * (1.0 - fraction))
        if not 0 < first < self.records:
            raise InvalidDataError(
                f"validation_split={fraction} leaves {first} of {self.records} records for training; "
                "both parts need at least one."
            )
        return self._rows(slice(0, first), first), self._rows(slice(first, None), self.records - first)

    def _rows(self, rows: slice, count: int) -> Data:
        def cut(part: Any) -> Any:
            return part.iloc[rows] if hasattr(part, "iloc") else part[rows]

        x, y, weight = (
            None if part is None else tf.nest.map_structure(cut, part) for part in (self.x, self.y, self.sample_weight)
        )
        return Data(self.kind, x, y, weight, count)


def describe(x: Any, y: Any = None, sample_weight: Any = None, *, where: str = "x") -> Data:
    """Find out what kind of data these are, and check them.

    Parameters
    ----------
    x, y, sample_weight
        As given to ``fit``.
    where : str
        What to call `x` in messages (``"x"`` or ``"validation_data"``).

    Raises
    ------
    InvalidDataError
        If no kind fits, y or sample weights are given twice, the lengths differ, or there are no records.
    """
    kind = _whole_kind(x)
    if kind is not None:
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise InvalidDataError(
                    f"{name} cannot be given when {where} is {kind}, which yields (inputs, targets[, sample weights])."
                )
        return Data(kind, x)
    if x is None:
        raise InvalidDataError(f"fit() needs training data: {where} is None.")
    x, y, sample_weight = (None if part is None else _from_lists(part) for part in (x, y, sample_weight))
    if y is None:
        sample_weight = None  # as in Keras, which weights losses of targets
    kind = _rows_kind([leaf for part in (x, y) if part is not None for leaf in tf.nest.flatten(part)], where)
    return Data(kind, x, y, sample_weight, _records(x, y, sample_weight, where))


def describe_validation(data: Any) -> Data | None:
    """Describe the ``validation_data`` of ``fit``; None if there is none."""
    if data is None:
        return None
    if _whole_kind(data) is None and isinstance(data, tuple | list):
        if not 1 <= len(data) <= 3:
            raise InvalidDataError(f"validation_data has {len(data)} parts; give (x, y) or (x, y, sample_weight).")
        return describe(*data, where="validation_data")
    return describe(data, where="validation_data")


def check_shards(data: Data | None, environment: TrialEnvironment, what: str) -> None:
    """Refuse data of which a process of the trial would have nothing.

    Raises
    ------
    InvalidDataError
        If a Sequence has fewer batches, or arrays have fewer records, than there are processes.
    """
    slots = 1 if environment.native_parallel else environment.slots
    shards = max(slots, environment.ranks.size)
    if data is None or shards == 1:
        return
    length, unit = (len(data.x), "batch") if data.kind is Kind.SEQUENCE else (data.records, "record")
    if length is not None and length < shards:
        plural = "es" if unit == "batch" else "s"
        raise InvalidDataError(
            f"{what} have {length} {unit}{plural if length != 1 else ''}, fewer than resources.slots_per_trial: "
            f"{shards}, whose processes each read their own. Lower the slots, or give more data."
        )


def dataset_batch_size(dataset: Any) -> int | None:
    """Return the records per batch of a batched Dataset, None if it is not batched.

    The element's static shape tells it, or the ``batch()`` call found up the chain. Only a Dataset that tells it in
    neither way (batches made by a function of the user's) has its first element read.
    """
    specification = tf.nest.flatten(dataset.element_spec)
    shape = getattr(specification[0], "shape", None) if specification else None
    if shape is None or shape.rank == 0:
        return None
    if shape.rank is not None and shape[0] is not None:
        return int(shape[0])
    for step in steps_up(dataset):
        size = batch_size_of_step(step)
        if size is not None:
            return size
    with unread(dataset):
        return next((int(tf.nest.flatten(element)[0].shape[0]) for element in elements_of(dataset.take(1))), None)


def count_batches(dataset: Any, announce: Callable[[str], None]) -> int | None:
    """Return the elements of a Dataset, by reading it once where it does not say; None if it has no end."""
    cardinality = number_of(dataset.cardinality())
    if cardinality == tf.data.INFINITE_CARDINALITY:
        return None
    if cardinality == tf.data.UNKNOWN_CARDINALITY:
        announce(
            "The length of the training Dataset is unknown: reading it once to count its batches. "
            "Pass steps_per_epoch to fit() to save this."
        )
        with unread(dataset):
            cardinality = number_of(count_elements(dataset))
    if cardinality == 0:
        raise InvalidDataError("The training Dataset has no batches.")
    return cardinality


@contextmanager
def unread(dataset: Any) -> Iterator[None]:
    """Have a Dataset, and what its Python code has changed, be as before a block that reads it."""
    drawn, program = shuffles.places(dataset), CallSnapshot(*roots_of_call(), keep_small=True)
    with swapped_state(global_state()):
        yield
    program.undo()
    shuffles.put_places(dataset, drawn)


def _whole_kind(x: Any) -> Kind | None:
    if isinstance(x, tf.keras.utils.Sequence):
        return Kind.SEQUENCE
    if isinstance(x, tf.data.Dataset):
        return Kind.DATASET
    if hasattr(x, "__next__") and hasattr(x, "__iter__"):
        return Kind.GENERATOR
    return None


def _from_lists(part: Any) -> Any:
    """Make one array of nested lists of numbers, as Keras does; keep lists of arrays (several inputs) as they are."""
    leaves = tf.nest.flatten(part)
    if isinstance(part, list | tuple) and leaves and all(isinstance(leaf, int | float | str) for leaf in leaves):
        return np.array(part)
    return part


def _rows_kind(leaves: list[Any], where: str) -> Kind:
    if leaves and all(_is_array(leaf) for leaf in leaves):
        return Kind.ARRAYS
    if any(_is_sparse(leaf) for leaf in leaves):
        return Kind.SPARSE
    if leaves and all(
        all(hasattr(leaf, name) for name in ("__getitem__", "__len__", "shape", "dtype")) for leaf in leaves
    ):
        return Kind.ARRAY_LIKES
    found = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "nothing"
    raise InvalidDataError(
        f"{where} is made of {found}; fit() takes arrays (or lists and dictionaries of them), a tf.data.Dataset, "
        f"{Kind.SEQUENCE} or a generator."
    )


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | tf.Tensor | tf.Variable) or is_of_pandas(leaf)


def is_of_pandas(leaf: Any) -> bool:
    """Whether it is a table or a column of pandas, whose public classes are in ``pandas`` itself since version 3."""
    return type(leaf).__module__.partition(".")[0] == "pandas"


def _is_sparse(leaf: Any) -> bool:
    return isinstance(leaf, tf.SparseTensor | tf.RaggedTensor) or type(leaf).__module__.startswith("scipy.sparse")


def _length(leaf: Any) -> int | None:
    if isinstance(leaf, tf.RaggedTensor):
        return int(leaf.nrows())
    return int(leaf.shape[0]) if len(leaf.shape) else None


def _records(x: Any, y: Any, sample_weight: Any, where: str) -> int:
    lengths: dict[str, set[int | None]] = {}
    for name, part in (("x", x), ("y", y), ("sample_weight", sample_weight)):
        if part is not None:
            lengths[name] = {_length(leaf) for leaf in tf.nest.flatten(part) if leaf is not None}
    found = {length for several in lengths.values() for length in several}
    place = "" if where == "x" else f" of {where}"
    if None in found:
        raise InvalidDataError(f"x{place} holds a single number where rows are expected.")
    if len(found) > 1:
        said = "; ".join(f"{name} has {sorted(several, key=str)}" for name, several in lengths.items())
        raise InvalidDataError(f"The lengths{place} differ: {said.replace('[', '').replace(']', '')} records.")
    records = found.pop() if found else 0
    if not records:
        raise InvalidDataError(f"x{place} has no records.")
    return records
