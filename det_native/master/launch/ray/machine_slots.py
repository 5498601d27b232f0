"""The slots of the machines of a cluster, by name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from det_native.schema.cluster import NodeInfo
from det_native.schema.rest import SlotInfo


def open_slots(nodes: Sequence[NodeInfo], used: Collection[str]) -> list[SlotInfo]:
    """Return the slots that no other program holds, those of a node together; those in use by us come first.

    Parameters
    ----------
    used : collection of str
        Names of the slots of our runs.
    """
    slots = []
    for node in nodes:
        names = [f"{node.name}/{number}" for number in range(node.slots)]
        chosen = set(sorted(names, key=lambda name: name not in used)[: node.free])
        slots += [
            SlotInfo(id=name, device=node.device, node=node.name, accelerator=node.accelerator)
            for name in names
            if name in chosen
        ]
    return slots
