"""Which pending trials start now, on which slots, and which running ones make room. Pure: facts in, decisions out."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from det_native.master.scheduling.facts import Action, Pending, Policy, Preempt, Running, Start
from det_native.master.scheduling.machines import Machines
from det_native.master.scheduling.shares import Shares

#: So many trials that need no slot run at the same time, unless the master is told another number; their processes
#: share what the slots leave.
MOST_WITHOUT_SLOTS = 100


def plan(
    pending: Iterable[Pending],
    running: Iterable[Running],
    slots: Machines | Sequence[str],
    policy: Policy = Policy.PRIORITY,
    without_slots: int = MOST_WITHOUT_SLOTS,
) -> list[Action]:
    """Share the slots out.

    By `Policy.PRIORITY`, experiments of the lowest priority number come first; among equals they take turns: the one
    that holds the least in proportion to its weight (max-min fairness), or else the one that has waited longest since
    it last got some. By `Policy.FAIR_SHARE`, all take turns in this way, and priorities do not count.

    Within an experiment trials start in order. A trial gets all its slots or none: those of one machine where one has
    enough, the one with the fewest, else those of as few machines as possible; or of as many, if it is to be spread.
    If it is a trial's turn and not enough slots are free, others make room, if that is enough: by priority those of
    higher numbers, by fair share those of experiments that then still hold no less than the one that gets them. The
    newest go first, and only those whose slots it can use. If it is not enough, nobody makes room, but what is free of
    that waits with the trial: given to others, one by one, it would never be enough. A trial that cannot run, by the
    limit of its experiment or for want of slots in the whole cluster, holds back only its own experiment. An experiment
    that holds more than its limit gives up its newest trials.

    Parameters
    ----------
    pending : iterable of Pending
        Trials that wait; one that is already running is passed over.
    running : iterable of Running
        Trials that hold slots.
    slots : Machines or sequence of str
        All slots, or the names of those of one machine; earlier ones are filled first.
    without_slots : int
        How many trials that need no slot may run at the same time. They wait for nothing else.

    Returns
    -------
    list of Start and Preempt
        In the order in which to do them; the same for the same facts, whatever their order.
    """
    shares = Shares(running, machines_of(slots), policy)
    actions: list[Action] = [*shares.above_limits()]
    queues = queues_of(pending, {trial.trial_id for trial in shares.running})
    actions += _starts_without_slots(queues, shares.running, without_slots)
    turns = Turns(queues, shares)
    while (chosen := turns.next()) is not None:
        victims = shares.make_room(chosen)
        if victims is None:
            turns.waits(chosen)
            if not shares.hold_back(chosen):
                break
            continue
        queues[chosen.experiment_id].popleft()
        for victim in victims:
            shares.release(victim)
            actions.append(Preempt(victim.trial_id, chosen.experiment_id))
        given = shares.give(chosen)
        if given is not None:
            actions.append(Start(chosen.trial_id, given))
    return actions


def machines_of(slots: Machines | Sequence[str]) -> Machines:
    """Return the slots by machine; of names alone, those of one machine."""
    return slots if isinstance(slots, Machines) else _one_machine(tuple(slots))


@lru_cache(maxsize=8)
def _one_machine(slots: tuple[str, ...]) -> Machines:
    return Machines.of(slots)


class Turns:
    """Whose turn it is: the next trials of the experiments in order, as far as they could run now or later."""

    def __init__(self, queues: Mapping[int, deque[Pending]], shares: Shares) -> None:
        self._queues = queues
        self._shares = shares
        self._waiting: set[int] = set()
        shares.changed.clear()
        self._heap = [(shares.rank(queue[0]), number) for number, queue in queues.items() if queue]
        heapq.heapify(self._heap)

    def next(self) -> Pending | None:
        """Return the trial whose turn it is, None if none could start.

        An experiment whose next trial does not fit is left out from then on: what it holds only grows.
        """
        shares = self._shares
        for number in shares.changed:
            if number not in self._waiting and (queue := self._queues.get(number)):
                heapq.heappush(self._heap, (shares.rank(queue[0]), number))
        shares.changed.clear()
        while self._heap:
            rank, number = heapq.heappop(self._heap)
            queue = self._queues[number]
            if not queue or number in self._waiting or shares.rank(queue[0]) != rank:
                continue
            if shares.fits(queue[0]) and not shares.pool(queue[0]).closed:
                return queue[0]
        return None

    def waits(self, trial: Pending) -> None:
        """Leave out the experiment of a trial whose turn it is, and which has to wait."""
        self._waiting.add(trial.experiment_id)


def queues_of(pending: Iterable[Pending], running: set[int]) -> dict[int, deque[Pending]]:
    """Return the trials that wait by experiment, in order, without those that run."""
    queues: dict[int, deque[Pending]] = defaultdict(deque)
    seen = set(running)
    for trial in sorted(pending, key=lambda trial: (trial.experiment_id, trial.order, trial.trial_id)):
        if trial.trial_id not in seen:
            seen.add(trial.trial_id)
            queues[trial.experiment_id].append(trial)
    return queues


def _starts_without_slots(queues: dict[int, deque[Pending]], running: Iterable[Running], most: int) -> list[Start]:
    """Start what needs no slot, whatever the others hold; those of one experiment need the same."""
    if not any(queue[0].slots == 0 for queue in queues.values()):
        return []
    room = most - sum(not trial.slot_ids for trial in running)
    starts: list[Start] = []
    for _, queue in sorted(queues.items()):
        while queue and queue[0].slots == 0 and len(starts) < room:
            starts.append(Start(queue.popleft().trial_id, ()))
    return starts
