"""The experiment that this process has begun last: what a function that trains has not returned is at hand by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from det_native.errors import ArgumentError
from det_native.runtime import Later, active_host

if TYPE_CHECKING:
    from det_native.client.handles import Experiment

_begun: list[Experiment | Later] = []


def note_begun(experiment: Experiment | Later) -> None:
    """Note that an experiment was begun here, or submitted from here."""
    _begun[:] = [experiment]


def last_experiment() -> Any:
    """Return the handle of the experiment that was begun last in this process, here or on the cluster.

    Where a function contains the training, and does not return its handle, this has it.

    Returns
    -------
    Experiment

    Raises
    ------
    ArgumentError
        If none was begun since the kernel has started.

    Examples
    --------
    >>> train(model, loader)  # has a loop over context.epochs() in it
    >>> det.last_experiment().plot()
    """
    host = active_host()
    if host is not None:
        return host.stand_in("det.last_experiment()")
    if not _begun:
        raise ArgumentError(
            "det.last_experiment(): this process has begun no experiment. det.experiments() lists those of before; "
            "det.attach(7) returns one by its number."
        )
    last = _begun[0]
    return last.make() if isinstance(last, Later) else last
