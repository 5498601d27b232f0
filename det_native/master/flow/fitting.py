"""Whether trials could ever run here: asked when an experiment is created, so that only what is certain is refused."""

from __future__ import annotations

import platform
import socket

from det_native.errors import ArgumentError
from det_native.master.flow.slots import Slots
from det_native.master.scheduling.machines import has_accelerator
from det_native.schema.resources import Resources


def check_fits(resources: Resources, slots: Slots) -> None:
    """Refuse an experiment whose trials could never run on this machine.

    A cluster may get what it does not have yet: there they wait.

    Raises
    ------
    ArgumentError
        If they need more slots than it has, GPUs of another type, or another machine.
    """
    wanted = resources.slots_per_trial
    if slots.cluster is not None or wanted == 0:
        return
    if wanted > len(slots.now):
        total = len(slots.now)
        has = f"{total} slot" if total == 1 else f"{total} slots"
        raise ArgumentError(
            f"resources.slots_per_trial: {wanted} slots for each trial, but the cluster has {has}: ask for at most "
            f"{total}, or start it again with more: `det down`, then `det up --slots {wanted}`."
        )
    if resources.node and resources.node.casefold() not in _own_names():
        raise ArgumentError(
            f"resources.node: {resources.node!r} is not this machine, {platform.node()}, the only one of this master: "
            "leave it out, or name the master of a cluster."
        )
    accelerator = resources.accelerator
    if accelerator:
        able = sum(has_accelerator(slot, accelerator) for slot in slots.now)
        if able < wanted:
            kinds = " and ".join(sorted({slot.name or slot.device for slot in slots.now}))
            raise ArgumentError(
                f"resources.accelerator: {wanted} of {accelerator} for each trial, but this machine has "
                f"{able or 'none'} of them among its slots ({kinds}): leave it out, or name the master of a cluster."
            )


def _own_names() -> set[str]:
    """Return what this machine may be called."""
    names = {platform.node(), socket.gethostname(), "localhost"}
    return {form.casefold() for name in names for form in (name, name.partition(".")[0])}
