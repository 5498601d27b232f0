"""The state of callbacks, whatever class they are of: what they keep in their attributes, into a checkpoint and back.

Files of a checkpoint: ``callbacks.*``, and ``tracked.*`` (TensorFlow's format) for metrics, models and the like that
callbacks have of their own. What belongs to the trained model is not saved again: a reference to it stays one.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import logging
import os
import pickle
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras import handles
from det_harness.frameworks.keras.model_state import parts_of
from det_harness.trial import state_files
from det_native.carried.call import CallNames
from det_native.inspection.attributes import is_own_module
from det_native.keras.callbacks import keeps_own_state
from det_native.keras.generations import internals

logger = logging.getLogger("det_native")

_PLAIN = (bool, int, float, str, bytes, type(None), np.ndarray, np.generic)
# Parts of the program, which makes them again.
_CODE = (type, partial, types.ModuleType, tf.types.experimental.GenericFunction)
# What has variables that are saved apart; single variables are values here.
_TRACKED = internals.tracked_kinds()

Parts = dict[tuple[str, Any], Any]


def save(
    folder: Path, model: Any, callbacks: Sequence[Any], names: CallNames | None = None, *, ended: bool = False
) -> None:
    """Write the states into the folder of a checkpoint; who has something buffered is told to write it out.

    What the program's names lead to is written as far as it has changed, and callbacks refer to it. Of a training that
    has `ended` no trial goes on: what it lacks then is not told.
    """
    parts = _parts(model, callbacks, names)
    tracked: dict[str, Any] = {}
    states = []
    for index, callback in enumerate(callbacks):
        handles.flush(vars(callback))
        states.append(_state(callback, parts, f"callback_{index}_", tracked, told=not ended))
    params = getattr(callbacks[0], "params", None) if callbacks else None
    content: dict[str, Any] = {"work": os.getcwd(), "states": states, "params": params}
    if names is not None:
        changed = names.save()
        if not ended:
            _tell(changed.lost)
        content["names"] = np.frombuffer(changed.data, np.uint8)
    state_files.dump(folder, "callbacks", content, _title(callbacks))
    if tracked:
        internals.write_tracked(str(folder / "tracked"), tracked)


def restore(folder: Path, model: Any, callbacks: Sequence[Any], names: CallNames | None = None) -> None:
    """Bring the callbacks to where :func:`save` found them; their ``on_train_begin`` has been called."""
    found = state_files.load(folder, "callbacks")
    parts = _parts(model, callbacks, names)
    if names is not None and "names" in found:
        _tell(names.restore(found["names"].tobytes()))
    tracked: dict[str, Any] = {}
    for index, (callback, saved) in enumerate(zip(callbacks, found["states"], strict=False)):
        if saved["class"] != _kind(callback):
            logger.warning(
                "The checkpoint has the state of a callback %s where there is %s now.", saved["class"], _kind(callback)
            )
        elif "own" in saved:
            callback.load_state(saved["own"])
        else:
            _restore(callback, _Moved(found["work"], os.getcwd()), saved, parts)
            for name in saved["tracked"]:
                if name in vars(callback):
                    tracked[f"callback_{index}_{name}"] = vars(callback)[name]
                else:
                    logger.warning(
                        "%s.%s is not restored: it was made while the model trained, and the checkpoint has only its "
                        "values. Make it in on_train_begin().",
                        *(_kind(callback), name),
                    )
    if tracked:
        internals.read_tracked(str(folder / "tracked"), tracked)


def _kind(callback: Any) -> str:
    return f"{type(callback).__module__}.{type(callback).__qualname__}"


def _title(callbacks: Sequence[Any]) -> Any:
    def title(path: tuple[Any, ...]) -> str:
        return f"What {_kind(callbacks[path[1]])}.get_state() returns"

    return title


def is_in(folder: Path) -> bool:
    """Whether a folder has the states of callbacks."""
    return (folder / "callbacks.json").exists()


def digest(folder: Path) -> bytes:
    """Return what tells the states in the folder of a checkpoint from others."""
    seen = hashlib.blake2b()
    for path in sorted(folder.iterdir()):
        seen.update(path.name.encode() + path.read_bytes())
    return seen.digest()


def bring_home(folder: Path, model: Any, callbacks: Sequence[Any], names: CallNames | None) -> None:
    """Give callbacks, and what they lead to, what training elsewhere has made of them; names bound anew stay.

    Of callbacks of libraries that is numbers: where their files lie is the affair of the process that trained.
    """
    content = state_files.load(folder, "callbacks")
    if names is not None and "names" in content:
        names.restore(content["names"].tobytes(), unless_bound=True)
    parts, moved = _parts(model, callbacks, names), _Moved(content["work"], os.getcwd())
    tracked: dict[str, Any] = {}
    for index, (callback, saved) in enumerate(zip(callbacks, content["states"], strict=False)):
        if saved["class"] != _kind(callback):
            continue
        tf.keras.callbacks.Callback.set_model(callback, model)
        if content.get("params") is not None:
            tf.keras.callbacks.Callback.set_params(callback, content["params"])
        if "own" in saved:
            _give_own(callback, saved["own"])
        elif not is_own_module(type(callback).__module__):
            vars(callback).update({name: value for name, value in saved["values"].items() if _is_number(value)})
        else:
            _restore(callback, moved, saved, parts, _AtHome)
            here = vars(callback)
            tracked |= {f"callback_{index}_{name}": here[name] for name in saved["tracked"] if name in here}
    if tracked:
        internals.read_tracked(str(folder / "tracked"), tracked)


def _give_own(callback: Any, state: Any) -> None:
    """Give a callback what its ``get_state()`` has returned on the worker."""
    try:
        callback.load_state(state)
    except Exception as error:  # noqa: BLE001 (code of the user's; the weights are here, and the cell goes on)
        logger.warning("%s.load_state() has failed, so the callback is as it was: %s", _kind(callback), error)


_warned: set[str] = set()


def _tell(lost: Mapping[str, str]) -> None:
    for name, why in lost.items():
        if name not in _warned:
            _warned.add(name)
            logger.warning(
                "`%s`, which a callback changes, %s: a trial that goes on has it as the cells set it.", name, why
            )


def _parts(model: Any, callbacks: Sequence[Any], names: CallNames | None = None) -> Parts:
    """Return what states only refer to, by names that are the same in every process of the trial."""
    referred = {} if names is None else {("name", address): value for address, value in names.referred.items()}
    return {**parts_of(model), **referred, **{("callback", index): each for index, each in enumerate(callbacks)}}


def _state(callback: Any, parts: Parts, prefix: str, tracked: dict[str, Any], *, told: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"class": _kind(callback), "values": {}, "tracked": [], "objects": None}
    if isinstance(callback, tf.keras.callbacks.ProgbarLogger):
        return state
    if keeps_own_state(callback):
        return {"class": _kind(callback), "own": callback.get_state()}
    objects = {}
    for name, value in vars(callback).items():
        if name in internals.SET_BY_KERAS or _is_of_the_program(value):
            continue
        if _is_plain(value):
            state["values"][name] = value
        elif _is_tracked(value, {id(part) for part in parts.values()}):
            state["tracked"].append(name)
            tracked[prefix + name] = value
        elif _can_be_pickled(value, parts, f"{_kind(callback)}.{name}", told=told):
            objects[name] = value
    if objects:  # in one piece: two attributes may hold the same object
        state["objects"] = np.frombuffer(_pickled(objects, parts), dtype=np.uint8)
    return state


def _restore(
    callback: Any, moved: _Moved, saved: dict[str, Any], parts: Parts, unpickler: type[_Unpickler] | None = None
) -> None:
    values = {name: moved(value) for name, value in saved["values"].items()}
    if saved["objects"] is not None:
        try:
            values |= (unpickler or _Unpickler)(io.BytesIO(saved["objects"].tobytes()), parts).load()
        except Exception as error:  # noqa: BLE001 - objects of the user's may raise anything
            logger.warning("Not all of the state of %s can be restored: %s", _kind(callback), error)
    for name, value in values.items():
        if value is _LEFT_OUT:
            continue
        vars(callback)[name] = _merged(vars(callback).get(name), value)


def _merged(current: Any, saved: Any) -> Any:
    """Return what an attribute is to be: in place where it can, so that other names for it go on seeing it."""
    if isinstance(current, tf.Variable) and isinstance(saved, tf.Variable):
        if current is saved:
            return current
        if current.shape == saved.shape and current.dtype == saved.dtype:
            current.assign(saved)
            return current
    elif isinstance(current, list) and type(current) is type(saved):
        before = current if len(current) == len(saved) else [None] * len(saved)
        current[:] = [_merged(*pair) for pair in zip(before, saved, strict=True)]
        return current
    elif isinstance(current, dict) and type(current) is type(saved):
        merged = {key: _merged(current.get(key), value) for key, value in saved.items()}
        current.clear()
        current.update(merged)
        return current
    elif isinstance(current, set) and isinstance(saved, set):
        current.clear()
        current.update(saved)
        return current
    return saved


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _is_tracked(value: Any, known: set[int]) -> bool:
    """Return whether a value is, or consists of, objects with variables that TensorFlow saves and restores."""
    leaves = list(_leaves(value))
    return bool(leaves) and all(isinstance(leaf, _TRACKED) and id(leaf) not in known for leaf in leaves)


def _is_of_the_program(value: Any) -> bool:
    """Return whether the program makes a value again; a function that can be imported may as well be a setting."""
    if isinstance(value, types.FunctionType) and value.__module__ != "__main__":
        return getattr(sys.modules.get(value.__module__), value.__qualname__, None) is not value
    return inspect.isroutine(value) or isinstance(value, _CODE)


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return type(value) is dict and all(_is_plain(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple):
        return type(value) in (list, tuple) and all(_is_plain(part) for part in value)
    return isinstance(value, _PLAIN) and not getattr(getattr(value, "dtype", None), "hasobject", False)


def _is_number(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_number, value))
    return isinstance(value, bool | int | float | np.number | type(None))


_reported: set[str] = set()


def _can_be_pickled(value: Any, parts: Parts, name: str, *, told: bool) -> bool:
    try:
        _pickled(value, parts)
    except Exception as error:  # noqa: BLE001 - objects of the user's may raise anything from their __reduce__
        # What Keras's own callbacks lack (writers of event files, say), they make again themselves.
        if told and not name.startswith(("keras.", "tensorflow.", "det_native.")) and name not in _reported:
            _reported.add(name)
            logger.warning("%s does not survive a restart: it cannot be pickled (%s).", name, error)
        return False
    return True


def _pickled(value: Any, parts: Parts) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, parts).dump(value)
    return stream.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Leaves out what the program has anyway: the model, its parts, the callbacks, classes and functions of cells."""

    def __init__(self, stream: io.BytesIO, parts: Parts) -> None:
        super().__init__(stream)
        self._names = {id(part): name for name, part in parts.items()}

    def persistent_id(self, value: Any) -> tuple[str, Any] | None:
        if isinstance(value, type | types.FunctionType) and value.__module__ == "__main__":
            return ("main", value.__qualname__) if _of_main(value.__qualname__) is value else None
        return self._names.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        reduced = handles.reduced(value)
        return super().reducer_override(value) if reduced is NotImplemented else reduced


