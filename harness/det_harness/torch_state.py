"""The state of a PyTorch trial in a checkpoint's folder, complete enough for a bit-equal continuation.

``state_dict.pth``
    Models, optimizers, and gradients that are being aggregated; loads with ``torch.load(..., weights_only=True)``.
``objects.pkl``
    What users' modules or optimizers keep that such a file cannot hold; only if there is any.
``schedulers.*``, ``callbacks.*``
    See ``state_files``.
``rng.npz``, ``state.json``
    Random number generators; the schedule (hence the position in the data).
"""

from __future__ import annotations

import copy
import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from det_harness import rng, state_files
from det_native.errors import CheckpointError
from det_native.pytorch import PyTorchCallback, PyTorchTrialContext

logger = logging.getLogger("det_harness")

_WEIGHTS = "state_dict.pth"
_OBJECTS = "objects.pkl"
_SCHEDULE = "state.json"
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.Tensor, torch.Size, torch.dtype, torch.device)


def save(
    folder: Path, context: PyTorchTrialContext, callbacks: Mapping[str, PyTorchCallback], schedule: dict[str, Any]
) -> None:
    """Write everything into an empty folder."""
    objects: dict[str, Any] = {}
    state = {
        "models_state_dict": [model.state_dict() for model in context.models],
        "optimizers_state_dict": [optimizer.state_dict() for optimizer in context.optimizers],
        "gradients": [_gradients(model) for model in context.models],
    }
    torch.save(_split(state, "", objects), folder / _WEIGHTS)
    if objects:
        import cloudpickle

        (folder / _OBJECTS).write_bytes(cloudpickle.dumps(objects))
    state_files.dump(folder, "schedulers", [scheduler.state_dict() for scheduler in context.lr_schedulers])
    state_files.dump(folder, "callbacks", {name: callback.state_dict() for name, callback in callbacks.items()})
    rng.save(folder)
    (folder / _SCHEDULE).write_text(json.dumps({"schedule": schedule}), encoding="utf-8")


def load_schedule(folder: Path) -> dict[str, Any]:
    """Return the schedule's snapshot."""
    state = json.loads((folder / _SCHEDULE).read_text(encoding="utf-8"))
    schedule: dict[str, Any] = state["schedule"]
    return schedule


def load(folder: Path, context: PyTorchTrialContext, callbacks: Mapping[str, PyTorchCallback]) -> None:
    """Put the state back into the trial's objects, random number generators last.

    Raises
    ------
    CheckpointError
        If models, optimizers or schedulers do not fit those of the checkpoint.
    """
    state = _read(folder)
    _load_each("model", context.models, state["models_state_dict"])
    _load_each("optimizer", context.optimizers, state["optimizers_state_dict"])
    for model, gradients in zip(context.models, state["gradients"], strict=True):
        _put_gradients(model, gradients)
    _load_each("learning rate scheduler", context.lr_schedulers, state_files.load(folder, "schedulers"))
    for name, saved in state_files.load(folder, "callbacks").items():
        if name not in callbacks:
            logger.warning("The checkpoint has a state for the callback '%s', which is no longer there.", name)
            continue
        callbacks[name].load_state_dict(saved)
    rng.load(folder)


def load_models(folder: Path, context: PyTorchTrialContext) -> None:
    """Put the weights back into the trial's models, and nothing else.

    Raises
    ------
    CheckpointError
        If the models do not fit those of the checkpoint.
    """
    _load_each("model", context.models, _read(folder)["models_state_dict"])


def _read(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(folder / _WEIGHTS, map_location="cpu", weights_only=True)
    if (folder / _OBJECTS).exists():
        import cloudpickle

        for path, value in cloudpickle.loads((folder / _OBJECTS).read_bytes()).items():
            _put(state, path.split("\0")[1:], value)
    return state


def _gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return gradients that the next batch will add to: of an aggregation under way, or kept by the user's code."""
    return {name: value.grad for name, value in model.named_parameters() if value.grad is not None}


def _put_gradients(model: torch.nn.Module, gradients: dict[str, torch.Tensor]) -> None:
    for name, parameter in model.named_parameters():
        saved = gradients.get(name)
        parameter.grad = None if saved is None else saved.to(parameter.device)


def _load_each(kind: str, objects: list[Any], states: list[Any]) -> None:
    if len(objects) != len(states):
        raise CheckpointError(
            f"The checkpoint has {len(states)} {kind}(s), the trial wraps {len(objects)}: other code made it."
        )
    for number, (target, state) in enumerate(zip(objects, states, strict=True)):
        try:
            target.load_state_dict(state)
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"The {kind} number {number + 1} ({type(target).__name__}) does not fit the checkpoint: {error}"
            ) from error


def _split(value: Any, path: str, objects: dict[str, Any]) -> Any:
    """Return `value` with what a weights-only file cannot hold moved to `objects`, by the path of its place."""
    kind = type(value)
    if kind in _PLAIN or kind is torch.nn.Parameter:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if kind in (dict, OrderedDict) and all(type(key) in (str, int) for key in value):
        parts = {key: _split(part, f"{path}\0{_step(key)}", objects) for key, part in value.items()}
        if all(parts[key] is value[key] for key in value):
            return value  # itself: a module's state carries the versions of its layers as an attribute
        rebuilt = copy.copy(value)
        rebuilt.update(parts)
        return rebuilt
    if kind in (list, tuple):
        items = [_split(part, f"{path}\0{_step(index)}", objects) for index, part in enumerate(value)]
        # A tuple becomes a list only if something in it has to be put back by place.
        moved = any(key.startswith(f"{path}\0") for key in objects)
        return items if kind is list or moved else tuple(items)
    objects[path] = value
    return None


def _step(key: str | int) -> str:
    return f"i{key}" if isinstance(key, int) else f"s{key}"


def _put(state: Any, path: list[str], value: Any) -> None:
    for step in path[:-1]:
        state = state[int(step[1:]) if step[0] == "i" else step[1:]]
    last = path[-1]
    state[int(last[1:]) if last[0] == "i" else last[1:]] = value
