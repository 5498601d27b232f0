"""The slots that exist, by machine, and which of them a trial may have. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from det_native.schema.rest import SlotInfo

#: Asks for slots that are shares of processors, where others are GPUs.
PROCESSORS = "cpu"


@dataclass(frozen=True)
class Where:
    """Which slots a trial may have.

    Attributes
    ----------
    accelerator : str
        Type of the GPUs, ``H100``, or ``cpu`` for processors; empty for GPUs of any type, or processors where the
        machines have no GPUs.
    node : str
        Name of a machine, or a label of machines, ``key=value``; empty for any.
    spread : bool
        Over as many machines as possible, not over as few.
    single_node : bool
        Only on one machine.
    """

    accelerator: str = ""
    node: str = ""
    spread: bool = False
    single_node: bool = False

    @property
    def named(self) -> str:
        """What kind of slot is asked for, in words that follow "slots"; empty for any."""
        kind = f" of {self.accelerator}" if self.accelerator else ""
        return f"{kind} on {self.node}" if self.node else kind

    @property
    def names_machine(self) -> bool:
        """Whether only a machine of a certain name will do; a label may be that of several, and of new ones."""
        return bool(self.node) and "=" not in self.node


ANYWHERE = Where()


class Usable:
    """The slots that trials of one kind may have.

    Attributes
    ----------
    by_node : dict of int to tuple of str
        Slots in their order, by the number of the machine.
    largest : int
        Most slots of one machine.
    """

    def __init__(self, by_node: Mapping[int, tuple[str, ...]]) -> None:
        self.by_node = by_node
        self.ids = frozenset(slot for slots in by_node.values() for slot in slots)
        self.largest = max(map(len, by_node.values()), default=0)

    def fits(self, slots: int, *, single_node: bool) -> bool:
        """Whether a trial of so many slots could run if nobody else did."""
        return slots <= (self.largest if single_node else len(self.ids))


class Machines:
    """The slots that exist. What is worked out of them is kept: it is the same for each decision until they change.

    Parameters
    ----------
    slots : iterable of SlotInfo
        Earlier ones are filled first.
    labels : mapping of str to mapping
        Labels of machines, by name.
    """

    def __init__(self, slots: Iterable[SlotInfo], labels: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._slots = {slot.id: slot for slot in slots}
        self._labels = labels or {}
        numbers: dict[str, int] = {}
        #: The number of the machine of each slot, in the order of the slots.
        self.node_of = {slot.id: numbers.setdefault(slot.node, len(numbers)) for slot in self._slots.values()}
        self.position = {slot: position for position, slot in enumerate(self._slots)}
        self._usable: dict[tuple[str, str], Usable] = {}

    @classmethod
    def of(cls, slot_ids: Iterable[str]) -> Machines:
        """Return one machine with these slots."""
        return cls(SlotInfo(id=slot, device="cpu") for slot in slot_ids)

    def __len__(self) -> int:
        """How many slots there are."""
        return len(self._slots)

    def usable(self, where: Where) -> Usable:
        """Return the slots that a trial may have."""
        key = (where.accelerator.casefold(), where.node)
        known = self._usable.get(key)
        if known is None:
            known = self._usable[key] = self._work_out(where)
        return known

    def _work_out(self, where: Where) -> Usable:
        slots = [slot for slot in self._slots.values() if self._is_at(slot, where.node)]
        if where.accelerator:
            slots = [slot for slot in slots if has_accelerator(slot, where.accelerator)]
        elif any(slot.device == "cuda" for slot in slots):
            # A machine without GPUs, the head of the cluster say, would train them very slowly.
            slots = [slot for slot in slots if slot.device == "cuda"]
        by_node: dict[int, list[str]] = {}
        for slot in slots:
            by_node.setdefault(self.node_of[slot.id], []).append(slot.id)
        return Usable({node: tuple(ids) for node, ids in by_node.items()})

    def _is_at(self, slot: SlotInfo, node: str) -> bool:
        if not node or not slot.node or node == slot.node:  # a machine alone was compared at the creation
            return True
        name, is_label, value = node.partition("=")
        return bool(is_label) and self._labels.get(slot.node, {}).get(name) == value


def has_accelerator(slot: SlotInfo, accelerator: str) -> bool:
    """Whether a slot is of such a type, by what the engine or the driver calls it.

    Of a machine alone whose driver tells nothing it is taken for granted.
    """
    wanted = accelerator.casefold()
    if wanted == PROCESSORS:
        return slot.device == "cpu"
    if slot.device == "cpu":
        return False
    unknown = not slot.node and not slot.accelerator and not slot.name
    return unknown or wanted == slot.accelerator.casefold() or wanted in slot.name.casefold()
