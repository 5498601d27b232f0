"""Which running trials make room for one whose turn it is. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property
from itertools import islice

from det_native.master.scheduling.facts import Pending, Policy, Running
from det_native.master.scheduling.machines import Machines, Usable

#: By fair share it hangs on who asks what can be spared: so few machines are compared.
_MACHINES_COMPARED = 8

_Look = Callable[[int], tuple[tuple[int, int, int], list[Running]] | None]


class Victims:
    """The running trials, as they may be asked to make room.

    Parameters
    ----------
    running : list of Running
    policy : Policy
    ending : set of int
        Trials that were asked already; it grows.
    machines : Machines
    """

    def __init__(self, running: list[Running], policy: Policy, ending: Set[int], machines: Machines) -> None:
        self._running = running
        self._by_priority = policy is Policy.PRIORITY
        self._ending = ending
        self._machines = machines
        # By usable slots: what was too much before, the number of slots and the priority, or share, of the trial.
        self._hopeless: dict[int, tuple[int, float]] = {}
        # By usable slots, number of slots and priority: machines by what it costs to make room there, when last seen.
        self._costs: dict[tuple[int, int, int], list[tuple[tuple[int, int, int], int]]] = {}

    def newest_first(self, trials: Iterable[Running]) -> list[Running]:
        """Return those that can be asked, the newest first."""
        able = [one for one in trials if one.slot_ids and one.trial_id not in self._ending]
        return sorted(able, key=lambda one: (one.started, one.trial_id), reverse=True)

    @cached_property
    def _ordered(self) -> list[Running]:
        """All of them: by priority the least important first, the newest of equals."""
        found = self.newest_first(self._running)
        return sorted(found, key=lambda one: -one.level) if self._by_priority else found

    @cached_property
    def _of_experiments(self) -> dict[int, list[tuple[int, Running]]]:
        return _by_experiment(self._ordered)

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
        trial : Pending
        room : mapping of int to int
            How many slots lack on machines of which some are free.
        usable : Usable
        closed : set of str
        kept : Counter
            Slots by experiment.
        """
        claim = float(trial.level) if self._by_priority else (kept[trial.experiment_id] + trial.slots) / trial.weight
        slots, before = self._hopeless.get(id(usable), (trial.slots + 1, 0.0))
        if (self._by_priority and self._least_important <= trial.level) or (trial.slots >= slots and claim >= before):
            return None

        def here(node: int) -> tuple[tuple[int, int, int], list[Running]] | None:
            found = self._on(node, trial, room.get(node, trial.slots), usable, closed, kept)
            if found is None:
                return None
            lost = sum(len(one.slot_ids) for one in found)
            return (-min(one.level for one in found) if self._by_priority else 0, lost, len(found)), found

        best = self._cheapest(trial, usable, here) if self._by_priority else self._one_of_some(trial, usable, here)
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

    def _cheapest(self, trial: Pending, usable: Usable, here: _Look) -> list[Running] | None:
        """Return the victims on the machine where the least important end, and the fewest.

        What each costs is remembered for the next trial of this kind, and looked at again where it may be the one.
        """
        key = (id(usable), trial.slots, trial.level)
        costs = self._costs.get(key)
        if costs is None:
            able = (node for node, ids in usable.by_node.items() if len(ids) >= trial.slots)
            costs = self._costs[key] = [(seen[0], node) for node in able if (seen := here(node)) is not None]
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

    def _one_of_some(self, trial: Pending, usable: Usable, here: _Look) -> list[Running] | None:
        """Return the victims on the machine that loses least among the first ones where some can be spared."""
        able = (node for node, ids in usable.by_node.items() if len(ids) >= trial.slots)
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
        groups = self._of_experiments if candidates is self._ordered else _by_experiment(candidates)
        left = {number: kept[number] for number in groups if number != trial.experiment_id}
        # Groups by what they hold; those that hold no more than the trial would cannot spare anything.
        heap = [(-held / groups[number][0][1].weight, number) for number, held in left.items()]
        heap = [entry for entry in heap if -entry[0] > share]
        heapq.heapify(heap)
        taken: set[int] = set()
        found: list[Running] = []
        gained = 0

        def spared(number: int) -> tuple[int, Running, int] | None:
            for age, one in groups[number]:
                if one.trial_id in taken or one.trial_id in self._ending:
                    continue
                if (left[number] - len(one.slot_ids)) / one.weight >= share and (more := gain(one)):
                    return age, one, more
            return None

        while gained < lacking and heap:
            most = heap[0][0]
            equals = []
            while heap and heap[0][0] == most:
                number = heapq.heappop(heap)[1]
                if (candidate := spared(number)) is not None:
                    equals.append(candidate)
            if not equals:
                continue
            _, one, more = min(equals, key=lambda candidate: candidate[0])
            for other in equals:
                if other[1] is not one:
                    heapq.heappush(heap, (most, other[1].experiment_id))
            taken.add(one.trial_id)
            found.append(one)
            gained += more
            left[one.experiment_id] -= len(one.slot_ids)
            heapq.heappush(heap, (-left[one.experiment_id] / one.weight, one.experiment_id))
        return found, gained


def _by_experiment(trials: Iterable[Running]) -> dict[int, list[tuple[int, Running]]]:
    """Return trials by experiment, each with its place among all."""
    found: dict[int, list[tuple[int, Running]]] = {}
    for age, one in enumerate(trials):
        found.setdefault(one.experiment_id, []).append((age, one))
    return found
