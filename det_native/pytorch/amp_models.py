"""Hooks that cast what goes into and out of a model; objects of classes, so that models stay copyable and picklable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from det_native.pytorch.amp_levels import AmpSettings


def cast_model(model: torch.nn.Module, settings: AmpSettings, device: str) -> None:
    """Cast the weights of a model, and put hooks on its forward, as the settings say."""
    if settings.cast_weights:
        model.to(settings.cast_type)
        if settings.keep_batchnorm:
            for module in model.modules():
                if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                    module.float()
        model.register_forward_pre_hook(_CastInputs(settings.cast_type), with_kwargs=True)
    if settings.autocast_forwards:
        region = _AutocastRegion(device, settings.cast_type)
        model.register_forward_pre_hook(_Enter(region))
        model.register_forward_hook(_Leave(region), always_call=True)
    if settings.output_type is not None:
        model.register_forward_hook(_CastOutputs(settings.output_type))


def autocasts(model: torch.nn.Module) -> bool:
    """Return whether hooks of a model switch autocast on and off, as those of O2 do."""
    return any(isinstance(hook, _Enter) for hook in model._forward_pre_hooks.values())


def floats_to(data: Any, dtype: torch.dtype) -> Any:
    """Cast every floating tensor of a nesting of lists, tuples and dictionaries."""
    if isinstance(data, torch.Tensor):
        return data.to(dtype) if data.is_floating_point() else data
    if isinstance(data, dict):
        return type(data)((key, floats_to(part, dtype)) for key, part in data.items())
    if isinstance(data, Mapping):
        return {key: floats_to(part, dtype) for key, part in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(floats_to(part, dtype) for part in data))
    if isinstance(data, list | tuple):
        return type(data)(floats_to(part, dtype) for part in data)
    return data


class _CastInputs:
    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def __call__(self, model: torch.nn.Module, arguments: Any, keywords: Any) -> Any:
        return floats_to(arguments, self._dtype), floats_to(keywords, self._dtype)


class _CastOutputs:
    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def __call__(self, model: torch.nn.Module, arguments: Any, outputs: Any) -> Any:
        return floats_to(outputs, self._dtype)


class _AutocastRegion:
    """Autocast that is entered and left from two hooks; a model may call itself inside."""

    def __init__(self, device: str, dtype: torch.dtype) -> None:
        self._device = device
        self._dtype = dtype
        self._entered: list[torch.autocast] = []

    def enter(self) -> None:
        region = torch.autocast(self._device, dtype=self._dtype)
        region.__enter__()  # type: ignore[no-untyped-call]
        self._entered.append(region)

    def leave(self) -> None:
        if self._entered:
            self._entered.pop().__exit__(None, None, None)


class _Enter:
    def __init__(self, region: _AutocastRegion) -> None:
        self._region = region

    def __call__(self, model: torch.nn.Module, arguments: Any) -> None:
        self._region.enter()


class _Leave:
    def __init__(self, region: _AutocastRegion) -> None:
        self._region = region

    def __call__(self, model: torch.nn.Module, arguments: Any, outputs: Any) -> None:
        self._region.leave()
