"""Experiments by what they hold in proportion to their weights, and what each can spare. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Set

from det_native.master.scheduling.facts import Pending, Running


class Holders:
    """The experiments that hold slots, in the order in which they are asked to make room by fair share.

    The order is kept from one trial that wants room to the next: only what has changed is put in its place again.

    Parameters
    ----------
    trials : iterable of Running
        The newest first.
    ending : set of int
        Trials that were asked already; it grows.
    kept : Counter
        Slots by experiment.

    Attributes
    ----------
    steps : int
        Experiments and trials that were looked at until now.
    """

    def __init__(self, trials: Iterable[Running], ending: Set[int], kept: Counter[int]) -> None:
        self.steps = 0
        self._ending = ending
        self._groups: dict[int, list[tuple[int, Running]]] = {}
        for age, one in enumerate(trials):
            self._groups.setdefault(one.experiment_id, []).append((age, one))
        for group in self._groups.values():
            group.reverse()  # the newest are at the end, where they are taken away
        self._shown: dict[int, tuple[float, int, int]] = {}
        self._heap: list[tuple[float, int, int]] = []
        self._changed = set(self._groups)
        self.refresh(kept)

    def changed(self, number: int) -> None:
        """Note that an experiment holds another number of slots than before."""
        if number in self._groups:
            self._changed.add(number)

    def refresh(self, kept: Counter[int]) -> None:
        """Put those in their places again that hold more or less than before."""
        self._kept = kept
        for number in self._changed:
            self._show(number)
        self._changed.clear()

    def spare(
        self, trial: Pending, share: float, lacking: int, gain: Callable[[Running], int]
    ) -> tuple[list[Running], int]:
        """Return trials that end, for a trial whose experiment would hold `share`, and the slots that gives.

        It may be fewer than lack.
        """
        taken: set[int] = set()
        left: dict[int, int] = {}
        found: list[Running] = []
        gained = 0
        self._out: list[tuple[float, int, int]] = []  # those to put back, since others are asked in their place
        # What this one has been taken from: (what it holds, the age of its newest, its number).
        own: list[tuple[float, int, int]] = []
        while gained < lacking:
            best = self._best(own, trial, share, taken, left, gain)
            if best is None:
                break
            _, one, more = best
            taken.add(one.trial_id)
            found.append(one)
            gained += more
            number = one.experiment_id
            left[number] = left.get(number, self._kept[number]) - len(one.slot_ids)
            heapq.heappush(own, (-left[number] / one.weight, self._first_age(number, taken), number))
        for entry in self._out:
            heapq.heappush(self._heap, entry)
        return found, gained

    def _best(
        self,
        own: list[tuple[float, int, int]],
        trial: Pending,
        share: float,
        taken: set[int],
        left: dict[int, int],
        gain: Callable[[Running], int],
    ) -> tuple[int, Running, int] | None:
        """Return the newest trial that can be spared by those that hold most."""
        best: tuple[int, Running, int] | None = None
        chosen = (0.0, 0, 0)
        beaten: list[tuple[float, int, int]] = []
        while (entry := self._next(own)) is not None:
            held, age, number = entry
            if -held <= share or (best is not None and (held != chosen[0] or age > best[0])):
                break
            self._pop(own)
            self.steps += 1
            if number == trial.experiment_id:
                continue
            candidate = self._spared(number, share, taken, left, gain)
            if candidate is None:  # nor has it anything else for this trial
                continue
            if best is None or candidate[0] < best[0]:
                if best is not None:
                    beaten.append(chosen)
                best, chosen = candidate, entry
            else:
                beaten.append(entry)
        for each in beaten:
            heapq.heappush(own, each)
        return best

    def _next(self, own: list[tuple[float, int, int]]) -> tuple[float, int, int] | None:
        """Return whose turn it is."""
        while self._heap and self._shown.get(self._heap[0][2]) != self._heap[0]:
            heapq.heappop(self._heap)  # it is out of date
        if own and (not self._heap or own[0] < self._heap[0]):
            return own[0]
        return self._heap[0] if self._heap else None

    def _pop(self, own: list[tuple[float, int, int]]) -> None:
        """Take away whose turn it is."""
        if own and (not self._heap or own[0] < self._heap[0]):
            heapq.heappop(own)
        else:
            self._out.append(heapq.heappop(self._heap))

    def _spared(
        self, number: int, share: float, taken: set[int], left: dict[int, int], gain: Callable[[Running], int]
    ) -> tuple[int, Running, int] | None:
        """Return the newest trial that an experiment can spare: its age, it, and the slots that it gives."""
        held = left.get(number, self._kept[number])
        for age, one in reversed(self._groups[number]):
            self.steps += 1
            if one.trial_id in taken or one.trial_id in self._ending:
                continue
            if (held - len(one.slot_ids)) / one.weight >= share and (more := gain(one)):
                return age, one, more
        return None

    def _first_age(self, number: int, taken: Set[int] = frozenset()) -> int:
        """Return the age of the newest trial that has not been asked."""
        group = self._groups[number]
        while group and group[-1][1].trial_id in self._ending:
            group.pop()
        for age, one in reversed(group):
            if one.trial_id not in taken:
                return age
        return -1

    def _show(self, number: int) -> None:
        """Put an experiment in its place."""
        age = self._first_age(number)
        if age < 0:
            self._shown.pop(number, None)
            return
        entry = (-self._kept[number] / self._groups[number][-1][1].weight, age, number)
        self._shown[number] = entry
        heapq.heappush(self._heap, entry)
