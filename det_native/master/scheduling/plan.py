"""Which pending trials start now, and on which slots. Pure: facts in, decisions out."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DEFAULT_PRIORITY = 42


@dataclass(frozen=True)
class Pending:
    """A trial that waits for slots.

    Attributes
    ----------
    slots : int
        Slots it needs, all at once.
    order : int
        Position in its experiment's queue; lower starts first.
    priority : int or None
        Of the experiment, lower first; None is the default, 42.
    weight : float
        Share of the experiment among those of the same priority, above 0.
    max_slots : int or None
        Slots that the experiment may hold at once.
    served : str
        When the experiment last got slots, as text that sorts by time; empty for never.
    """

    trial_id: int
    experiment_id: int
    slots: int
    order: int
    priority: int | None = None
    weight: float = 1.0
    max_slots: int | None = None
    served: str = ""


@dataclass(frozen=True)
class Running:
    """A trial that holds slots."""

    trial_id: int
    experiment_id: int
    slot_ids: tuple[str, ...]


@dataclass(frozen=True)
class Start:
    """Start this trial on these slots."""

    trial_id: int
    slot_ids: tuple[str, ...]


def plan(pending: Iterable[Pending], running: Iterable[Running], slot_ids: Sequence[str]) -> list[Start]:
    """Share the free slots out.

    Experiments take turns: the one of the lowest priority number comes first, among equals the one that holds the least
    in proportion to its weight (max-min fairness), or else the one that has waited longest since it last got some.
    Within an experiment trials start in order. A trial gets all its slots or none. If it is a trial's turn and not
    enough slots are free, those that are wait with it: given to others, one by one, they would never be enough. A trial
    that cannot run, by the limit of its experiment or for want of slots in the whole cluster, holds back only its own
    experiment.

    Parameters
    ----------
    pending : iterable of Pending
        Trials that wait; one that is already running is passed over.
    running : iterable of Running
        Trials that hold slots.
    slot_ids : sequence of str
        All slots; earlier ones are filled first.

    Returns
    -------
    list of Start
        In the order in which to start them; the same for the same facts, whatever their order.
    """
    running = list(running)
    total = len(set(slot_ids))
    taken = {slot for trial in running for slot in trial.slot_ids}
    free = [slot for slot in dict.fromkeys(slot_ids) if slot not in taken]
    held: dict[int, int] = defaultdict(int)
    for trial in running:
        held[trial.experiment_id] += len(trial.slot_ids)
    queues = _queues(pending, {trial.trial_id for trial in running})
    starts: list[Start] = []
    while True:
        heads = [queue[0] for queue in queues.values() if queue and _fits(queue[0], total, held)]
        chosen = min(heads, key=lambda trial: _rank(trial, held), default=None)
        if chosen is None or chosen.slots > len(free):
            return starts
        queues[chosen.experiment_id].popleft()
        starts.append(Start(chosen.trial_id, tuple(free[: chosen.slots])))
        del free[: chosen.slots]
        held[chosen.experiment_id] += chosen.slots


def waits(pending: Iterable[Pending], running: Iterable[Running], slot_ids: Sequence[str]) -> dict[int, str]:
    """Say what each experiment that holds no slot waits for.

    Parameters
    ----------
    pending : iterable of Pending
    running : iterable of Running
        Those that were just planned are among them.
    slot_ids : sequence of str
        All slots.

    Returns
    -------
    dict of int to str
        By experiment, such as ``2 of 4 slots: #7 has them``.
    """
    running = list(running)
    total = len(set(slot_ids))
    held: dict[int, int] = defaultdict(int)
    for trial in running:
        held[trial.experiment_id] += len(trial.slot_ids)
    heads = [queue[0] for queue in _queues(pending, {trial.trial_id for trial in running}).values()]
    turn = min((head for head in heads if _fits(head, total, held)), key=lambda head: _rank(head, held), default=None)
    return {head.experiment_id: _wait(head, turn, held, total) for head in heads if not held[head.experiment_id]}


def _wait(head: Pending, turn: Pending | None, held: dict[int, int], total: int) -> str:
    if head.slots > total:
        return f"{_counted(head.slots)}: the cluster has {total}"
    if head.max_slots is not None and head.slots > head.max_slots:
        return f"{_counted(head.slots)}: its max_slots is {head.max_slots}"
    needed = f"{head.slots} of {_counted(total)}"
    holders = sorted(experiment for experiment, slots in held.items() if slots)
    if head.slots > total - sum(held.values()):
        return f"{needed}: {_names(holders)} {'has' if len(holders) == 1 else 'have'} {'it' if total == 1 else 'them'}"
    if turn is not None and turn.experiment_id != head.experiment_id:
        return f"{needed}: #{turn.experiment_id}, which waits for {turn.slots}, is before it"
    return needed


def _counted(slots: int) -> str:
    return f"{slots} slot{'' if slots == 1 else 's'}"


def _names(experiments: Sequence[int]) -> str:
    """Return ``#7``, ``#7 and #9``, ``#7, #9 and 3 others``."""
    names = [f"#{experiment}" for experiment in experiments[:2]]
    more = len(experiments) - len(names)
    return f"{', '.join(names)} and {more} other{'s' if more > 1 else ''}" if more else " and ".join(names)


def _queues(pending: Iterable[Pending], running: set[int]) -> dict[int, deque[Pending]]:
    queues: dict[int, deque[Pending]] = defaultdict(deque)
    seen = set(running)
    for trial in sorted(pending, key=lambda trial: (trial.experiment_id, trial.order, trial.trial_id)):
        if trial.trial_id not in seen:
            seen.add(trial.trial_id)
            queues[trial.experiment_id].append(trial)
    return queues


def _fits(trial: Pending, total: int, held: dict[int, int]) -> bool:
    limit = trial.max_slots
    return trial.slots <= total and (limit is None or held[trial.experiment_id] + trial.slots <= limit)


def _rank(trial: Pending, held: dict[int, int]) -> tuple[int, float, str, int]:
    priority = DEFAULT_PRIORITY if trial.priority is None else trial.priority
    return priority, held[trial.experiment_id] / trial.weight, trial.served, trial.experiment_id
