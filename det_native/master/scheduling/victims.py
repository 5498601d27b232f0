"""Which running trials make room for one whose turn it is. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property

from det_native.master.scheduling.facts import Pending, Policy, Running
from det_native.master.scheduling.machines import Machines, Usable


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
        # By usable slots: what was too much before, the number of slots and the priority.
        self._hopeless: dict[int, tuple[int, int]] = {}

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
        if self._by_priority:
            slots, level = self._hopeless.get(id(usable), (trial.slots + 1, 0))
            if self._least_important <= trial.level or (trial.slots >= slots and trial.level >= level):
                return None
        best: tuple[tuple[int, int, int], list[Running]] | None = None
        for node, ids in usable.by_node.items():
            if len(ids) < trial.slots:
                continue
            here = set(ids) - closed

            def gain(one: Running, here: Set[str] = here) -> int:
                return sum(slot in here for slot in one.slot_ids)

            lacking = room.get(node, trial.slots)
            found = self._chosen(self._on_node.get(node, []), trial, lacking, gain, kept)
            if found is None:
                continue
            lost = sum(len(one.slot_ids) for one in found)
            cost = (-min(one.level for one in found) if self._by_priority else 0, lost, len(found))
            if best is None or cost < best[0]:
                best = cost, found
        if best is None:
            self._hopeless[id(usable)] = trial.slots, trial.level
            return None
        return best[1]

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
        left = {one.experiment_id: kept[one.experiment_id] for one in candidates}
        able: dict[int, list[tuple[int, Running, int]]] = {}
        for age, one in enumerate(candidates):
            if one.experiment_id == trial.experiment_id or left[one.experiment_id] / one.weight <= share:
                continue
            if one.trial_id not in self._ending and (more := gain(one)):
                able.setdefault(one.experiment_id, []).append((age, one, more))
        found: list[Running] = []
        gained = 0
        while gained < lacking:
            best: tuple[float, int, int, Running, int] | None = None
            for number, trials in able.items():
                for index, (age, one, more) in enumerate(trials):
                    if (left[number] - len(one.slot_ids)) / one.weight >= share:
                        rank = (left[number] / one.weight, -age)
                        if best is None or rank > best[:2]:
                            best = (*rank, index, one, more)
                        break
            if best is None:
                break
            _, _, index, one, more = best
            del able[one.experiment_id][index]
            left[one.experiment_id] -= len(one.slot_ids)
            found.append(one)
            gained += more
        return found, gained
