"""The hooks of a trial's callbacks: which there are, on which rank they run, and how they are called."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from det_native.errors import TrialDefinitionError
from det_native.pytorch import PyTorchCallback

logger = logging.getLogger("det_harness")

_HOOKS = tuple(name for name in vars(PyTorchCallback) if name.startswith("on_"))
_EPOCH_HOOKS = ("on_training_epoch_start", "on_training_epoch_end")
_RANK_ZERO_ONLY = frozenset({"on_validation_end", "on_validation_step_end", "on_checkpoint_end"})


class CallbackHooks:
    """Calls the hooks that the callbacks of a trial override, in the order of the callbacks.

    Raises
    ------
    TrialDefinitionError
        If `callbacks` is anything but callbacks by name.
    """

    def __init__(self, owner: str, callbacks: Any, *, rank_zero: bool) -> None:
        if not isinstance(callbacks, Mapping) or not all(
            isinstance(name, str) and isinstance(one, PyTorchCallback) for name, one in callbacks.items()
        ):
            raise TrialDefinitionError(
                f"{owner}.build_callbacks() must return a dictionary of det.pytorch.PyTorchCallback objects by name, "
                f"not {_described(callbacks)}."
            )
        self.callbacks: dict[str, PyTorchCallback] = dict(callbacks)
        for name, callback in self.callbacks.items():
            _check_parameters(name, callback)
        self._methods = {
            hook: [
                _adapted(getattr(callback, hook))
                for callback in self.callbacks.values()
                if _overrides(callback, hook) and (rank_zero or hook not in _RANK_ZERO_ONLY)
            ]
            for hook in _HOOKS
        }
        for callback in self.callbacks.values():
            _warn(callback)

    def of(self, hook: str) -> list[Callable[..., Any]]:
        """Return the methods that are called for a hook."""
        return self._methods[hook]

    @property
    def in_use(self) -> bool:
        """Whether there is a method for any hook."""
        return any(self._methods.values())

    def call(self, hook: str, *arguments: Any) -> None:
        """Call a hook of every callback that overrides it."""
        for method in self._methods[hook]:
            method(*arguments)

    def call_with_metrics(self, hook: str, metrics: dict[str, Any]) -> None:
        """Call a hook, with a copy of the metrics for each callback."""
        for method in self._methods[hook]:
            method(dict(metrics))


def _overrides(callback: PyTorchCallback, hook: str) -> bool:
    return getattr(type(callback), hook) is not getattr(PyTorchCallback, hook) or hook in vars(callback)


def _check_parameters(name: str, callback: PyTorchCallback) -> None:
    """Refuse hooks that take other parameters than they are called with, some of them after hours only."""
    for hook in _HOOKS:
        given = list(inspect.signature(getattr(PyTorchCallback, hook)).parameters)[1:]
        method = getattr(callback, hook)
        if not _overrides(callback, hook):
            continue
        try:
            signature = inspect.signature(method)
            if hook not in _EPOCH_HOOKS or signature.parameters:
                signature.bind(*given)
        except ValueError:
            continue  # not a function of Python's
        except TypeError as error:
            raise TrialDefinitionError(
                f"{type(callback).__name__}.{hook}() of the callback '{name}' must take "
                f"({', '.join(['self', *given])}): {error}."
            ) from None


def _adapted(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let an epoch's hook be written without its argument, as it was when it was new."""
    if method.__name__ not in _EPOCH_HOOKS:
        return method
    if inspect.signature(method).parameters:
        return method
    return lambda epoch_idx: method()


def _warn(callback: PyTorchCallback) -> None:
    name = type(callback).__name__
    if _overrides(callback, "on_before_optimizer_step"):
        warnings.warn(
            f"{name}.on_before_optimizer_step() is deprecated: give context.step_optimizer() a function, "
            "clip_grads=..., instead.",
            DeprecationWarning,
            stacklevel=2,
        )
    for hook in dir(type(callback)):
        if hook.startswith("on_") and hook not in _HOOKS:
            logger.warning(
                "%s.%s() is not called: it is no hook of det.pytorch.PyTorchCallback, whose hooks are %s.",
                name,
                hook,
                ", ".join(_HOOKS),
            )


def _described(callbacks: Any) -> str:
    if not isinstance(callbacks, Mapping):
        return type(callbacks).__name__
    strange = next(one for one in callbacks.values() if not isinstance(one, PyTorchCallback))
    return f"a dictionary with {type(strange).__name__} in it"
