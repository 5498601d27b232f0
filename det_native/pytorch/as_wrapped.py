"""What models and optimizers are like before they are trained: a program that runs again makes them like this again."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_SIMPLE = (bool, int, float, str, type(None))
# What torch itself keeps in every module; ``training`` has its own place in checkpoints.
_OF_ALL_MODULES = frozenset(vars(torch.nn.Module()))

#: By the names of a model's modules, their attributes by name.
Attributes = dict[str, dict[str, Any]]


class AsWrapped:
    """The plain attributes and frozen parameters of the wrapped models, and the groups of the wrapped optimizers.

    Attributes
    ----------
    attributes : list of Attributes
        For each model, in the order in which they were wrapped.
    frozen : list of list of str
        The names of the parameters whose ``requires_grad`` is off, likewise.
    groups : list of list of list of torch.nn.Parameter
        For each optimizer, likewise.
    """

    def __init__(self) -> None:
        self.attributes: list[Attributes] = []
        self.frozen: list[list[str]] = []
        self.groups: list[list[list[torch.nn.Parameter]]] = []

    def add_model(self, model: torch.nn.Module) -> None:
        """Note what a model is like."""
        self.attributes.append(plain_attributes(model))
        self.frozen.append(frozen_parameters(model))

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Note what an optimizer is like."""
        self.groups.append([list(group["params"]) for group in optimizer.param_groups])


def plain_attributes(model: torch.nn.Module) -> Attributes:
    """Return the attributes of a model's modules that are numbers, text, None, or tuples of them."""
    return {
        name: {key: value for key, value in vars(module).items() if key not in _OF_ALL_MODULES and is_plain(value)}
        for name, module in model.named_modules()
    }


def frozen_parameters(model: torch.nn.Module) -> list[str]:
    """Return the names of the parameters that get no gradients."""
    return [name for name, parameter in model.named_parameters() if not parameter.requires_grad]


def is_plain(value: Any) -> bool:
    """Return whether a value of an attribute is kept in checkpoints."""
    if type(value) is tuple:
        return all(is_plain(part) for part in value)
    return type(value) in _SIMPLE or (isinstance(value, np.generic) and value.dtype.kind in "biufU")
