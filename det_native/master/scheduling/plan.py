"""Which pending trials start now, on which slots, and which running ones make room. Pure: facts in, decisions out."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence

from det_native.master.scheduling.facts import Action, Pending, Policy, Preempt, Running, Start

#: So many trials that need no slot run at the same time, unless the master is told another number; their processes
#: share what the slots leave.
MOST_WITHOUT_SLOTS = 100


def plan(
    pending: Iterable[Pending],
    running: Iterable[Running],
    slot_ids: Sequence[str],
    policy: Policy = Policy.PRIORITY,
    without_slots: int = MOST_WITHOUT_SLOTS,
) -> list[Action]:
    """Share the slots out.

    By `Policy.PRIORITY`, experiments of the lowest priority number come first; among equals they take turns: the one
    that holds the least in proportion to its weight (max-min fairness), or else the one that has waited longest since
    it last got some. By `Policy.FAIR_SHARE`, all take turns in this way, and priorities do not count.

    Within an experiment trials start in order. A trial gets all its slots or none. If it is a trial's turn and not
    enough slots are free, others make room, if that is enough: by priority those of higher numbers, by fair share those
    of experiments that then still hold no less than the one that gets them. The newest go first. If it is not enough,
    nobody makes room, but what is free waits with the trial: given to others, one by one, it would never be enough.
    A trial that cannot run, by the limit of its experiment or for want of slots in the whole cluster, holds back only
    its own experiment. An experiment that holds more than its limit gives up its newest trials.

    Parameters
    ----------
    pending : iterable of Pending
        Trials that wait; one that is already running is passed over.
    running : iterable of Running
        Trials that hold slots.
    slot_ids : sequence of str
        All slots; earlier ones are filled first.
    policy : Policy
    without_slots : int
        How many trials that need no slot may run at the same time. They wait for nothing else.

    Returns
    -------
    list of Start and Preempt
        In the order in which to do them; the same for the same facts, whatever their order.
    """
    shares = Shares(running, slot_ids, policy)
    actions: list[Action] = [*shares.above_limits()]
    queues = queues_of(pending, {trial.trial_id for trial in shares.running})
    actions += _starts_without_slots(queues, shares.running, without_slots)
    while True:
        chosen = shares.next(queues)
        if chosen is None:
            return actions
        lacking = chosen.slots - len(shares.free) - shares.coming
        victims = shares.victims(chosen, lacking) if lacking > 0 else []
        if victims is None:
            return actions
        queues[chosen.experiment_id].popleft()
        for victim in victims:
            shares.release(victim)
            actions.append(Preempt(victim.trial_id, chosen.experiment_id))
        given = shares.give(chosen)
        if given is not None:
            actions.append(Start(chosen.trial_id, given))


class Shares:
    """What experiments hold while the slots are shared out."""

    def __init__(self, running: Iterable[Running], slot_ids: Sequence[str], policy: Policy) -> None:
        self.running = list(running)
        self.total = len(set(slot_ids))
        self.coming = 0  # slots of trials that were asked to end, and that nobody has claimed
        self.kept: Counter[int] = Counter()  # without what is coming: by this they take turns
        self.held: Counter[int] = Counter()  # with it: by this limits are kept
        self._policy = policy
        self._ending: set[int] = set()
        self._given: dict[int, int] = {}  # when each experiment was last given slots here, counted
        taken = {slot for trial in self.running for slot in trial.slot_ids}
        self.free = [slot for slot in dict.fromkeys(slot_ids) if slot not in taken]
        for trial in self.running:
            self.kept[trial.experiment_id] += len(trial.slot_ids)
            self.held[trial.experiment_id] += len(trial.slot_ids)
            if trial.ending:
                self.release(trial)

    def next(self, queues: dict[int, deque[Pending]]) -> Pending | None:
        """Return the trial whose turn it is, None if none could start."""
        heads = (queue[0] for queue in queues.values() if queue)
        return min((head for head in heads if self.fits(head)), key=self.rank, default=None)

    def fits(self, trial: Pending) -> bool:
        """Whether a trial may run, as far as its experiment's limit and the size of the cluster go."""
        limit = trial.max_slots
        within = limit is None or self.held[trial.experiment_id] + trial.slots <= limit
        return 0 < trial.slots <= self.total and within

    def rank(self, trial: Pending) -> tuple[int, float, int, str, int]:
        """Return what orders the experiments, by their next trials."""
        level = trial.level if self._policy is Policy.PRIORITY else 0
        share, given = self.kept[trial.experiment_id] / trial.weight, self._given.get(trial.experiment_id, 0)
        return level, share, given, trial.served, trial.experiment_id

    def above_limits(self) -> list[Preempt]:
        """Release the newest trials of experiments that hold more than they may."""
        released = []
        for trial in self._newest_first():
            if trial.max_slots is not None and self.kept[trial.experiment_id] > trial.max_slots:
                self.release(trial)
                released.append(Preempt(trial.trial_id, None))
        return released

    def victims(self, trial: Pending, lacking: int) -> list[Running] | None:
        """Return the trials that make room of so many slots for a trial, None if those that may do not suffice."""
        found: list[Running] = []
        kept = self.kept.copy()
        by_priority = self._policy is Policy.PRIORITY
        while sum(len(one.slot_ids) for one in found) < lacking:
            able = [
                one
                for one in self._newest_first()
                if one not in found and (one.level > trial.level if by_priority else self._can_spare(one, trial, kept))
            ]
            if not able:
                return None
            # Of equals the first, which is the newest.
            chosen = max(able, key=lambda one: one.level if by_priority else kept[one.experiment_id] / one.weight)
            found.append(chosen)
            kept[chosen.experiment_id] -= len(chosen.slot_ids)
        for one in reversed(found[:-1]):  # one that was taken before a large one may not be needed beside it
            if sum(len(other.slot_ids) for other in found if other is not one) >= lacking:
                found.remove(one)
        return found

    def release(self, trial: Running) -> None:
        """Count the slots of a trial as coming."""
        self._ending.add(trial.trial_id)
        self.kept[trial.experiment_id] -= len(trial.slot_ids)
        self.coming += len(trial.slot_ids)

    def give(self, trial: Pending) -> tuple[str, ...] | None:
        """Give a trial its slots; None if some of them are yet to come, which are then kept for it."""
        self._given[trial.experiment_id] = max(self._given.values(), default=0) + 1
        given = tuple(self.free[: trial.slots])
        del self.free[: trial.slots]
        self.coming -= trial.slots - len(given)
        self.kept[trial.experiment_id] += trial.slots
        self.held[trial.experiment_id] += trial.slots
        return given if len(given) == trial.slots else None

    def _newest_first(self) -> list[Running]:
        able = [one for one in self.running if one.slot_ids and one.trial_id not in self._ending]
        return sorted(able, key=lambda one: (one.started, one.trial_id), reverse=True)

    def _can_spare(self, one: Running, trial: Pending, kept: Counter[int]) -> bool:
        """Whether the experiment of `one` without it holds no less, by weight, than that of `trial` with it."""
        if one.experiment_id == trial.experiment_id:
            return False
        left = (kept[one.experiment_id] - len(one.slot_ids)) / one.weight
        return left >= (self.kept[trial.experiment_id] + trial.slots) / trial.weight


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
    room = most - sum(not trial.slot_ids for trial in running)
    starts: list[Start] = []
    for _, queue in sorted(queues.items()):
        while queue and queue[0].slots == 0 and len(starts) < room:
            starts.append(Start(queue.popleft().trial_id, ()))
    return starts
