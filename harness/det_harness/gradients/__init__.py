"""What exchanges the gradients of a trial's ranks; see ``det_native.pytorch.gradients.Gradients``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from det_harness.exchange import Exchange
    from det_native.pytorch.gradients import Gradients


def gradients_of(exchange: Exchange, config: dict[str, Any]) -> Gradients:
    """Return what exchanges the gradients of the ranks that `exchange` connects.

    Parameters
    ----------
    exchange : Exchange
    config : dict
        The experiment configuration; ``optimizations.gradient_compression`` is used.
    """
    if exchange.size == 1:
        from det_native.pytorch.gradients import LocalGradients

        return LocalGradients()
    from det_harness.gradients.group import GroupGradients

    optimizations = config.get("optimizations") or {}
    return GroupGradients(exchange.size, compress=bool(optimizations.get("gradient_compression", False)))