class _Unpickler(pickle.Unpickler):
    """Puts back what :class:`_Pickler` left out."""

    def __init__(self, stream: io.BytesIO, parts: Parts) -> None:
        super().__init__(stream)
        self._parts = parts

    def persistent_load(self, name: tuple[str, Any]) -> Any:
        return _of_main(name[1]) if name[0] == "main" else self._parts[name]


_LEFT_OUT = object()


class _AtHome(_Unpickler):
    """Leaves out files: those of the process that trained."""

    def find_class(self, module: str, name: str) -> Any:
        return (lambda *_: _LEFT_OUT) if module == handles.__name__ else super().find_class(module, name)


def _of_main(qualified: str) -> Any:
    found: Any = sys.modules["__main__"]
    for name in qualified.split("."):
        found = getattr(found, name, None)
    return found


class _Moved:
    """Puts the working directory of this run for that of the run that saved, at the beginning of paths."""

    def __init__(self, before: str, now: str) -> None:
        self._before, self._now = before, now

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str):
            inside = value == self._before or value.startswith(self._before + os.sep)
            return self._now + value[len(self._before) :] if inside else value
        if isinstance(value, list | tuple):
            return type(value)(map(self, value))
        if isinstance(value, dict):
            return {key: self(part) for key, part in value.items()}
        return value
