"""A Sequence of the user's as a source of data: its first item is read once, and what it keeps can be saved."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from det_native.heap.call import CallSnapshot
from det_native.keras.streams import GlobalState, go_on_from, seeded_state, swapped_state

logger = logging.getLogger("det_native")

_said: set[str] = set()


class DataSource:
    """A Sequence, and all that its code leads to: the random numbers, lists and counters that it keeps.

    Parameters
    ----------
    sequence : tf.keras.utils.Sequence
    stream : GlobalState, optional
        Of the global generators of Python and numpy, from which its items draw in turn, as in plain Keras.
    apart : bool
        Without a stream: whether the first item, which is read for its shape only, draws from separate random numbers.
    kept_elsewhere : iterable of object
        Objects that it may hold and that are not its own: the trained model, callbacks.

    Attributes
    ----------
    sequence : tf.keras.utils.Sequence
    stream : GlobalState or None
        As what was read last has left it.
    """

    def __init__(
        self,
        sequence: Any,
        stream: GlobalState | None = None,
        *,
        apart: bool = True,
        kept_elsewhere: Iterable[Any] = (),
    ) -> None:
        self.sequence = sequence
        self.stream = self._looked_from = stream
        self._apart = apart
        self._kept = [*kept_elsewhere]
        self._snapshot: CallSnapshot | None = None
        self._first: list[Any] = []

    @property
    def first(self) -> Any:
        """The item number 0: Keras reads it once, to see its form, before the first epoch."""
        if not self._first:
            self.look()
            self._first.append(self._read(self.stream or (seeded_state(0) if self._apart else None)))
        return self._first[0]

    @property
    def looked_at(self) -> bool:
        """Whether the first item was read."""
        return bool(self._first)

    def join(self, begun: GlobalState | None = None) -> None:
        """Have the generators of the process go on where the stream stands, if nobody has drawn since it has begun."""
        if self.stream is not None:
            go_on_from(self._looked_from if begun is None else begun, self.stream)

    def go_on(self, state: bytes, *, looked_at: bool) -> None:
        """Put back what another process has kept, which had read the first item by then or had not."""
        self.look()
        if looked_at and not self._first:
            self._first.append(self._read(seeded_state(0)))
        self.put_state(state)

    def _read(self, numbers: GlobalState | None) -> Any:
        if numbers is None:
            return self.sequence[0]
        with swapped_state(numbers) as ended:
            item = self.sequence[0]
        if self.stream is not None:
            self.stream = ended[0]
        return item

    def look(self) -> CallSnapshot:
        """Look at what the Sequence leads to, before anything of it is read; later differences to that are kept."""
        if self._snapshot is None:
            self._snapshot = CallSnapshot({}, given={"x": self.sequence}, kept_elsewhere=self._kept, keep_small=True)
        return self._snapshot

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Have the Sequence keep what it kept before the block, in which it is read."""
        before, first, stream = self.state(), [*self._first], self.stream
        try:
            yield
        finally:
            self._first[:], self.stream = first, stream
            self.look().undo()
            self.put_state(before)

    def give_back(self) -> None:
        """Leave the Sequence as if its first item had not been read: another process reads it."""
        if self._first:
            self.look().undo()

    def state(self) -> bytes:
        """Return what differs from the beginning."""
        changes = self.look().changes()
        self._tell(changes.left_out)
        return changes.data

    def put_state(self, state: bytes) -> None:
        """Put back what :meth:`state` has returned in a process with the same program."""
        if state:
            self._tell(self.look().put(state))

    def _tell(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            if sentence not in _said:
                _said.add(sentence)
                logger.warning("Of the %s: %s", type(self.sequence).__qualname__, sentence)
