"""Tells of the steps that optimizers make, and leaves the optimizers as they are: as such they travel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakMethod

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

_watched: WeakKeyDictionary[Optimizer, WeakMethod[Callable[[Optimizer], None]]] = WeakKeyDictionary()
_hooks: list[Any] = []


def watch_steps(optimizer: Optimizer, tell: Callable[[Optimizer], None]) -> None:
    """Have a method called before each step of an optimizer, as long as its object lives.

    Parameters
    ----------
    tell : callable
        A bound method, which is given the optimizer.
    """
    if not _hooks:
        _hooks.append(register_optimizer_step_pre_hook(_before_step))
    _watched[optimizer] = WeakMethod(tell)


def _before_step(optimizer: Optimizer, *arguments: Any) -> None:
    method = _watched.get(optimizer)
    tell = method() if method is not None else None
    if tell is not None:
        tell(optimizer)
