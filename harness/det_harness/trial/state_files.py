"""State of users' objects in a checkpoint: plain containers and arrays as JSON and npz, the rest by cloudpickle.

A state ``name`` becomes ``name.json``, ``name.npz`` if there are arrays or tensors in it, and ``name.pkl`` only if
there is anything else. The pickle is opened by the harness of the same experiment, never by the master.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from det_native.errors import TrialDefinitionError

_ARRAY_KINDS = frozenset("biufcSU")


def dump(
    folder: Path, name: str, value: Any, title: Callable[[tuple[Any, ...]], str] = "Something in the state, {},".format
) -> None:
    """Write `value` under `name` into a folder.

    Parameters
    ----------
    title : callable
        Says for the keys that lead to a part of the value what the user calls it, as the beginning of a sentence.

    Raises
    ------
    TrialDefinitionError
        If a part cannot be pickled.
    """
    writer = _Writer()
    tree = writer.encode(value, ())
    (folder / f"{name}.json").write_text(json.dumps(tree, allow_nan=False), encoding="utf-8")
    if writer.arrays:
        np.savez(folder / f"{name}.npz", **{str(index): array for index, array in enumerate(writer.arrays)})
    if writer.objects:
        (folder / f"{name}.pkl").write_bytes(_pickled(writer.objects, writer.paths, title))


def load(folder: Path, name: str) -> Any:
    """Read what :func:`dump` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such state.
    """
    tree = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    arrays: dict[str, Any] = {}
    if (folder / f"{name}.npz").exists():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    objects: list[Any] = []
    if (folder / f"{name}.pkl").exists():
        import cloudpickle

        objects = cloudpickle.loads((folder / f"{name}.pkl").read_bytes())
    return _decode(tree, arrays, objects)


def _pickled(objects: list[Any], paths: list[tuple[Any, ...]], title: Callable[[tuple[Any, ...]], str]) -> bytes:
    import cloudpickle

    try:
        content: bytes = cloudpickle.dumps(objects)
    except Exception:
        for one, path in zip(objects, paths, strict=True):  # which of them is it?
            try:
                cloudpickle.dumps(one)
            except Exception as error:
                raise TrialDefinitionError(
                    f"{title(path)} is a {type(one).__name__}, which cannot be kept in a checkpoint ({error}): keep "
                    "there what it can be made of (numbers, text, arrays, tensors, objects that can be pickled), and "
                    "make it again where the program begins."
                ) from error
        raise
    return content


class _Writer:
    """Turns a value into a JSON tree; what JSON lacks becomes ``{"<tag>": ...}``, and moves to arrays and objects.

    Attributes
    ----------
    paths : list of tuple
        The keys that lead to each of the objects.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.objects: list[Any] = []
        self.paths: list[tuple[Any, ...]] = []

    def encode(self, value: Any, path: tuple[Any, ...]) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"<float>": repr(value)}
        if kind is list:
            return self._each(value, path)
        if kind is tuple:
            return {"<tuple>": self._each(value, path)}
        if kind is dict:
            return self._dictionary(value, path)
        if kind is bytes:
            return {"<bytes>": base64.b64encode(value).decode()}
        return self._array(value) or self._object(value, path)

    def _each(self, values: Sequence[Any], path: tuple[Any, ...]) -> list[Any]:
        return [self.encode(part, (*path, index)) for index, part in enumerate(values)]

    def _dictionary(self, value: dict[Any, Any], path: tuple[Any, ...]) -> Any:
        if all(type(key) is str and not key.startswith("<") for key in value):
            return {key: self.encode(part, (*path, key)) for key, part in value.items()}
        return {"<dict>": [[self.encode(key, path), self.encode(part, (*path, key))] for key, part in value.items()]}

    def _array(self, value: Any) -> Any:
        if type(value) is np.ndarray and value.dtype.kind in _ARRAY_KINDS:
            return self._stored("<array>", value)
        if isinstance(value, np.generic) and value.dtype.kind in _ARRAY_KINDS:
            return self._stored("<scalar>", np.asarray(value))
        torch = sys.modules.get("torch")
        if torch is not None and type(value) is torch.Tensor and not value.requires_grad:
            return self._tensor(value, torch)
        return None

    def _tensor(self, value: Any, torch: Any) -> Any:
        if value.layout is not torch.strided or value.is_quantized:
            return None
        try:
            array = value.detach().cpu().clone().numpy()  # a copy: memory that numpy looks at cannot be resized
        except TypeError:  # a type that numpy lacks (bfloat16 ...)
            return None
        return self._stored("<tensor>", array)

    def _stored(self, tag: str, array: np.ndarray[Any, Any]) -> Any:
        self.arrays.append(array)
        return {tag: len(self.arrays) - 1}

    def _object(self, value: Any, path: tuple[Any, ...]) -> Any:
        self.objects.append(value)
        self.paths.append(path)
        return {"<object>": len(self.objects) - 1}


def _decode(tree: Any, arrays: dict[str, Any], objects: list[Any]) -> Any:
    if isinstance(tree, list):
        return [_decode(part, arrays, objects) for part in tree]
    if not isinstance(tree, dict):
        return tree
    tag = next(iter(tree), "")
    if not tag.startswith("<"):
        return {key: _decode(part, arrays, objects) for key, part in tree.items()}
    content = tree[tag]
    if tag == "<tuple>":
        return tuple(_decode(part, arrays, objects) for part in content)
    if tag == "<dict>":
        return {_decode(key, arrays, objects): _decode(part, arrays, objects) for key, part in content}
    return _decode_leaf(tag, content, arrays, objects)


def _decode_leaf(tag: str, content: Any, arrays: dict[str, Any], objects: list[Any]) -> Any:
    if tag == "<float>":
        return float(content)
    if tag == "<bytes>":
        return base64.b64decode(content)
    if tag == "<object>":
        return objects[content]
    array = arrays[str(content)]
    if tag == "<scalar>":
        return array[()]
    if tag == "<tensor>":
        import torch

        return torch.from_numpy(array)
    return array
