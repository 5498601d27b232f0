"""The slots that trials of one kind may have, as they are shared out."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set

from det_native.master.scheduling.machines import Usable


class Pool:
    """Slots of a kind that are free, and those that will be free soon, by machine.

    Parameters
    ----------
    node_of : mapping of str to int
        The number of the machine of each slot.
    position : mapping of str to int
        The place of each slot in the order in which they are filled.
    taken : set of str
        Slots that are not free.
    coming : iterable of str
        Slots that will be free soon, and that nobody has claimed.
    """

    def __init__(
        self,
        usable: Usable,
        node_of: Mapping[str, int],
        position: Mapping[str, int],
        taken: Set[str],
        coming: Iterable[str],
    ) -> None:
        self.usable = usable
        self._node_of = node_of
        self._position = position
        self.free: dict[int, list[str]] = {}
        free = usable.ids - taken
        nodes = {node_of[slot] for slot in free}
        for node in usable.by_node if nodes else ():
            if node in nodes:
                self.free[node] = [slot for slot in usable.by_node[node] if slot in free]
        self.free_count = len(free)
        self.coming = {slot for slot in coming if slot in usable.ids}
        #: Whether somebody waits for all of it whose turn it is.
        self.closed = False
        # Numbers of machines by how many of their slots are free; some entries are out of date.
        self._by_size: dict[int, list[int]] = defaultdict(list)
        for node, slots in sorted(self.free.items()):
            self._by_size[len(slots)].append(node)

    def can_start(self, slots: int, *, single_node: bool) -> bool:
        """Whether so many are free."""
        return self.best_fit(slots) is not None if single_node else slots <= self.free_count

    def take(self, slots: int, *, spread: bool) -> tuple[str, ...]:
        """Take free slots, which must suffice: of as few machines as possible, or as many; in the order of all."""
        found = list(self._spread(slots) if spread else self._pack(slots))
        return tuple(sorted(found, key=self._position.__getitem__))

    def all_free(self) -> list[str]:
        """Return all free slots."""
        return [slot for slots in self.free.values() for slot in slots]

    def discard(self, slots: Collection[str]) -> None:
        """Leave out slots, free ones or coming ones, that somebody else has got."""
        if len(slots) > self.free_count + len(self.coming):  # most of them are neither
            gone = slots if isinstance(slots, Set) else set(slots)
            slots = [slot for slot in (*self.all_free(), *self.coming) if slot in gone]
        for slot in slots:
            if slot in self.coming:
                self.coming.discard(slot)
            elif slot in self.usable.ids:
                node = self._node_of[slot]
                free = self.free.get(node, [])
                if slot in free:
                    free.remove(slot)
                    self._count(node, -1)

    def first_coming(self, slots: int) -> list[str]:
        """Return so many of the coming slots."""
        return heapq.nsmallest(slots, self.coming, key=self._position.__getitem__)

    def coming_by_node(self) -> dict[int, list[str]]:
        """Return the coming slots of each machine, in order."""
        found: dict[int, list[str]] = {}
        for slot in sorted(self.coming, key=self._position.__getitem__):
            found.setdefault(self._node_of[slot], []).append(slot)
        return found

    def open_on(self, node: int) -> list[str]:
        """Return the free and coming slots of a machine."""
        return [*self.free.get(node, ()), *(slot for slot in self.usable.by_node[node] if slot in self.coming)]

    def _pack(self, slots: int) -> Iterator[str]:
        while slots:
            node = self.best_fit(slots)
            if node is None:
                node = self._roomiest()
            free = self.free[node]
            taken, rest = free[:slots], free[slots:]
            self.free[node] = rest
            self._count(node, -len(taken))
            slots -= len(taken)
            yield from taken

    def _spread(self, slots: int) -> Iterator[str]:
        while slots:  # a round takes one of each machine, those with the most first
            served: list[int] = []
            while slots and (node := self._roomiest()) >= 0:
                yield self.free[node].pop(0)
                self.free_count -= 1
                slots -= 1
                served.append(node)
                heapq.heappop(self._by_size[len(self.free[node]) + 1])  # not again in this round
            for node in served:
                self._count(node, 0)

    def _count(self, node: int, change: int) -> None:
        """Note how many slots of a machine are free now."""
        self.free_count += change
        left = len(self.free[node])
        if left:
            heapq.heappush(self._by_size[left], node)
        else:
            del self.free[node]

    def best_fit(self, slots: int) -> int | None:
        """Return the machine with the fewest free slots that suffice."""
        for size in range(slots, self.usable.largest + 1):
            node = self._first_of(size)
            if node is not None:
                return node
        return None

    def _roomiest(self) -> int:
        """Return the machine with the most free slots, -1 where none has any."""
        for size in range(self.usable.largest, 0, -1):
            node = self._first_of(size)
            if node is not None:
                return node
        return -1

    def _first_of(self, size: int) -> int | None:
        """Return the first machine with so many free slots."""
        heap = self._by_size.get(size)
        while heap:
            if len(self.free.get(heap[0], ())) == size:
                return heap[0]
            heapq.heappop(heap)
        return None
