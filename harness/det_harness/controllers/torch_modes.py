"""Training and evaluation mode of models and of the modules in them, some of which may be frozen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(models: Sequence[nn.Module]) -> Iterator[None]:
    """Let the block find the models in evaluation mode, and have every module in its own mode again after it."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    for model in models:
        model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
