"""The arguments of ``configure_apex_amp``, checked, and what the levels O0 to O3 make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from det_native.errors import ArgumentError

LossScale = float | Literal["dynamic"]

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_LEVELS = ("O0", "O1", "O2", "O3")


@dataclass(frozen=True)
class AmpSettings:
    """What is done for a level and its overrides.

    Attributes
    ----------
    cast_type : torch.dtype
        What is cast to: float16 on a GPU, bfloat16 on a CPU, unless the caller says.
    autocast_everywhere : bool
        Autocast around ``train_batch`` and the evaluation (O1).
    autocast_forwards : bool
        Autocast in the forwards of the models only (O2).
    cast_weights : bool
        The weights themselves are of the cast type (O3).
    keep_batchnorm : bool
        With `cast_weights`: batch norms keep float32.
    output_type : torch.dtype or None
        What the models' outputs are cast to.
    loss_scale : float or "dynamic"
        1.0: losses are not scaled.
    min_loss_scale, max_loss_scale : float or None
        Bounds of a dynamic scale.
    """

    opt_level: str
    cast_type: torch.dtype
    autocast_everywhere: bool
    autocast_forwards: bool
    cast_weights: bool
    keep_batchnorm: bool
    output_type: torch.dtype | None
    loss_scale: LossScale
    num_losses: int
    min_loss_scale: float | None
    max_loss_scale: float | None

    def __str__(self) -> str:
        kind = str(self.cast_type).removeprefix("torch.")
        what = {
            "O0": "float32 everywhere",
            "O1": f"float32 weights, autocast to {kind}",
            "O2": f"float32 weights, the models' forwards autocast to {kind}",
            "O3": f"{kind} weights",
        }[self.opt_level]
        scale = "the loss is not scaled" if self.loss_scale == 1.0 else f"loss scale {self.loss_scale}"
        return f"{self.opt_level}: {what}, {scale}"


def resolve(
    device: torch.device,
    *,
    opt_level: str | None,
    cast_model_type: torch.dtype | None,
    patch_torch_functions: bool | None,
    keep_batchnorm_fp32: bool | str | None,
    master_weights: bool | None,
    loss_scale: float | str | None,
    cast_model_outputs: torch.dtype | None,
    num_losses: int | None,
    min_loss_scale: float | None,
    max_loss_scale: float | None,
) -> AmpSettings:
    """Return the settings for the arguments of ``configure_apex_amp``.

    Raises
    ------
    ArgumentError
        If an argument has no meaning, or two contradict each other.
    """
    level = "O1" if opt_level is None else opt_level
    if level not in _LEVELS:
        raise ArgumentError(f'opt_level must be "O0", "O1", "O2" or "O3", not {opt_level!r}.')
    for name, kind in (("cast_model_type", cast_model_type), ("cast_model_outputs", cast_model_outputs)):
        if kind is not None and kind not in _TYPES:
            raise ArgumentError(f"{name} must be torch.float16, torch.bfloat16 or torch.float32, not {kind!r}.")
    batchnorm = _flag("keep_batchnorm_fp32", keep_batchnorm_fp32)
    _check_weights(level, batchnorm, master_weights)
    cast_type = cast_model_type or (torch.float16 if device.type == "cuda" else torch.bfloat16)
    casts = cast_type is not torch.float32
    if isinstance(num_losses, bool) or not isinstance(num_losses, int) or num_losses < 1:
        raise ArgumentError(f"num_losses must be a whole number of at least 1, not {num_losses!r}.")
    patched = level == "O1" if patch_torch_functions is None else patch_torch_functions
    return AmpSettings(
        opt_level=level,
        cast_type=cast_type,
        autocast_everywhere=casts and patched,
        autocast_forwards=casts and level == "O2",
        cast_weights=casts and level == "O3",
        keep_batchnorm=bool(batchnorm),
        output_type=cast_model_outputs or (torch.float32 if level in ("O2", "O3") and casts else None),
        loss_scale=_loss_scale(level, loss_scale, cast_type),
        num_losses=num_losses,
        min_loss_scale=min_loss_scale,
        max_loss_scale=max_loss_scale,
    )


def _flag(name: str, value: bool | str | None) -> bool | None:
    if value in ("True", "False"):
        return value == "True"
    if value is None or isinstance(value, bool):
        return value
    raise ArgumentError(f'{name} must be True, False, "True" or "False", not {value!r}.')


def _check_weights(level: str, batchnorm: bool | None, master_weights: bool | None) -> None:
    if level == "O3" and master_weights:
        raise ArgumentError(
            "master_weights=True contradicts opt_level O3, which keeps no float32 weights: use O2, whose weights are "
            "float32."
        )
    if level != "O3":
        for name, value in (("keep_batchnorm_fp32", batchnorm), ("master_weights", master_weights)):
            if value is False and level != "O0":
                raise ArgumentError(
                    f"{name}=False contradicts opt_level {level}, which is torch.autocast with float32 weights here: "
                    "leave it out, or use O3."
                )


def _loss_scale(level: str, given: float | str | None, cast_type: torch.dtype) -> LossScale:
    if given is None:
        # bfloat16 has the range of float32: its gradients do not underflow.
        return "dynamic" if level in ("O1", "O2") and cast_type is torch.float16 else 1.0
    scale: LossScale = "dynamic" if given == "dynamic" else _number(given)
    if level == "O3" and scale != 1.0:
        raise ArgumentError(
            f"loss_scale={given!r} contradicts opt_level O3, whose gradients are not float32 and cannot be unscaled: "
            "leave it out, or use O2."
        )
    return scale


def _number(given: Any) -> float:
    try:
        scale = float(given)
    except (TypeError, ValueError):
        scale = 0.0
    if not 0 < scale < float("inf") or isinstance(given, bool):
        raise ArgumentError(f'loss_scale must be a positive number or "dynamic", not {given!r}.')
    return scale
