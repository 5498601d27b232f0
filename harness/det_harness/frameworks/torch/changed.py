"""What a training has changed of models and optimizers besides their tensors, in checkpoints and put back.

``frozen_parameters``
    By model, the names of the parameters whose ``requires_grad`` is off (``now``), and of those for which that has
    changed since the model was wrapped, or since its training began (``changed``).
``module_attributes``
    By model, the plain attributes of its modules (``dropout.p``) that have changed, likewise.
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
from det_native.pytorch.as_wrapped import AsWrapped, Attributes, frozen_parameters, is_plain, plain_attributes

Groups = list[list[torch.nn.Parameter]]
_NOTHING = object()


def note_beginning(context: PyTorchTrialContext) -> None:
    """Note what the program has made, before a checkpoint is put back or a batch is trained on."""
    context.as_begun = begun = AsWrapped()
    for model in context.models:
        begun.add_model(model)
    for optimizer in context.optimizers:
        begun.add_optimizer(optimizer)


def collect(context: PyTorchTrialContext) -> dict[str, Any]:
    """Return what a checkpoint has of it.

    Raises
    ------
    TrialDefinitionError
        If an optimizer was given parameters of no wrapped model, which no checkpoint has.
    """
    wrapped, begun = context.as_wrapped, context.as_begun
    return {
        "frozen_parameters": [
            _frozen(frozen_parameters(model), *before)
            for model, *before in zip(context.models, wrapped.frozen, begun.frozen, strict=True)
        ],
        "module_attributes": [
            _differing(plain_attributes(model), *before)
            for model, *before in zip(context.models, wrapped.attributes, begun.attributes, strict=True)
        ],
        "parameter_groups": [
            _changed_groups(optimizer, before, context)
            for optimizer, before in zip(context.optimizers, wrapped.groups, strict=True)
        ],
    }


def put_back(models: Sequence[torch.nn.Module], state: Mapping[str, Any], as_wrapped: AsWrapped | None = None) -> None:
    """Give models the ``requires_grad``, the attributes and the modes of a checkpoint.

    Parameters
    ----------
    models : sequence of modules
    state : mapping
        What was collected.
    as_wrapped : AsWrapped, optional
        What the models were like when they were wrapped. Without it they are others that the user has, and get what the
        training has changed only.
    """
    for model, frozen in zip(models, state.get("frozen_parameters") or [], strict=False):
        names, touched = frozenset(frozen["now"]), frozenset(frozen["changed"])
        for name, parameter in model.named_parameters():
            if parameter.requires_grad is (name in names) and (as_wrapped is not None or name in touched):
                parameter.requires_grad_(name not in names)
    for model, evaluating in zip(
        models, (state.get("evaluating") or []) if as_wrapped is not None else [], strict=False
    ):
        names = frozenset(evaluating)
        for name, module in model.named_modules():
            module.training = name not in names
    unchanged = as_wrapped.attributes if as_wrapped is not None else [{} for _ in models]
    for model, changed, before in zip(models, state.get("module_attributes") or [], unchanged, strict=False):
        for name, module in model.named_modules():
            _set_attributes(module, changed.get(name, {}), before.get(name, {}))


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
    optimizer : torch.optim.Optimizer
    number : int
        Its place among the wrapped ones.
    state : mapping
        What was collected.
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
    optimizers : sequence of optimizers
    state : mapping
        What was collected, and the states of the optimizers.
    models : sequence of modules
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


def _frozen(now: list[str], *before: list[str]) -> dict[str, list[str]]:
    return {"now": now, "changed": sorted(set[str]().union(*({*now} ^ {*names} for names in before)))}


def _differing(now: Attributes, *before: Attributes) -> Attributes:
    """Return the attributes that are not what they were, without modules that have none of them."""
    found = {
        name: {
            key: value
            for key, value in own.items()
            if not all(_same(value, known.get(name, {}).get(key, _NOTHING)) for known in before)
        }
        for name, own in now.items()
    }
    return {name: own for name, own in found.items() if own}


def _set_attributes(module: torch.nn.Module, changed: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    own = vars(module)
    taken = {*module._parameters, *module._buffers, *module._modules}
    for key, value in before.items():
        if key not in changed and is_plain(own.get(key, _NOTHING)) and not _same(own[key], value):
            own[key] = value
    for key, value in changed.items():
        if key not in taken and not _same(own.get(key, _NOTHING), value):
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
