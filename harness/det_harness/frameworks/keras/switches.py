"""Code that switches eager execution off in the user's process: it is started over in one of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from det_harness.trial.services import OwnProcessNeededError
from det_native.keras.switches import intercepted


@contextmanager
def needing_own_process(what: str) -> Iterator[None]:
    """Raise in the block, at the first switch, that `what` needs a process of its own.

    Raises
    ------
    OwnProcessNeededError
    """

    def refuse(name: str) -> None:
        raise OwnProcessNeededError(f"{what} calls tf.compat.v1.{name}(), which could not be undone in this process")

    with intercepted(refuse):
        yield
