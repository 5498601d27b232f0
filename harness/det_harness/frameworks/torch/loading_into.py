"""What a training has made of models and optimizers, put into objects of a process that are in use, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from det_harness.frameworks.torch import changed, sharded_state, trial_state
from det_harness.trial import after_training
from det_native.errors import ArgumentError, CheckpointCorruptError, CheckpointError
from det_native.pytorch import PyTorchTrialContext
from det_native.pytorch.as_wrapped import AsWrapped

_REMEDY = "experiment.top_checkpoint().load() makes the models as they were trained."


def load_into(context: PyTorchTrialContext, directory: Path) -> None:
    """Put models, optimizers, schedulers and scalers of a checkpoint into those of a context.

    Each tensor stays on its device. Random streams and the user's callbacks stay as they are.

    Raises
    ------
    CheckpointError
        If something does not fit; nothing is changed then.
    """
    folder = after_training.weights_in(directory)
    state = _read(folder)
    kinds: dict[str, tuple[list[Any], list[Any]]] = {
        "model": (context.models, state["models_state_dict"]),
        "optimizer": (context.optimizers, state["optimizers_state_dict"]),
        "learning rate scheduler": (context.lr_schedulers, state.get("lr_schedulers_state_dict") or []),
        "gradient scaler": (context.scalers, state.get("scalers_state_dict") or []),
    }
    for kind, (objects, states) in kinds.items():
        if len(objects) != len(states):
            raise CheckpointError(
                f"The experiment has trained with {len(states)} {kind}(s), {context.owner} wraps {len(objects)} here. "
                f"{_REMEDY}"
            )
    _check_models(*kinds["model"])
    _check_optimizers(context.optimizers, state, context.models, context.as_wrapped)
    changed.regroup(context.optimizers, state, context.models, context.as_wrapped)
    for objects, states in kinds.values():
        for each, saved in zip(objects, states, strict=True):
            if saved:  # a gradient scaler that was switched off has nothing
                each.load_state_dict(saved)
    changed.put_back(context.models, state, context.as_wrapped)
    for model, gradients in zip(context.models, state.get("gradients") or [], strict=False):
        trial_state.put_gradients(model, gradients)


def load_into_objects(target: Any, optimizer: Any, directory: Path) -> None:
    """Put the weights of a checkpoint into modules, and the state of its optimizers into optimizers if there are any.

    Parameters
    ----------
    target : torch.nn.Module, or list or dict of them
        In the order in which the experiment has wrapped them.
    optimizer : torch.optim.Optimizer, or list or dict of them, optional
        Likewise.

    Raises
    ------
    ArgumentError
        If they are something else.
    CheckpointError
        If something does not fit; nothing is changed then.
    """
    models = _several(target, torch.nn.Module, "a PyTorch module, or several in a list or dictionary")
    optimizers = _several(optimizer, torch.optim.Optimizer, "as optimizer= an optimizer of PyTorch, or several")
    state = _read(after_training.weights_in(directory))
    weights, steps = state["models_state_dict"], state["optimizers_state_dict"]
    for kind, objects, states in (("model", models, weights), ("optimizer", optimizers, steps)):
        if objects and len(objects) != len(states):
            raise CheckpointError(
                f"The experiment has trained {len(states)} {kind}(s), load_into() is given {len(objects)}: give it all "
                "of them in a list, in the order in which they were wrapped."
            )
    _check_models(models, weights)
    _check_optimizers(optimizers, state, models)
    changed.regroup(optimizers, state, models)
    for each, saved in (*zip(models, weights, strict=True), *zip(optimizers, steps, strict=False)):
        each.load_state_dict(saved)
    changed.put_back(models, state)


def _read(folder: Path) -> dict[str, Any]:
    try:
        state = trial_state.read(folder)
    except FileNotFoundError:
        raise CheckpointCorruptError(f"{folder.name} is not a checkpoint of PyTorch.") from None
    sharded_state.put_back(state, folder)
    return state


def _several(given: Any, kind: type, wanted: str) -> list[Any]:
    if given is None and kind is not torch.nn.Module:
        return []
    found: Iterable[Any] = given.values() if isinstance(given, Mapping) and not isinstance(given, kind) else given
    found = list(found) if isinstance(given, Mapping | list | tuple) and not isinstance(given, kind) else [given]
    for each in found:
        if not isinstance(each, kind):
            name = each.__name__ if isinstance(each, type) else f"a {type(each).__name__}"
            raise ArgumentError(
                f"load_into() of an experiment of PyTorch takes {wanted}, not {name}: "
                "experiment.top_checkpoint().load() makes models or a trial by itself."
            )
    return list(found)


def _check_models(models: Sequence[torch.nn.Module], states: Sequence[Mapping[str, Any]]) -> None:
    for model, saved in zip(models, states, strict=True):
        here = {name: _shape(value) for name, value in model.state_dict().items()}
        there = {name: _shape(value) for name, value in saved.items()}
        empty = [name for name, value in model.state_dict().items() if torch.nn.parameter.is_lazy(value)]
        here |= {name: there[name] for name in empty if name in there}  # they get the shapes that there are
        if here == there:
            continue
        name = next(name for name in (*there, *here) if there.get(name, ()) != here.get(name, ()) or name not in here)
        raise CheckpointError(
            f"The trained weights do not fit the {type(model).__name__}: the experiment's has {_part(there, name)}, "
            f"this one has {_part(here, name)}. {_REMEDY}"
        )


def _check_optimizers(
    optimizers: Sequence[Any],
    state: Mapping[str, Any],
    models: Sequence[torch.nn.Module],
    as_wrapped: AsWrapped | None = None,
) -> None:
    for number, (optimizer, saved) in enumerate(zip(optimizers, state["optimizers_state_dict"], strict=False)):
        groups = changed.groups_to_be(optimizer, number, state, models, as_wrapped)
        here = [len(group) for group in groups or [group["params"] for group in optimizer.param_groups]]
        there = [len(group["params"]) for group in saved["param_groups"]]
        name = type(optimizer).__name__
        if here != there:
            raise CheckpointError(
                f"The experiment's optimizer does not fit the {name}: it has groups of {there} parameters, this one of "
                f"{here}. {_REMEDY}"
            )
        # A state dict does not say its class, but which settings it has. Defaults that no group has are torch's own: it
        # adds one when it puts state in place.
        own = [name for name in optimizer.defaults if all(name in group for group in optimizer.param_groups)]
        lacks = [setting for setting in own if any(setting not in one for one in saved["param_groups"])]
        if lacks:
            settings = ", ".join(key for key in saved["param_groups"][0] if key != "params")
            raise CheckpointError(
                f"The experiment's optimizer is no {name}: it has {settings}, and this one has {', '.join(lacks)} "
                f"beside. Make it as it was made then, or give load_into() the models only."
            )


def _shape(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, torch.Tensor) or torch.nn.parameter.is_lazy(value):
        return None
    return tuple(value.shape)


def _part(shapes: Mapping[str, tuple[int, ...] | None], name: str) -> str:
    return f"{name} {shapes[name]}" if name in shapes else f"no {name}"
