"""The slots that exist now: those that the master was started with, or those of a cluster, which come and go."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from det_native.master.launch.base import Cluster, Launcher
from det_native.master.scheduling.machines import Machines
from det_native.schema.cluster import NodeInfo
from det_native.schema.resources import Device
from det_native.schema.rest import SlotInfo


class Slots:
    """The slots that exist now. Only the decision thread changes them; others read what is there.

    Parameters
    ----------
    launcher : Launcher
        One of several machines says itself which there are.
    fixed : sequence of SlotInfo
        Those of one machine.

    Attributes
    ----------
    cluster : Cluster or None
        None on one machine.
    machines : Machines
        The slots, as the scheduler needs them.
    trouble : str
        Why nothing can be started now, a sentence; empty if all is well.
    """

    def __init__(self, launcher: Launcher, fixed: Sequence[SlotInfo]) -> None:
        self.cluster = launcher if isinstance(launcher, Cluster) else None
        self.now: tuple[SlotInfo, ...] = tuple(fixed)
        self.nodes: tuple[NodeInfo, ...] = ()
        self.machines = Machines(self.now)
        self.trouble = ""
        self._slots: list[SlotInfo] = []
        self._nodes: list[NodeInfo] = []
        self._gone: dict[str, SlotInfo] = {}
        self.look()

    def look(self, held: Collection[str] = ()) -> bool:
        """See what the cluster has now; whether that has changed. Of slots that are gone, those `held` are remembered.

        A launcher returns the same lists, or lists of the same objects, as long as nothing changes: that is quick.
        """
        if self.cluster is None:
            return False
        slots, nodes, trouble = self.cluster.slots(), self.cluster.nodes(), self.cluster.trouble()
        if (slots, nodes, trouble) == (self._slots, self._nodes, self.trouble):
            return False
        if held:
            known = {slot.id: slot for slot in (*self._gone.values(), *self.now)}
            exist = {slot.id for slot in slots}
            self._gone = {slot: known[slot] for slot in held if slot in known and slot not in exist}
        else:
            self._gone = {}
        self._slots, self._nodes = list(slots), list(nodes)
        self.now, self.nodes, self.trouble = tuple(slots), tuple(nodes), trouble
        self.machines = Machines(self.now, {node.name: node.labels for node in nodes})
        return True

    @property
    def notices(self) -> list[str]:
        """Sentences on what stands in the way of training on the machines of a cluster now."""
        machines = [
            f"No trial can run on the machine {node.name}: {node.trouble}" for node in self.nodes if node.trouble
        ]
        return [self.trouble, *machines] if self.trouble else machines

    def with_held(self, held: Collection[str]) -> list[SlotInfo]:
        """Return the slots that exist, and after them those that are gone with a trial that still holds them."""
        exist = {slot.id for slot in self.now}
        gone = self._gone
        return [*self.now, *(gone.get(slot) or _unknown(slot) for slot in held if slot not in exist)]

    def device_of(self, slots: Collection[str]) -> Device:
        """Return what slots of a cluster are, ``cuda`` or ``cpu``."""
        return "cuda" if any(slot.device == "cuda" for slot in self.now if slot.id in slots) else "cpu"

    def machines_of(self, slots: Collection[str]) -> int:
        """Return on how many machines slots are."""
        return len({slot.node for slot in self.now if slot.id in slots})


def _unknown(slot: str) -> SlotInfo:
    """Return a slot of which an earlier master has known more; it was called ``cuda:0`` or ``<machine>/0``."""
    device, _, _ = slot.partition(":")
    return SlotInfo(id=slot, device="cuda" if device == "cuda" else "cpu", node=slot.rpartition("/")[0])
