"""The zygotes of a launcher: one for each kind of worker that is in use, as long as its processes can be forked."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from det_native.master.launch.base import WorkerKind
from det_native.master.launch.recipe import Recipe
from det_native.master.launch.standby import Standby
from det_native.master.launch.zygote import Zygote, ZygoteError

logger = logging.getLogger(__name__)


class Zygotes:
    """Keeps zygotes, by kind.

    Where one cannot be forked from, or has not even started, its kind's standbys are fresh processes from then on. One
    that ends, or does not answer, later is replaced.

    Parameters
    ----------
    enabled : bool
        Whether there are to be any.
    """

    def __init__(self, recipe: Recipe, *, enabled: bool) -> None:
        self._recipe = recipe
        self._enabled = enabled
        self._living: dict[WorkerKind, Zygote] = {}
        self._unfit: set[WorkerKind] = set()

    @property
    def living(self) -> tuple[Zygote, ...]:
        """All zygotes, ready or not."""
        return tuple(self._living.values())

    @property
    def warming(self) -> int:
        """How many import something at the moment."""
        return sum(not zygote.ready for zygote in self.living)

    def serve(self, kind: WorkerKind) -> bool:
        """Whether the standbys of a kind are forked."""
        return self._enabled and kind not in self._unfit

    def known(self, kind: WorkerKind) -> bool:
        """Whether there is a zygote of a kind, ready or not."""
        return kind in self._living

    def rename(self, before: WorkerKind, now: WorkerKind) -> None:
        """Note that a kind's fingerprint has become known."""
        if before in self._living:
            zygote = self._living.pop(before)
            zygote.kind = now
            self._living[now] = zygote
        if before in self._unfit:
            self._unfit.add(now)

    def start(self, kind: WorkerKind, imports: Iterable[str]) -> None:
        """Start one.

        Raises
        ------
        SpawnError
            If the interpreter cannot be executed.
        """
        self._living[kind] = Zygote(kind, self._recipe, tuple(imports))

    def fork(self, kind: WorkerKind) -> Standby | None:
        """Return a new standby, None if there is no zygote that is ready, or it does not do it."""
        zygote = self._living.get(kind)
        if zygote is None or not zygote.ready:
            return None
        try:
            return Standby(kind, self._recipe, zygote=zygote)
        except ZygoteError as error:
            logger.warning("%s is ended, fresh processes do its work meanwhile: %s", zygote, error)
            self._drop(zygote)
            return None

    def bring(self, kind: WorkerKind, imports: Collection[str]) -> bool:
        """Have a kind's zygote import what it lacks of these modules; whether there was any."""
        zygote = self._living.get(kind)
        if zygote is None or not zygote.ready or zygote.imports.issuperset(imports):
            return False
        try:
            zygote.bring(sorted(set(imports) - zygote.imports))
        except ZygoteError as error:
            logger.warning("%s is ended: %s", zygote, error)
            self._drop(zygote)
        return True

    def pump(self) -> None:
        """Note, without waiting, what they say."""
        for zygote in self.living:
            zygote.pump()

    def look_after(self) -> bool:
        """Drop those that have ended or are of no use; whether there were any."""
        dropped = [zygote for zygote in self.living if self._is_lost(zygote)]
        for zygote in dropped:
            self._drop(zygote)
        return bool(dropped)

    def keep(self, kinds: Collection[WorkerKind]) -> None:
        """End those of other kinds."""
        for zygote in self.living:
            if zygote.kind not in kinds:
                self._drop(zygote)

    def drop(self, zygote: Zygote) -> bool:
        """End one that is older than what is installed now; whether it was one of these."""
        if zygote not in self.living:
            return False
        logger.info("%s is older than what is installed now; another one takes its place", zygote)
        self._drop(zygote)
        return True

    def close(self) -> None:
        """End all of them."""
        self.keep(())

    def _is_lost(self, zygote: Zygote) -> bool:
        if zygote.unfit:
            logger.warning("%s is not used, its standbys are fresh processes: %s", zygote, zygote.unfit)
            self._unfit.add(zygote.kind)
            return True
        ended = zygote.process.ended()
        if ended is None:
            return False
        if zygote.ready:
            logger.warning("%s has ended (exit code %s); another one takes its place", zygote, ended.code)
        else:
            said = zygote.said() or "no output"
            logger.warning("%s did not start, its standbys are fresh processes: %s", zygote, said)
            self._unfit.add(zygote.kind)
        return True

    def _drop(self, zygote: Zygote) -> None:
        self._living.pop(zygote.kind, None)
        zygote.end()
