"""Which values a cell has changed, whatever way it took: their fingerprints differ after it.

Reading the cells finds most of what they change; this finds the rest, where a value is small and plain enough to be
looked at before and after every cell, see ``fingerprint``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from det_native.capture.fingerprint import Observation, observe
from det_native.capture.random_streams import State, stream_states

if TYPE_CHECKING:
    from det_native.capture.events import Stream

_SLOW = 0.02  # seconds of the processor for one value: it is not looked at again
_SLOW_TOGETHER = 0.1  # for all values: then those that take the most are not looked at again
_SLOW_OBSERVATIONS = 2  # once, something else may have taken the time
_OF_THE_SHELL = re.compile(r"_+|_i+|_i?\d+|_[dios]h|In|Out|_exit_code")


class Seen(NamedTuple):
    """What two observations of the same names tell.

    Attributes
    ----------
    changed : frozenset of str
        Names whose values differ; new names are not among them.
    unchanged : frozenset of str
        Names whose values are the same, down to the last of their parts.
    between : frozenset of str
        Names whose values were changed since the cell before it: by a widget, a timer.
    out_of_sight : frozenset of str
        Those of the changed that something else than the cell's text may have changed: a file that ``%run`` ran.
    drew : frozenset of str
        Global streams of random numbers whose state differs: something was drawn, or they were seeded.
    seeded : frozenset of str
        Those of them that were seeded last.
    """

    changed: frozenset[str] = frozenset()
    unchanged: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()
    out_of_sight: frozenset[str] = frozenset()
    drew: frozenset[Stream] = frozenset()
    seeded: frozenset[Stream] = frozenset()


NOTHING_SEEN = Seen()


class Watch:
    """Compares the values of a namespace from one observation to the next."""

    def __init__(self) -> None:
        self._seen: dict[str, Observation] = {}
        self._streams: dict[Stream, State] = {}
        self._slow: dict[str, list[int]] = {}  # name to the id of its value, for each observation that was slow

    def compare(self, namespace: Mapping[str, Any], hidden: Collection[str] = ()) -> Seen:
        """Compare the values with those of the last observation.

        Parameters
        ----------
        namespace : mapping of name to value
        hidden : collection of str
            Names of it that are not the user's.
        """
        before, self._seen = self._seen, {}  # an interrupted observation is none
        seen: dict[str, Observation] = {}
        took: dict[str, float] = {}
        for name, value in list(namespace.items()):
            if name in hidden or _OF_THE_SHELL.fullmatch(name) or self._is_slow(name, value):
                continue
            begin = time.thread_time()
            seen[name] = Observation(id(value), None, 0, exact=False)
            with suppress(Exception):  # what cannot be looked at is left to the reading of the cells
                seen[name] = observe(value)
            took[name] = time.thread_time() - begin
        self._note_slow(took, seen)
        self._seen = seen
        both = seen.keys() & before.keys()
        changed = frozenset(name for name in both if _is_another(before[name], seen[name]))
        unchanged = frozenset(name for name in both if seen[name].exact and seen[name] == before[name])
        streams, self._streams = self._streams, stream_states()
        drew = frozenset(stream for stream, now in self._streams.items() if streams.get(stream, now) != now)
        seeded = frozenset(stream for stream in drew if self._streams[stream].fresh)
        return Seen(changed, unchanged, drew=drew, seeded=seeded)

    def changed_since(self, namespace: Mapping[str, Any]) -> frozenset[str]:
        """Return names whose values are others than at the last observation; the next one compares with that, too."""
        watch = Watch()
        watch._seen, watch._slow = self._seen, dict(self._slow)
        return watch.compare(namespace).changed

    def _note_slow(self, took: Mapping[str, float], seen: Mapping[str, Observation]) -> None:
        together = sum(took.values())
        for name in sorted(took, key=took.__getitem__, reverse=True):
            if took[name] <= _SLOW and together <= _SLOW_TOGETHER:
                break
            together -= took[name]
            self._slow.setdefault(name, []).append(seen[name].identity)

    def _is_slow(self, name: str, value: Any) -> bool:
        slow = self._slow.get(name, [])
        if slow and slow[-1] != id(value):
            del self._slow[name]
        return slow.count(id(value)) >= _SLOW_OBSERVATIONS


def _is_another(before: Observation, now: Observation) -> bool:
    if before.identity != now.identity:
        return True
    return None not in (before.fingerprint, now.fingerprint) and before.fingerprint != now.fingerprint
