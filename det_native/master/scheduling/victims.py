"""Which running trials make room for one whose turn it is. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property
from itertools import islice
from operator import attrgetter

from det_native.master.scheduling.facts import Pending, Policy, Running
from det_native.master.scheduling.holders import Holders
from det_native.master.scheduling.machines import Machines, Usable

#: By fair share it hangs on who asks what can be spared: so few machines are compared.
_MACHINES_COMPARED = 8

_Look = Callable[[int], tuple[tuple[int, int, int], list[Running]] | None]


class Victims:
    """The running trials, as they may be asked to make room.

    Parameters
    ----------
    ending : set of int
        Trials that were asked already; it grows.
    kept : Counter
        Slots by experiment, as they change.
    """

    def __init__(
        self, running: list[Running], policy: Policy, ending: Set[int], machines: Machines, kept: Counter[int]
    ) -> None:
        self._kept = kept
        self._running = running
        self._by_priority = policy is Policy.PRIORITY
        self._ending = ending
        self._machines = machines
        # By usable slots: what was too much before, the number of slots and the priority, or share, of the trial.
        self._hopeless: dict[int, tuple[int, float]] = {}
        # By usable slots and number of slots: machines that may have room for that.
        self._able: dict[tuple[int, int], dict[int, None]] = {}
        # By usable slots, number of slots and priority: machines by what it costs to make room there, when last seen.
        self._costs: dict[tuple[int, int, int], list[tuple[tuple[int, int, int], int]]] = {}

    def newest_first(self, trials: Iterable[Running]) -> list[Running]:
        """Return those that can be asked, the newest first."""
        able = [one for one in trials if one.slot_ids and one.trial_id not in self._ending]
        return sorted(able, key=attrgetter("started", "trial_id"), reverse=True)

    @cached_property
    def _ordered(self) -> list[Running]:
        """All of them: by priority the least important first, the newest of equals."""
        found = self.newest_first(self._running)
        return sorted(found, key=attrgetter("level"), reverse=True) if self._by_priority else found

    @cached_property
    def _all_turns(self) -> Holders:
        return Holders(self._ordered, self._ending, self._kept)

    def changed(self, number: int) -> None:
        """Note that an experiment holds another number of slots than before."""
        if "_all_turns" in self.__dict__:
            self._all_turns.changed(number)

    @cached_property
    def _on_node(self) -> dict[int, list[Running]]:
        found: dict[int, list[Running]] = {}
        for one in self._ordered:
            for node in {self._machines.node_of[slot] for slot in one.slot_ids if slot in self._machines.node_of}:
                found.setdefault(node, []).append(one)
        return found

    @cached_property
    def _least_important(self) -> int:
        return max((one.level for one in self._running), default=0)

    def anywhere(
        self, trial: Pending, lacking: int, usable: Usable, closed: Set[str], kept: Counter[int]
    ) -> list[Running] | None:
        """Return the trials that make room of so many slots for a trial, None if those that may do not suffice.

        Slots that the trial cannot use, or that wait with another one, do not count.
        """
        if self._by_priority and self._least_important <= trial.level:
            return None
        while self._by_priority and self._ordered and self._ordered[0].trial_id in self._ending:
            del self._ordered[0]
        whole = len(usable.ids) == len(self._machines) and not closed

        def gain(one: Running) -> int:
            if whole:
                return sum(slot in usable.ids for slot in one.slot_ids)
            return sum(slot in usable.ids and slot not in closed for slot in one.slot_ids)

        return self._chosen(self._ordered, trial, lacking, gain, kept)

    def on_one_machine(
        self, trial: Pending, room: Mapping[int, int], usable: Usable, closed: Set[str], kept: Counter[int]
    ) -> list[Running] | None:
        """Return the trials that make room for a trial on the machine where that costs least; None if on none.

        Parameters
        ----------
        room : mapping of int to int
            How many slots lack on machines of which some are free.
        kept : Counter
            Slots by experiment.
        """
        claim = float(trial.level) if self._by_priority else (kept[trial.experiment_id] + trial.slots) / trial.weight
        slots, before = self._hopeless.get(id(usable), (trial.slots + 1, 0.0))
        if (self._by_priority and self._least_important <= trial.level) or (trial.slots >= slots and claim >= before):
            return None

        key = (id(usable), trial.slots)
        able = self._able.get(key)
        if able is None:
            able = self._able[key] = {node: None for node, ids in usable.by_node.items() if len(ids) >= trial.slots}
        spent: list[int] = []

        def here(node: int) -> tuple[tuple[int, int, int], list[Running]] | None:
            lacking = room.get(node, trial.slots)
            found = self._on(node, trial, lacking, usable, closed, kept)
            if found is None:
                if self._left_on(node, usable, closed) < lacking:
                    spent.append(node)
                return None
            lost = sum(len(one.slot_ids) for one in found)
            return (-min(one.level for one in found) if self._by_priority else 0, lost, len(found)), found

        by_priority = self._by_priority
        best = self._cheapest(trial, usable, able, room, here) if by_priority else self._one_of_some(able, here)
        for node in spent:  # what is left there becomes no more, whoever asks
            able.pop(node, None)
        if best is None:
            self._hopeless[id(usable)] = trial.slots, claim
        return best

    def _on(
        self, node: int, trial: Pending, lacking: int, usable: Usable, closed: Set[str], kept: Counter[int]
    ) -> list[Running] | None:
        ids = set(usable.by_node[node]) - closed
        return self._chosen(
            self._on_node.get(node, []), trial, lacking, lambda one: sum(slot in ids for slot in one.slot_ids), kept
        )

    def _left_on(self, node: int, usable: Usable, closed: Set[str]) -> int:
        """Return how many slots trials hold on a machine that have not been asked."""
        ids = set(usable.by_node[node]) - closed
        left = (one for one in self._on_node.get(node, ()) if one.trial_id not in self._ending)
        return sum(slot in ids for one in left for slot in one.slot_ids)

    def _least_cost(self, node: int, lacking: int) -> tuple[int, int, int]:
        """Return what it costs at the least to make room on a machine."""
        there = self._on_node.get(node, ())
        level = max((one.level for one in there), default=0)
        largest = max((len(one.slot_ids) for one in there), default=1)
        return -level, lacking, -(-lacking // largest)

    def _cheapest(
        self, trial: Pending, usable: Usable, able: Iterable[int], room: Mapping[int, int], here: _Look
    ) -> list[Running] | None:
        """Return the victims on the machine where the least important end, and the fewest.

        What each costs, or would at the least, is remembered for the next trial of this kind, and looked at again
        where it may be the one.
        """
        key = (id(usable), trial.slots, trial.level)
        costs = self._costs.get(key)
        if costs is None:
            costs = self._costs[key] = [
                (self._least_cost(node, room.get(node, trial.slots)), node) for node in able if node in self._on_node
            ]
            heapq.heapify(costs)
        while costs:
            cost, node = heapq.heappop(costs)
            now = here(node)
            if now is None:
                continue
            heapq.heappush(costs, (now[0], node))
            if now[0] <= cost:
                return now[1]
        return None

    def _one_of_some(self, able: Iterable[int], here: _Look) -> list[Running] | None:
        """Return the victims on the machine that loses least among the first ones where some can be spared."""
        some = islice((seen for node in able if (seen := here(node)) is not None), _MACHINES_COMPARED)
        return min(some, key=lambda seen: seen[0], default=(None, None))[1]

    def _chosen(
        self,
        candidates: list[Running],
        trial: Pending,
        lacking: int,
        gain: Callable[[Running], int],
        kept: Counter[int],
    ) -> list[Running] | None:
        """Return the victims among candidates, each of which makes room of `gain` slots."""
        if self._by_priority:
            found, gained = self._least_important_first(candidates, trial, lacking, gain)
        else:
            found, gained = self._by_turns(candidates, trial, lacking, gain, kept)
        if gained < lacking:
            return None
        superfluous = set()
        for one in reversed(found[:-1]):  # one that was taken before a large one may not be needed beside it
            if gained - gain(one) >= lacking:
                gained -= gain(one)
                superfluous.add(one.trial_id)
        return [one for one in found if one.trial_id not in superfluous]

    def _least_important_first(
        self, candidates: list[Running], trial: Pending, lacking: int, gain: Callable[[Running], int]
    ) -> tuple[list[Running], int]:
        found: list[Running] = []
        gained = 0
        for one in candidates:
            if gained >= lacking or one.level <= trial.level:
                break
            if one.trial_id not in self._ending and (more := gain(one)):
                found.append(one)
                gained += more
        return found, gained

    def _by_turns(
        self,
        candidates: list[Running],
        trial: Pending,
        lacking: int,
        gain: Callable[[Running], int],
        kept: Counter[int],
    ) -> tuple[list[Running], int]:
        """Take from whoever holds most in proportion to its weight, the newest of equals, as long as it can spare it.

        One can spare a trial if it then holds no less, by weight, than the one that gets the slots holds with them.
        """
        share = (kept[trial.experiment_id] + trial.slots) / trial.weight
        if candidates is self._ordered:
            turns = self._all_turns
            turns.refresh(kept)
        else:
            turns = Holders(candidates, self._ending, kept)
        return turns.spare(trial, share, lacking, gain)
