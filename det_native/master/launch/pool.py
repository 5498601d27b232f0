"""The standbys of a launcher: taken for a job, topped up while nothing competes, retired when unused."""

from __future__ import annotations

import logging
import math
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import psutil

from det_native.master.launch.base import WorkerKind
from det_native.master.launch.policy import Bounds, Policy, Use, bounds, idle_ends
from det_native.master.launch.recipe import Recipe, SpawnError, resolved
from det_native.master.launch.standby import Standby
from det_native.master.launch.zygote import Zygote
from det_native.master.launch.zygotes import Zygotes

logger = logging.getLogger(__name__)

_MAINTENANCE_SECONDS = 1.0
_END_SECONDS = 5.0


# Limit, usage, statistics, and the line of the statistics with cached files, which give way: versions 2 and 1.
_GROUPS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)


def available_share(groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the available share of the memory, 0 to 1: the machine's, or the control group's if that is less."""
    machine = psutil.virtual_memory()
    share = float(machine.available / machine.total)
    for limit_name, usage_name, statistics_name, cached_name in _GROUPS:
        try:
            limit, usage = (int((groups / name).read_text()) for name in (limit_name, usage_name))
            cached = _value((groups / statistics_name).read_text(), cached_name)
        except (OSError, ValueError):  # not this version of control groups, or "max": no limit
            continue
        if 0 < limit < machine.total:
            share = min(share, max(0.0, 1 - (usage - cached) / limit))
    return share


def _value(statistics: str, name: str) -> int:
    return next((int(line.split()[1]) for line in statistics.splitlines() if line.split()[0] == name), 0)


class StandbyPool:
    """Keeps standbys, by kind, and the zygotes that they are forked from.

    Parameters
    ----------
    slots : int
        Slots of the master.
    forks : bool
        Whether standbys are forked from zygotes; otherwise each is a fresh process.
    clock : callable
        Monotonic seconds.
    memory : callable
        Available share of the memory.
    """

    def __init__(
        self,
        recipe: Recipe,
        slots: int,
        policy: Policy,
        forks: bool = False,
        clock: Callable[[], float] = time.monotonic,
        memory: Callable[[], float] = available_share,
    ) -> None:
        self._recipe = recipe
        self._slots = slots
        self._policy = policy
        self._clock = clock
        self._memory = memory
        self._zygotes = Zygotes(recipe, enabled=forks)
        self._standbys: list[Standby] = []
        self._uses: dict[WorkerKind, Use] = {}
        # Kinds whose standbys do not start: none is tried again until a job asks for the kind.
        self._failures: set[WorkerKind] = set()
        self._imports: dict[WorkerKind, tuple[str, ...]] = {}
        # Nothing but these and the passing of time changes what is to be done.
        self._was_idle = True
        self._was_warming = 0
        self._known_ready: set[Standby] = set()
        self._next_maintenance = 0.0

    @property
    def standbys(self) -> tuple[Standby, ...]:
        """All standbys, ready or warming up, oldest first."""
        return tuple(self._standbys)

    @property
    def zygotes(self) -> tuple[Zygote, ...]:
        """All zygotes, ready or not."""
        return self._zygotes.living

    @property
    def changed(self) -> bool:
        """Whether a standby or a zygote has become ready, or left before it was, since `maintain` last looked."""
        return self._warming != self._was_warming

    @property
    def _warming(self) -> int:
        return sum(not standby.ready for standby in self._standbys) + self._zygotes.warming

    def pump(self) -> None:
        """Move on, without waiting, what travels on the pipes."""
        self._zygotes.pump()
        for standby in self._standbys:
            standby.pump()

    def ready(self) -> dict[str, int]:
        """Return how many are ready, by framework."""
        return dict(Counter(standby.kind.framework for standby in self.standbys if standby.ready))

    def want(self, kind: WorkerKind, running: int = 0, imports: tuple[str, ...] = ()) -> None:
        """Note that `kind` is in demand, with `running` workers of it at once, and what the last one imports."""
        kind = self._known(resolved(kind))
        before = self._uses.get(kind, Use(0.0))
        self._uses[kind] = Use(self._clock(), max(before.peak, running))
        self._failures.discard(kind)
        if imports:
            self._imports[kind] = imports
        self._next_maintenance = 0.0

    def take(self, kind: WorkerKind, count: int = 1) -> list[Standby]:
        """Return processes for jobs: those readiest of their kind, and new ones where there are not enough.

        Raises
        ------
        SpawnError
            If new ones are needed and cannot be started; none is taken then.
        """
        kind = resolved(kind)
        # One that is still importing is ahead of one that has not begun.
        matching = sorted(
            (standby for standby in self._standbys if _serves(standby.kind, kind)),
            key=lambda standby: not standby.ready,
        )[:count]
        new: list[Standby] = []
        try:
            for _ in range(count - len(matching)):
                new.append(self._zygotes.fork(self._known(kind)) or Standby(kind, self._recipe))
        except SpawnError:
            self._end(new)
            raise
        self._standbys = [standby for standby in self._standbys if standby not in matching]
        return [*matching, *new]

    def fresh(self, kind: WorkerKind, run_folder: Path) -> Standby:
        """Return a process for one job that has packages of its own, for which nothing is kept ready.

        What it says on its way there goes to the output of the run.

        Raises
        ------
        SpawnError
            If it cannot be started.
        """
        return Standby(kind, self._recipe, run_folder=run_folder)

    def maintain(self, *, idle: bool) -> None:
        """Bring the numbers to what the policy wants.

        Parameters
        ----------
        idle : bool
            Whether standbys may warm up now; False while a worker has just started.
        """
        self._drop_ended()
        for standby in self._standbys:
            if standby.ready and standby not in self._known_ready:
                logger.info("standby ready: %s, process %d", standby.kind.framework, standby.process.pid)
        self._known_ready = {standby for standby in self._standbys if standby.ready}
        now = self._clock()
        if now < self._next_maintenance and idle == self._was_idle and not self.changed:
            return
        self._next_maintenance = now + _MAINTENANCE_SECONDS
        wanted = bounds(self._uses, now, self._slots, self._memory(), self._policy)
        for kind in [kind for kind in self._uses if kind not in wanted]:
            del self._uses[kind]
            self._imports.pop(kind, None)
        self._retire(wanted)
        self._top_up(wanted, idle)
        self._was_idle, self._was_warming = idle, self._warming

    def look_at(self, taken: Standby) -> None:
        """If one that has taken its job was older than what is installed now, replace all that are as old."""
        if taken.outdated and taken.zygote is not None and self._zygotes.drop(taken.zygote):
            self._end_of(taken.zygote.kind)
            self._next_maintenance = 0.0

    def next_change(self) -> float:
        """Return in how many seconds `maintain` has something to do though no standby changes; infinity for never."""
        now = self._clock()
        ends = idle_ends(self._uses, self._policy).values()
        due = max(min(ends, default=math.inf), self._next_maintenance)
        return max(0.0, due - now)

    def forget(self) -> None:
        """End all standbys, until a kind is asked for again."""
        self.close()
        self._uses.clear()
        self._imports.clear()

    def close(self) -> None:
        """End all standbys."""
        self._end(self._standbys)
        self._standbys = []
        self._zygotes.close()

    def _known(self, kind: WorkerKind) -> WorkerKind:
        """Bring a kind without fingerprint together with the one that is known of its interpreter, and the reverse."""
        related = [known for known in self._uses if _serves(known, kind)]
        if not related:
            return kind
        latest = max(related, key=lambda known: self._uses[known].last)
        if not kind.fingerprint:
            return latest
        if not latest.fingerprint:
            self._uses[kind] = self._uses.pop(latest)
            self._zygotes.rename(latest, kind)
        for standby in self._standbys:
            if not standby.kind.fingerprint and _serves(standby.kind, kind):
                standby.kind = replace(standby.kind, fingerprint=kind.fingerprint)
        return kind

    def _drop_ended(self) -> None:
        if self._zygotes.look_after():
            self._next_maintenance = 0.0
        for standby in self.standbys:
            if standby.process.ended() is None:
                continue
            self._standbys.remove(standby)
            if not standby.ready:
                reason = standby.startup_output().strip()
                self._failures.add(standby.kind)
                logger.warning("a standby for %s did not start: %s", standby.kind, reason or "no output")
            standby.close()
            self._next_maintenance = 0.0

    def _retire(self, wanted: dict[WorkerKind, Bounds]) -> None:
        self._zygotes.keep(wanted)
        surplus: list[Standby] = []
        for kind in {standby.kind for standby in self._standbys}:
            most = wanted[kind].most if kind in wanted else 0
            of_kind = sorted((item for item in self._standbys if item.kind == kind), key=lambda item: not item.ready)
            surplus += of_kind[most:]
        self._end(surplus)
        self._standbys = [standby for standby in self._standbys if standby not in surplus]

    def _top_up(self, wanted: dict[WorkerKind, Bounds], idle: bool) -> None:
        by_recency = sorted(wanted, key=lambda kind: self._uses[kind].last, reverse=True)
        for kind in by_recency:
            lacking = wanted[kind].least - sum(standby.kind == kind for standby in self._standbys)
            if not self._zygotes.serve(kind):
                self._warm_up(kind, lacking if idle else 0)
            elif self._zygotes.known(kind):
                self._fork(kind, lacking, idle)
            elif idle and lacking > 0 and self._warming < self._policy.warming and kind not in self._failures:
                self._start(kind)

    def _warm_up(self, kind: WorkerKind, lacking: int) -> None:
        """Have fresh processes warm up."""
        for _ in range(lacking):
            if self._warming >= self._policy.warming or kind in self._failures:
                break
            try:
                self._standbys.append(Standby(kind, self._recipe, self._imports.get(kind, ())))
            except SpawnError as error:
                self._failures.add(kind)
                logger.warning("no standby for %s: %s", kind, error)

    def _start(self, kind: WorkerKind) -> None:
        """Have a zygote warm up."""
        try:
            self._zygotes.start(kind, self._imports.get(kind, ()))
        except SpawnError as error:
            self._failures.add(kind)
            logger.warning("no standby for %s: %s", kind, error)

    def _fork(self, kind: WorkerKind, lacking: int, idle: bool) -> None:
        """Fork standbys, at any time: that takes milliseconds. What the last program imported is imported first."""
        if idle and self._zygotes.bring(kind, self._imports.get(kind, ())):
            lacking += self._end_of(kind)
        for _ in range(lacking):
            standby = self._zygotes.fork(kind)
            if standby is None:
                break
            self._standbys.append(standby)

    def _end_of(self, kind: WorkerKind) -> int:
        """End the forked standbys of a kind; return how many there were."""
        stale = [standby for standby in self._standbys if standby.kind == kind and standby.zygote is not None]
        self._end(stale)
        self._standbys = [standby for standby in self._standbys if standby not in stale]
        return len(stale)

    @staticmethod
    def _end(standbys: Iterable[Standby]) -> None:
        """End standbys at once: they hold nothing worth a farewell."""
        standbys = list(standbys)
        for standby in standbys:
            standby.process.signal(signal.SIGKILL)
            standby.close()
        for standby in standbys:
            standby.process.wait(_END_SECONDS)


def _serves(standby: WorkerKind, wanted: WorkerKind) -> bool:
    """Whether a standby of one kind can take a job of another: the fingerprint may be unknown on either side."""
    same_program = (standby.framework, standby.executable) == (wanted.framework, wanted.executable)
    return same_program and (
        standby.fingerprint == wanted.fingerprint or not standby.fingerprint or not wanted.fingerprint
    )
