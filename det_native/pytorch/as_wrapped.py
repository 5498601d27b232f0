"""What models and optimizers are like before they are trained: a program that runs again makes them like this again."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_SIMPLE = (bool, int, float, str, type(None))
MODE = "training"
#: Stands after the name of a parameter.
NEEDS = ".requires_grad"
# What torch itself keeps in every module.
_OF_ALL_MODULES = frozenset(vars(torch.nn.Module())) - {MODE}

#: By the names of a model's modules, their settings by name.
Settings = dict[str, dict[str, Any]]


class AsWrapped:
    """The settings of the wrapped models, and the groups of the wrapped optimizers.

    Attributes
    ----------
    settings : list of Settings
        For each model, in the order in which they were wrapped.
    groups : list of list of list of torch.nn.Parameter
        For each optimizer, likewise.
    """

    def __init__(self) -> None:
        self.settings: list[Settings] = []
        self.groups: list[list[list[torch.nn.Parameter]]] = []

    def add_model(self, model: torch.nn.Module) -> None:
        """Note what a model is like."""
        self.settings.append(settings_of(model))

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Note what an optimizer is like."""
        self.groups.append([list(group["params"]) for group in optimizer.param_groups])


def settings_of(model: torch.nn.Module) -> Settings:
    """Return attributes of modules that are numbers, text, None, or tuples of them, and what needs gradients."""
    return {
        name: {key: value for key, value in vars(module).items() if key not in _OF_ALL_MODULES and is_plain(value)}
        | {f"{key}{NEEDS}": value.requires_grad for key, value in module.named_parameters(recurse=False)}
        for name, module in model.named_modules()
    }


def is_plain(value: Any) -> bool:
    """Return whether a value of an attribute is kept in checkpoints."""
    if type(value) is tuple:
        return all(is_plain(part) for part in value)
    return type(value) in _SIMPLE or (isinstance(value, np.generic) and value.dtype.kind in "biufU")
