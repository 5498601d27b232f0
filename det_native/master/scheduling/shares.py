"""What experiments hold while the slots are shared out, and what of the slots is left. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from det_native.master.scheduling.facts import Pending, Policy, Preempt, Running
from det_native.master.scheduling.machines import Machines
from det_native.master.scheduling.pools import Pool
from det_native.master.scheduling.victims import Victims


class Shares:
    """What experiments hold while the slots are shared out.

    Attributes
    ----------
    kept : Counter
        Slots by experiment, without what is coming: by this they take turns.
    held : Counter
        With it: by this limits are kept.
    changed : set of int
        Experiments whose turn may come at another time than before; whoever orders them empties it.
    """

    def __init__(self, running: Iterable[Running], machines: Machines, policy: Policy) -> None:
        self.running = list(running)
        self.machines = machines
        self.policy = policy
        held: dict[int, int] = {}
        for trial in self.running:
            held[trial.experiment_id] = held.get(trial.experiment_id, 0) + len(trial.slot_ids)
        self.kept: Counter[int] = Counter(held)
        self.held: Counter[int] = Counter(held)
        self.changed: set[int] = set()
        self._given: dict[int, int] = {}  # when each experiment was last given slots here, counted
        self._turns = 0
        self._pools: dict[int, Pool] = {}
        self._taken = set(chain.from_iterable(trial.slot_ids for trial in self.running))
        self._closed: set[str] = set()  # those that wait with a trial whose turn it is
        self._coming: dict[str, None] = {}  # slots of trials that were asked to end, and that nobody has claimed
        self._ending: set[int] = set()
        # By usable slots and their number: machines that may be held back for a trial, those with the most room first.
        self._roomiest: dict[tuple[int, int], Iterator[int]] = {}
        self._victims = Victims(self.running, policy, self._ending, machines, self.kept)
        for trial in self.running:
            if trial.ending:
                self.release(trial)

    def pool(self, trial: Pending) -> Pool:
        """Return the slots that a trial may have."""
        usable = self.machines.usable(trial.where)
        pool = self._pools.get(id(usable))
        if pool is None:
            taken = self._taken | self._closed if self._closed else self._taken
            pool = Pool(usable, self.machines.node_of, self.machines.position, taken, self._coming)
            pool.closed = bool(usable.ids) and usable.ids <= self._closed
            self._pools[id(usable)] = pool
        return pool

    def is_single(self, trial: Pending) -> bool:
        """Whether it matters that a trial is to run on one machine."""
        return trial.where.single_node and len(self.machines.usable(trial.where).by_node) > 1

    def exist(self, trial: Pending) -> bool:
        """Whether there are as many slots as a trial needs, whoever has them."""
        return self.machines.usable(trial.where).fits(trial.slots, single_node=trial.where.single_node)

    def fits(self, trial: Pending) -> bool:
        """Whether a trial may run, as far as its experiment's limit and the size of the cluster go."""
        limit = trial.max_slots
        within = limit is None or self.held[trial.experiment_id] + trial.slots <= limit
        return within and trial.slots > 0 and self.exist(trial)

    def rank(self, trial: Pending) -> tuple[int, float, int, str, int]:
        """Return what orders the experiments, by their next trials."""
        level = trial.level if self.policy is Policy.PRIORITY else 0
        share, given = self.kept[trial.experiment_id] / trial.weight, self._given.get(trial.experiment_id, 0)
        return level, share, given, trial.served, trial.experiment_id

    def above_limits(self) -> list[Preempt]:
        """Release the newest trials of experiments that hold more than they may."""
        above = [one for one in self.running if one.max_slots is not None and self._above(one, one.max_slots)]
        released = []
        for trial in self._victims.newest_first(above):
            if trial.max_slots is not None and self._above(trial, trial.max_slots):
                self.release(trial)
                released.append(Preempt(trial.trial_id, None))
        return released

    def _above(self, trial: Running, limit: int) -> bool:
        return self.kept[trial.experiment_id] > limit

    def release(self, trial: Running) -> None:
        """Count the slots of a trial as coming, those of them that still exist."""
        self._ending.add(trial.trial_id)
        self.kept[trial.experiment_id] -= len(trial.slot_ids)
        self.changed.add(trial.experiment_id)
        self._victims.changed(trial.experiment_id)
        for slot in trial.slot_ids:
            if slot in self.machines.position and slot not in self._closed:
                self._coming[slot] = None
                for pool in self._pools.values():
                    if slot in pool.usable.ids:
                        pool.coming.add(slot)

    def will_fit(self, trial: Pending) -> bool:
        """Whether enough slots are free or coming for a trial."""
        pool = self.pool(trial)
        if self.is_single(trial):
            return self._soon_free(pool, trial.slots) is not None
        return trial.slots <= pool.free_count + len(pool.coming)

    def make_room(self, trial: Pending) -> list[Running] | None:
        """Return the trials that end so that one gets its slots, none if enough are there; None if nothing helps."""
        if self.will_fit(trial):
            return []
        pool = self.pool(trial)
        if self.is_single(trial):
            room = {node: trial.slots - len(slots) for node, slots in self._open(pool).items()}
            return self._victims.on_one_machine(trial, room, pool.usable, self._closed, self.kept)
        lacking = trial.slots - pool.free_count - len(pool.coming)
        return self._victims.anywhere(trial, lacking, pool.usable, self._closed, self.kept)

    def give(self, trial: Pending) -> tuple[str, ...] | None:
        """Give a trial its slots; None if some of them are yet to come, which are then kept for it."""
        self._turns += 1
        self._given[trial.experiment_id] = self._turns
        self.kept[trial.experiment_id] += trial.slots
        self.held[trial.experiment_id] += trial.slots
        self.changed.add(trial.experiment_id)
        self._victims.changed(trial.experiment_id)
        pool, single = self.pool(trial), self.is_single(trial)
        if pool.can_start(trial.slots, single_node=single):
            given = pool.take(trial.slots, spread=trial.where.spread and not single)
            self._claim(given, pool)
            return given
        if single:
            node = self._soon_free(pool, trial.slots)
            kept = [] if node is None else pool.open_on(node)[: trial.slots]
        else:
            kept = pool.all_free()
            kept += pool.first_coming(trial.slots - len(kept))
        pool.discard(kept)
        self._claim(kept, pool)
        return None

    def _claim(self, slots: Collection[str], owner: Pool) -> None:
        """Slots of a pool are given: nobody else gets them."""
        for slot in slots:
            self._taken.add(slot)
            self._coming.pop(slot, None)
        for pool in self._pools.values():
            if pool is not owner:
                pool.discard(slots)

    def hold_back(self, trial: Pending) -> bool:
        """Nobody makes room for a trial whose turn it is: what it may have waits with it; whether others may go on.

        One that needs a machine of its own holds back that which will probably be the first.
        """
        pool = self.pool(trial)
        if not self.is_single(trial):
            self._close(pool.usable.ids)
            return len(self._closed) < len(self.machines)
        key = id(pool.usable), trial.slots
        if key not in self._roomiest:
            room = self._open(pool)
            able = [node for node, slots in pool.usable.by_node.items() if len(slots) >= trial.slots]
            self._roomiest[key] = iter(sorted(able, key=lambda node: -len(room.get(node, ()))))
        for node in self._roomiest[key]:
            slots = pool.usable.by_node[node]
            if not self._closed.issuperset(slots):
                self._close(slots)
                break
        return True

    def _close(self, slots: Collection[str]) -> None:
        self._closed.update(slots)
        if self._coming:
            for slot in slots:
                self._coming.pop(slot, None)
        for pool in self._pools.values():
            if len(pool.usable.ids) <= len(self._closed) and pool.usable.ids <= self._closed:
                pool.closed = True  # nobody looks into it any more
            else:
                pool.discard(slots)

    def _soon_free(self, pool: Pool, slots: int) -> int | None:
        """Return the machine where enough slots are free or coming: that where the fewest must still come."""
        if pool.can_start(slots, single_node=True):
            return pool.best_fit(slots)
        coming = pool.coming_by_node() if pool.coming else {}
        room = {
            node: len(pool.free.get(node, ()))
            for node, some in coming.items()
            if len(pool.free.get(node, ())) + len(some) >= slots
        }
        return max(room, key=lambda node: (room[node], -node), default=None)

    def _open(self, pool: Pool) -> dict[int, list[str]]:
        """Return the free and coming slots of the machines that have some."""
        room = {node: list(slots) for node, slots in pool.free.items()}
        for node, slots in pool.coming_by_node().items():
            room.setdefault(node, []).extend(slots)
        return room
