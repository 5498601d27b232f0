"""What a loop, or a call's functions, carry from batch to batch, in checkpoints: as the state of a callback of ours."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from types import FrameType
from typing import Any

import numpy as np

from det_native.carried.call import CallNames, unwrapped
from det_native.carried.known import known_of
from det_native.carried.loop import LoopNames
from det_native.pytorch import PyTorchCallback
from det_native.pytorch.native_call import TorchCall
from det_native.pytorch.native_run import PyTorchRunContext

logger = logging.getLogger("det_harness")

_DATA = "data"


def begin_names(context: PyTorchRunContext, frame: FrameType | None) -> None:
    """Look at what the names around a loop that begins lead to; `frame` is the loop's.

    A program whose objects cannot be looked at is trained all the same, and a line says so.
    """
    context.loop_names = None
    if frame is None:
        return
    try:
        context.loop_names = LoopNames(frame, known_of(context), context.device)
    except Exception as error:  # noqa: BLE001 (objects of users may raise anything when they are looked at)
        logger.warning("The loop's variables are not kept in checkpoints, as they cannot be read: %s", error)


def begin_names_of_call(call: TorchCall) -> None:
    """Look at what the functions and callbacks of ``context.fit()`` lead to, before it trains."""
    context = call.context
    roots: dict[str, Any] = {}
    functions = {"train_batch": call.train_batch, "evaluate_batch": call.evaluate_batch}
    for name, given in {**functions, **{f"callbacks.{key}": each for key, each in call.callbacks.items()}}.items():
        for place, value in enumerate(unwrapped(given)):
            roots[f"{name} ({place})" if place else name] = value
    try:
        context.loop_names = CallNames(roots, known_of(context), device=context.device)
    except Exception as error:  # noqa: BLE001 (objects of users may raise anything when they are looked at)
        context.loop_names = None
        logger.warning("What the functions of %s() change is not kept, as it cannot be read: %s", call.name, error)


class NamesKeeper(PyTorchCallback):
    """Keeps the names of the loop, or of a call's functions, in checkpoints.

    Parameters
    ----------
    context : PyTorchRunContext
    """

    def __init__(self, context: PyTorchRunContext) -> None:
        self._context = context
        self._told: set[str] = set()
        self._saved = b""

    def begin(self, frame: FrameType | None) -> None:
        """Begin with the names of a loop as they are now; what cannot be kept is told."""
        begin_names(self._context, frame)
        names = self._context.loop_names
        if names is not None:
            self._tell({name: f"is {what}" for name, what in names.unkept.items()})

    def state_dict(self) -> dict[str, Any]:
        names = self._context.loop_names
        if names is None:
            return {}
        saved = names.save()
        needed = names.needed()
        self._tell({name: why for name, why in saved.lost.items() if name in needed})
        self._saved = _digest(saved.data)
        return {_DATA: np.frombuffer(saved.data, np.uint8)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._tell(put_names(self._context, state_dict, unless_bound=False))

    def state_at_end(self) -> dict[str, Any] | None:
        """Return the state of a loop that has ended, if it is another than that of the last checkpoint."""
        before = self._saved
        if not before:
            return None
        state = self.state_dict()
        return state if self._saved != before else None

    def _tell(self, lost: Mapping[str, str]) -> None:
        for name, why in lost.items():
            if name not in self._told:
                self._told.add(name)
                logger.warning(
                    "`%s` %s, so a trial that is stopped and goes on has it as the cells set it: keep what it is made "
                    "from in other names, or in context.state.",
                    name,
                    why,
                )


def put_names(context: PyTorchRunContext, state: Mapping[str, Any], *, unless_bound: bool) -> dict[str, str]:
    """Put names of a checkpoint back; returns those that are not, each with the reason."""
    names = context.loop_names
    if names is None or _DATA not in state:
        return {}
    lost: dict[str, str] = names.restore(state[_DATA].tobytes(), unless_bound=unless_bound)
    return lost


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data).digest()
