"""The snapshot of a loop, or of a call: what the wrapped objects have is in files of its own of a checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from det_harness.trial import heap_file
from det_native.pytorch.native_call import TorchCall
from det_native.pytorch.native_run import PyTorchRunContext

logger = logging.getLogger("det_harness")


def begin_loop(context: PyTorchRunContext, frame: FrameType | None) -> None:
    """Take the snapshot of a loop that begins; `frame` is the loop's."""
    _begin(context, frame, {})


def begin_call(call: TorchCall) -> None:
    """Take the snapshot of a call of ``context.fit()``, before it trains."""
    functions = {"train_batch": call.train_batch, "evaluate_batch": call.evaluate_batch}
    _begin(call.context, None, functions | {f"callbacks.{name}": value for name, value in call.callbacks.items()})


def _begin(context: PyTorchRunContext, frame: FrameType | None, given: Mapping[str, Any]) -> None:
    context.snapshot = None
    loaders = {f"loader {number}": loader.plain for number, loader in enumerate(context.loaders)}
    try:
        schedulers = [wrapped.scheduler for wrapped in context.lr_schedulers]
        objects = {"optimizers": context.optimizers, "schedulers": schedulers, "scalers": context.scalers}
        named = {f"{name}[{number}]": each for name, of_kind in objects.items() for number, each in enumerate(of_kind)}
        given = {"state": context.state, **given, **loaders, **named}
        context.snapshot = heap_file.snapshot_of(given, context.env, _kept_elsewhere(context), frame)
    except Exception as error:  # noqa: BLE001 (objects of users may raise anything when they are read)
        logger.warning("Variables that the training changes are not kept, as they cannot be read: %s", error)


def _kept_elsewhere(context: PyTorchRunContext) -> Iterator[Any]:
    """Yield what checkpoints have in files of their own; schedulers and scalers have a few numbers, and come whole."""
    for model in context.models:
        yield from model.parameters()
        yield from model.buffers()
    yield from context.optimizers
