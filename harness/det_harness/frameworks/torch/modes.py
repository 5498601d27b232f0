"""Training and evaluation mode of models and of the modules in them, some of which may be frozen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(models: Sequence[nn.Module]) -> Iterator[None]:
    """Let the block find the models in evaluation mode, and have every module in its own mode again after it.

    A module's own ``train()`` is called on the way back as on the way there: it may do more than to set the mode (LoRA
    merges weights and takes them apart again).
    """
    modes = [(module, module.training) for model in models for module in model.modules()]
    for model in models:
        model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            if module.training != training:
                module.train(training)  # with all modules in it, some of which may be frozen
        for module, training in modes:
            module.training = training
