"""Elements of a Dataset as records: their structure as JSON, and TensorFlow operations that write and read them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from det_native.errors import InvalidDataError

_NOT_WRITTEN = (tf.variant, tf.resource)


def structure_of(spec: Any, where: str) -> dict[str, Any]:
    """Return the structure of a Dataset's elements as plain data, for JSON.

    Parameters
    ----------
    spec
        The Dataset's ``element_spec``.
    where : str
        What to call the Dataset in messages.

    Raises
    ------
    InvalidDataError
        If a part is no dense tensor, or lies in something else than tuples and dictionaries.
    """
    if isinstance(spec, tf.TensorSpec) and spec.dtype not in _NOT_WRITTEN:
        shape = None if spec.shape.rank is None else spec.shape.as_list()
        return {"dtype": spec.dtype.name, "shape": shape}
    if isinstance(spec, dict) and all(isinstance(key, str) for key in spec):
        return {"dict": {key: structure_of(part, where) for key, part in spec.items()}}
    if type(spec) is tuple:
        return {"tuple": [structure_of(part, where) for part in spec]}
    raise InvalidDataError(
        f"{where} has elements with {_named(spec)}: what can be cached are dense tensors, in tuples and in "
        "dictionaries with text as keys. Convert them before, with dataset.map(): a ragged tensor by to_tensor(), a "
        "sparse one by tf.sparse.to_dense()."
    )


def spec_of(structure: dict[str, Any]) -> Any:
    """Return the ``element_spec`` of which :func:`structure_of` made plain data."""
    if "tuple" in structure:
        return tuple(spec_of(part) for part in structure["tuple"])
    if "dict" in structure:
        return {key: spec_of(part) for key, part in structure["dict"].items()}
    return tf.TensorSpec(structure["shape"], tf.as_dtype(structure["dtype"]))


def to_record(*element: Any) -> Any:
    """Return one element as a text tensor."""
    leaves = [tf.io.serialize_tensor(leaf) for leaf in tf.nest.flatten(element)]
    return tf.io.serialize_tensor(tf.stack(leaves))


def from_record(record: Any, spec: Any) -> Any:
    """Return the element of such a tensor."""
    parts = tf.io.parse_tensor(record, tf.string)
    leaves = [
        tf.ensure_shape(tf.io.parse_tensor(parts[number], leaf.dtype), leaf.shape)
        for number, leaf in enumerate(tf.nest.flatten(spec))
    ]
    return tf.nest.pack_sequence_as(spec, leaves)


def _named(spec: Any) -> str:
    dtype = getattr(spec, "dtype", None)
    if isinstance(spec, tf.TensorSpec) and dtype is not None:
        return f"a tensor of {dtype.name}"
    return f"a {type(spec).__name__.removesuffix('Spec')}"
