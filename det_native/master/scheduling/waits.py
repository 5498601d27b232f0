"""What experiments wait for, in words, and what an autoscaler is to be asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from det_native.master.scheduling.facts import Pending, Policy, Running
from det_native.master.scheduling.machines import Machines, Usable, Where
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS, machines_of, queues_of
from det_native.master.scheduling.shares import Shares
from det_native.schema.cluster import SlotsWanted

#: An autoscaler is asked for the slots of so many trials at once.
MOST_WANTED = 100


def waits(
    pending: Iterable[Pending],
    running: Iterable[Running],
    slots: Machines | Sequence[str],
    policy: Policy = Policy.PRIORITY,
    without_slots: int = MOST_WITHOUT_SLOTS,
    asked: str = "",
) -> dict[int, str]:
    """Say what each experiment that holds no slot waits for.

    Parameters
    ----------
    running : iterable of Running
        Those that were just planned are among them.
    slots : Machines or sequence of str
        All slots.
    without_slots : int
        See :func:`plan`.
    asked : str
        Who has been asked for more slots where a trial needs more than exist, such as ``Ray's autoscaler``.

    Returns
    -------
    dict of int to str
        By experiment, such as ``2 of 4 slots: #7 has them``.
    """
    shares = Shares(running, machines_of(slots), policy)
    queues = queues_of(pending, {trial.trial_id for trial in shares.running})
    at_work = {trial.experiment_id for trial in shares.running}
    heads = [queue[0] for queue in queues.values() if queue]
    waiting = [head for head in heads if head.experiment_id not in at_work]
    if not waiting:
        return {}
    ranked = sorted((head for head in heads if shares.fits(head)), key=shares.rank)
    told = _Told(shares, ranked, f"; {asked} has been asked" if asked else "")
    return {
        head.experiment_id: told.wait(head) if head.slots else _wait_without_slots(without_slots) for head in waiting
    }


def missing_slots(pending: Iterable[Pending], running: Iterable[Running], machines: Machines) -> list[SlotsWanted]:
    """Return the slots of trials that wait since there are not enough, those of the most important trials first.

    What an experiment may not have by its limit is not among it, nor what a machine of a certain name is to have: no
    autoscaler can start that one.
    """
    held: dict[int, int] = {}
    at_work = set()
    for run in running:
        at_work.add(run.trial_id)
        held[run.experiment_id] = held.get(run.experiment_id, 0) + len(run.slot_ids)
    found: list[SlotsWanted] = []
    waiting = [trial for trial in pending if trial.slots and trial.trial_id not in at_work]
    waiting = [trial for trial in waiting if not trial.where.names_machine]
    for trial in sorted(waiting, key=lambda one: (one.level, one.experiment_id, one.order, one.trial_id)):
        held[trial.experiment_id] = held.get(trial.experiment_id, 0) + trial.slots
        if trial.max_slots is None or held[trial.experiment_id] <= trial.max_slots:
            where = trial.where
            single = where.single_node and trial.slots > 1
            found.append(
                SlotsWanted(slots=trial.slots, accelerator=where.accelerator, node=where.node, single_node=single)
            )
    return found[:MOST_WANTED]


class _Told:
    """Who waits for what; who holds slots of a kind is the same for all who wait for them."""

    def __init__(self, shares: Shares, ranked: Sequence[Pending], asked: str) -> None:
        self._shares = shares
        self._ranked = ranked
        self._asked = asked
        self._turns: dict[int, Pending | None] = {}
        self._held: dict[int, tuple[list[int], list[int]]] = {}
        self._said: dict[tuple[Where, int, int | None, bool], str] = {}

    def wait(self, head: Pending) -> str:
        """Return what the next trial of an experiment waits for: the same for all that need the same."""
        turn = self._turn(self._shares.machines.usable(head.where))
        mine = turn is not None and turn.experiment_id == head.experiment_id
        key = (head.where, head.slots, head.max_slots, mine)
        if key not in self._said:
            self._said[key] = self._say(head, turn, mine)
        return self._said[key]

    def _say(self, head: Pending, turn: Pending | None, mine: bool) -> str:
        shares, kind = self._shares, head.where.named
        pool = shares.pool(head)
        total = len(pool.usable.ids)
        if not shares.exist(head):
            return self._lack(head, pool.usable)
        if head.max_slots is not None and head.slots > head.max_slots:
            return f"{_counted(head.slots)}: its max_slots is {head.max_slots}"
        single = shares.is_single(head)
        place = f"{kind}, on one machine" if single else kind
        needed = f"{head.slots} of {_counted(total)}{place}"
        holders, ending = self._holders(pool.usable)
        starts = pool.can_start(head.slots, single_node=single)
        if mine and ending and not starts and shares.will_fit(head):
            return f"{needed}: {_names(ending)} {'saves its' if len(ending) == 1 else 'save their'} state to make room"
        if not starts:
            has = "has" if len(holders) == 1 else "have"
            return f"{needed}: {_names(holders)} {has} {'it' if total == 1 else 'them'}"
        if turn is not None and not mine:
            return f"{needed}: #{turn.experiment_id}, which waits for {turn.slots}, is before it"
        return needed

    def _lack(self, head: Pending, usable: Usable) -> str:
        kind, total = head.where.named, len(usable.ids)
        asked = "" if head.where.names_machine else self._asked
        if not len(self._shares.machines) and asked:
            return f"machines: the cluster has none{asked}"
        if head.slots > total:
            available = total or ("none (see `det nodes`)" if kind else 0)
            return f"{_counted(head.slots)}{kind}: the cluster has {available}{asked}"
        return f"{_counted(head.slots)}{kind} on one machine: the largest has {usable.largest}{asked}"

    def _turn(self, usable: Usable) -> Pending | None:
        """Return the trial whose turn it is with some of these slots."""
        if id(usable) not in self._turns:
            others = (trial for trial in self._ranked if not usable.ids.isdisjoint(self._ids(trial)))
            self._turns[id(usable)] = next(others, None)
        return self._turns[id(usable)]

    def _ids(self, trial: Pending) -> frozenset[str]:
        return self._shares.machines.usable(trial.where).ids

    def _holders(self, usable: Usable) -> tuple[list[int], list[int]]:
        """Return the experiments that hold some of these slots, and those of them that are about to give some up."""
        found = self._held.get(id(usable))
        if found is None:
            holding = [trial for trial in self._shares.running if not usable.ids.isdisjoint(trial.slot_ids)]
            found = (
                sorted({trial.experiment_id for trial in holding}),
                sorted({trial.experiment_id for trial in holding if trial.ending}),
            )
            self._held[id(usable)] = found
        return found


def _wait_without_slots(most: int) -> str:
    return f"its turn: {most} trials without slots run at a time" if most else "a master that runs work without slots"


def _counted(slots: int) -> str:
    return f"{slots} slot{'' if slots == 1 else 's'}"


def _names(experiments: Sequence[int]) -> str:
    """Return ``#7``, ``#7 and #9``, ``#7, #9 and 3 others``."""
    names = [f"#{experiment}" for experiment in experiments[:2]]
    more = len(experiments) - len(names)
    return f"{', '.join(names)} and {more} other{'s' if more > 1 else ''}" if more else " and ".join(names)
