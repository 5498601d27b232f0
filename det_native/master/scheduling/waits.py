"""What experiments wait for, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from det_native.master.scheduling.facts import Pending, Policy, Running
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS, Shares, queues_of


def waits(
    pending: Iterable[Pending],
    running: Iterable[Running],
    slot_ids: Sequence[str],
    policy: Policy = Policy.PRIORITY,
    without_slots: int = MOST_WITHOUT_SLOTS,
) -> dict[int, str]:
    """Say what each experiment that holds no slot waits for.

    Parameters
    ----------
    pending : iterable of Pending
    running : iterable of Running
        Those that were just planned are among them.
    slot_ids : sequence of str
        All slots.
    policy : Policy
    without_slots : int
        See :func:`plan`.

    Returns
    -------
    dict of int to str
        By experiment, such as ``2 of 4 slots: #7 has them``.
    """
    shares = Shares(running, slot_ids, policy)
    queues = queues_of(pending, {trial.trial_id for trial in shares.running})
    at_work = {trial.experiment_id for trial in shares.running}
    turn = shares.next(queues)
    heads = [queue[0] for queue in queues.values() if queue]
    waiting = [head for head in heads if head.experiment_id not in at_work]
    held = _Held(
        holders=sorted(experiment for experiment, slots in shares.held.items() if slots),
        ending=sorted({trial.experiment_id for trial in shares.running if trial.ending and trial.slot_ids}),
    )
    return {
        head.experiment_id: _wait(head, turn, shares, held) if head.slots else _wait_without_slots(without_slots)
        for head in waiting
    }


@dataclass(frozen=True)
class _Held:
    """Who holds slots, and who of them is about to give some up: the same for all who wait."""

    holders: list[int]
    ending: list[int]


def _wait_without_slots(most: int) -> str:
    return f"its turn: {most} trials without slots run at a time" if most else "a master that runs work without slots"


def _wait(head: Pending, turn: Pending | None, shares: Shares, held: _Held) -> str:
    total = shares.total
    if head.slots > total:
        return f"{_counted(head.slots)}: the cluster has {total}"
    if head.max_slots is not None and head.slots > head.max_slots:
        return f"{_counted(head.slots)}: its max_slots is {head.max_slots}"
    needed = f"{head.slots} of {_counted(total)}"
    mine = turn is not None and turn.experiment_id == head.experiment_id
    ending = held.ending
    if mine and ending and len(shares.free) < head.slots <= len(shares.free) + shares.coming:
        return f"{needed}: {_names(ending)} {'saves its' if len(ending) == 1 else 'save their'} state to make room"
    if head.slots > len(shares.free):
        has = "has" if len(held.holders) == 1 else "have"
        return f"{needed}: {_names(held.holders)} {has} {'it' if total == 1 else 'them'}"
    if turn is not None and not mine:
        return f"{needed}: #{turn.experiment_id}, which waits for {turn.slots}, is before it"
    return needed


def _counted(slots: int) -> str:
    return f"{slots} slot{'' if slots == 1 else 's'}"


def _names(experiments: Sequence[int]) -> str:
    """Return ``#7``, ``#7 and #9``, ``#7, #9 and 3 others``."""
    names = [f"#{experiment}" for experiment in experiments[:2]]
    more = len(experiments) - len(names)
    return f"{', '.join(names)} and {more} other{'s' if more > 1 else ''}" if more else " and ".join(names)
