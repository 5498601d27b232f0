"""Trials that a full disk has ended: they start again once there is room, or after a while where nobody can tell."""

from __future__ import annotations

from collections.abc import Iterable

from det_native.storage.room import RoomWatch


class RoomWaits:
    """Which trials wait for room, and on which disks. Kept in memory: the next master tries them at once."""

    def __init__(self) -> None:
        self._watches: dict[int, list[RoomWatch]] = {}

    def add(self, trial_id: int, paths: Iterable[str]) -> None:
        """Have a trial wait until there is more room in one of these places."""
        self._watches[trial_id] = [RoomWatch(path) for path in paths]

    @property
    def trials(self) -> set[int]:
        """The trials that wait."""
        return set(self._watches)

    def release(self) -> bool:
        """Let those go for which there may be room now; return whether there are any."""
        ready = [trial for trial, watches in self._watches.items() if any(watch.has_more() for watch in watches)]
        for trial in ready:
            del self._watches[trial]
        return bool(ready)
