"""``context.wrap()``: takes models, optimizers, schedulers, scalers and loaders together, each by what it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
import torch.utils.data as torch_data

from det_native.errors import ArgumentError
from det_native.pytorch.data import DataLoader, check_unshared
from det_native.pytorch.lr_scheduler import LRScheduler
from det_native.pytorch.native_call import as_ours
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.wrapped_loader import WrappedLoader, wrapped_loader
from det_native.schema.checks import BATCH_SIZE

_OWNER = "context.wrap()"
_TAKEN = (
    "It takes models, optimizers, schedulers of the learning rate, gradient scalers, and loaders or lists of batches."
)


def wrap_all(context: PyTorchRunContext, objects: Sequence[Any]) -> Any:
    """Wrap objects, each by what it is, whatever their order; see ``PyTorchNativeContext.wrap``.

    Raises
    ------
    ArgumentError
        If something cannot be wrapped, or was wrapped before.
    InvalidDataError
        If a loader has no batches.
    """
    if not objects:
        raise ArgumentError(f"{_OWNER} was given nothing. {_TAKEN}")
    ways = [_way(context, place, given) for place, given in enumerate(objects, 1)]
    results: list[Any] = [None] * len(objects)
    # A scheduler wants its optimizer wrapped; by this order nobody has to think of it.
    for place in sorted(range(len(objects)), key=lambda place: ways[place][0]):
        results[place] = ways[place][1](objects[place])
    return results[0] if len(results) == 1 else tuple(results)


def _way(context: PyTorchRunContext, place: int, given: Any) -> tuple[int, Callable[[Any], Any]]:
    """Return when an object is wrapped among others, and by what."""
    if isinstance(given, torch.nn.Module):
        # A loop over epochs() zeroes gradients itself, as plain code does: what is left of them stays.
        return 0, partial(PyTorchRunContext.wrap_model, context)
    if isinstance(given, torch.optim.Optimizer):
        return 1, context.wrap_optimizer
    if isinstance(given, LRScheduler):
        return 2, context.wrap_lr_scheduler
    if not isinstance(given, type):
        if hasattr(given, "optimizer") and _has(given, "step", "state_dict", "load_state_dict"):
            return 2, lambda scheduler: context.wrap_lr_scheduler(scheduler, LRScheduler.StepMode.MANUAL_STEP)
        if _has(given, "scale", "step", "update", "state_dict"):
            return 2, context.wrap_scaler
        if _gives_batches(given):
            return 3, lambda loader: _wrap_loader(context, loader)
    raise ArgumentError(f"{_OWNER}: argument {place} is {_why_not(given)}")


def _gives_batches(given: Any) -> bool:
    if isinstance(given, list | tuple) and any(_is_part(part) for part in given):
        return False
    if isinstance(given, str | bytes | dict | torch.Tensor | torch_data.Dataset) or hasattr(given, "param_groups"):
        return False
    return isinstance(given, Iterable)


def _why_not(given: Any) -> str:
    """Return what an object is that cannot be wrapped, and what to do."""
    name = type(given).__name__
    if given is None:
        return f"None, so there is nothing to wrap: leave it out. {_TAKEN}"
    if isinstance(given, type):
        return f"the class {given.__name__}: make an object of it."
    if hasattr(given, "param_groups") or _has(given, "step", "zero_grad"):
        return (
            f"a {name}, which looks like an optimizer and is not derived from torch.optim.Optimizer, so its state "
            "cannot be kept in checkpoints. Wrap the torch optimizer that it has inside, or derive its class from "
            "torch.optim.Optimizer."
        )
    if isinstance(given, list | tuple):
        return (
            f"a {name} of objects to wrap: give them one by one, `a, b = context.wrap(a, b)`, or with a star, "
            "`models = context.wrap(*models)`."
        )
    if isinstance(given, torch_data.Dataset):
        return f"a {name}. Make a loader of it: DataLoader(dataset, batch_size=...)."
    if isinstance(given, torch.Tensor):
        return f"a {name}. Data that the loop uses whole need no wrapping."
    return f"a {name}. {_TAKEN}"


def _wrap_loader(context: PyTorchRunContext, loader: Any) -> Any:
    if isinstance(loader, WrappedLoader) and loader.loading is not context.loading:
        loader = loader.loader  # of a context of before: its cell runs again
    if isinstance(loader, DataLoader | torch_data.DataLoader):
        check_unshared(f"{_OWNER} was given a loader", loader)
        if not context.loaders:
            loader = _as_configured(context, loader)
    elif iter(loader) is loader:
        warnings.warn(
            f"context.wrap(): a {type(loader).__name__} gives its batches once, so a second epoch has none, and a "
            "trial that is started again begins it anew. Make a list of it, or a DataLoader, for more epochs.",
            UserWarning,
            stacklevel=5,
        )
    wrapped = wrapped_loader(_OWNER, loader, context.loading)
    context.loaders.append(wrapped)
    return wrapped


def _as_configured(context: PyTorchRunContext, loader: Any) -> Any:
    """Return the first loader with the batch size that the configuration says, if it says one."""
    ours, configured = as_ours(loader), context.env.hparams.get(BATCH_SIZE)
    share = context.env.per_slot_batch_size if configured is not None else None
    if configured is None or not ours.plain_batches or ours.batch_size in (configured, share):
        return loader
    warnings.warn(
        f"context.wrap(): hyperparameters.global_batch_size is {configured}, the loader's batch size "
        f"{ours.batch_size}: the configuration wins. Make the loader with "
        "batch_size=context.get_global_batch_size().",
        UserWarning,
        stacklevel=6,
    )
    return ours.with_batch_size(int(configured))


def _is_part(part: Any) -> bool:
    return isinstance(part, torch.nn.Module | torch.optim.Optimizer | torch_data.DataLoader)


def _has(given: Any, *names: str) -> bool:
    return all(callable(getattr(given, name, None)) for name in names)
