"""What a training has changed of models and optimizers besides their tensors, in checkpoints and put back.

``module_settings``
    By model, the settings of its modules (``dropout.p``, the mode, ``requires_grad`` of parameters) that have changed
    since the model was wrapped.
``parameter_groups``
    By optimizer, its parameter groups as it was wrapped and as they are, as places: the number of a model and a
    parameter's name. Empty where nothing of it has changed.

Older checkpoints have none of these.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from det_native.errors import TrialDefinitionError
from det_native.pytorch import PyTorchTrialContext
from det_native.pytorch.as_wrapped import MODE, NEEDS, AsWrapped, Settings, is_plain, settings_of

Groups = list[list[torch.nn.Parameter]]
_NOTHING = object()


def collect(context: PyTorchTrialContext) -> dict[str, Any]:
    """Return what a checkpoint has of it.

    Raises
    ------
    TrialDefinitionError
        If an optimizer was given parameters of no wrapped model, which no checkpoint has.
    """
    wrapped = context.as_wrapped
    return {
        "module_settings": [
            _differing(settings_of(model), before)
            for model, before in zip(context.models, wrapped.settings, strict=True)
        ],
        "parameter_groups": [
            _changed_groups(optimizer, before, context)
            for optimizer, before in zip(context.optimizers, wrapped.groups, strict=True)
        ],
    }


def put_back(models: Sequence[torch.nn.Module], state: Mapping[str, Any], as_wrapped: AsWrapped | None = None) -> None:
    """Give models the settings of a checkpoint.

    Parameters
    ----------
    as_wrapped : AsWrapped, optional
        What the models were like when they were wrapped. Without it they are others that the user has, and get what the
        training has changed only.
    """
    unchanged = as_wrapped.settings if as_wrapped is not None else [{} for _ in models]
    for model, changed, before in zip(models, state.get("module_settings") or [], unchanged, strict=False):
        for name, module in model.named_modules():
            here = {key: value for key, value in changed.get(name, {}).items() if as_wrapped is not None or key != MODE}
            _set(module, here, before.get(name, {}))


def groups_to_be(
    optimizer: torch.optim.Optimizer,
    number: int,
    state: Mapping[str, Any],
    models: Sequence[torch.nn.Module],
    as_wrapped: AsWrapped | None = None,
) -> Groups | None:
    """Return the groups that a checkpoint's optimizer had; None where this one has them, or was made otherwise.

    Parameters
    ----------
    models : sequence of modules
        In the order in which they were wrapped.
    as_wrapped : AsWrapped, optional
        Has the optimizer's groups when it was wrapped. Without it they are taken to be those that it has now.
    """
    entries = (state.get("parameter_groups") or [])[number : number + 1]
    now = [group["params"] for group in optimizer.param_groups]
    wrapped = now if as_wrapped is None else as_wrapped.groups[number]
    if not entries or (entries[0] and _places(wrapped, models) != entries[0]["wrapped"]):
        return None
    groups = _resolved(entries[0]["now"], models) if entries[0] else wrapped
    return None if groups is None or _is_same(groups, now) else groups


def regroup(
    optimizers: Sequence[torch.optim.Optimizer],
    state: Mapping[str, Any],
    models: Sequence[torch.nn.Module],
    as_wrapped: AsWrapped | None = None,
) -> None:
    """Give optimizers the groups of a checkpoint, so that the states of its optimizers fit.

    Parameters
    ----------
    state : mapping
        What was collected, and the states of the optimizers.
    as_wrapped : AsWrapped, optional
        See :func:`groups_to_be`.
    """
    for number, (optimizer, saved) in enumerate(zip(optimizers, state["optimizers_state_dict"], strict=False)):
        groups = groups_to_be(optimizer, number, state, models, as_wrapped)
        if groups is not None:
            _make_groups(optimizer, groups, saved["param_groups"])


def _make_groups(optimizer: torch.optim.Optimizer, groups: Groups, saved: Sequence[Mapping[str, Any]]) -> None:
    del optimizer.param_groups[len(groups) :]
    for group, parameters in zip(optimizer.param_groups, groups, strict=False):
        group["params"] = list(parameters)
    for parameters, settings in list(zip(groups, saved, strict=True))[len(optimizer.param_groups) :]:
        further = {key: copy.deepcopy(value) for key, value in settings.items() if key not in ("params", "param_names")}
        names = settings.get("param_names")
        params = parameters if names is None else list(zip(names, parameters, strict=True))
        optimizer.add_param_group({"params": params, **further})


def _differing(now: Settings, before: Settings) -> Settings:
    """Return the settings that are not what they were, without modules that have none of them."""
    found = {
        name: {key: value for key, value in own.items() if not _same(value, before.get(name, {}).get(key, _NOTHING))}
        for name, own in now.items()
    }
    return {name: own for name, own in found.items() if own}


def _set(module: torch.nn.Module, changed: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    own = vars(module)
    taken = {*module._parameters, *module._buffers, *module._modules}
    for key, value in {**before, **changed}.items():
        if key.endswith(NEEDS):
            parameter = module._parameters.get(key.removesuffix(NEEDS))
            if parameter is not None and parameter.requires_grad is not value:
                parameter.requires_grad_(value)
        elif key not in taken and (key in changed or is_plain(own.get(key, _NOTHING))):
            own[key] = value


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


def _changed_groups(optimizer: torch.optim.Optimizer, before: Groups, context: PyTorchTrialContext) -> dict[str, Any]:
    now = [group["params"] for group in optimizer.param_groups]
    if _is_same(now, before):
        return {}
    places = _places(now, context.models)
    if any(None in group for group in places):
        raise TrialDefinitionError(
            f"The {type(optimizer).__name__} was given parameters in the training that belong to no wrapped model, so "
            "they would not be in checkpoints: wrap their model before the training, and add them to the optimizer "
            "when they are to be trained."
        )
    return {"wrapped": _places(before, context.models), "now": places}


def _places(groups: Sequence[Sequence[torch.nn.Parameter]], models: Sequence[torch.nn.Module]) -> list[list[Any]]:
    places: dict[int, list[Any]] = {}
    for number, model in enumerate(models):
        for name, parameter in model.named_parameters():
            places.setdefault(id(parameter), [number, name])
    return [[places.get(id(parameter)) for parameter in group] for group in groups]


def _resolved(places: Sequence[Sequence[Sequence[Any]]], models: Sequence[torch.nn.Module]) -> Groups | None:
    known = {
        (number, name): parameter for number, model in enumerate(models) for name, parameter in model.named_parameters()
    }
    try:
        return [[known[number, name] for number, name in group] for group in places]
    except KeyError:
        return None  # whoever loads the models says which it lacks


def _is_same(groups: Groups, others: Groups) -> bool:
    return [[id(one) for one in group] for group in groups] == [[id(one) for one in group] for group in others]
