"""A Sequence of the user's as a source of data: its first item is read once, and what it keeps can be saved."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from det_native.carried.names import CarriedNames
from det_native.carried.namespaces import Namespace
from det_native.carried.table import Kinds
from det_native.carried.undo import Undo
from det_native.keras.generations import internals
from det_native.keras.streams import GlobalState, go_on_from, seeded_state, swapped_state

logger = logging.getLogger("det_native")

_SPACE, _NAME = "the data", "x"
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

    Attributes
    ----------
    sequence : tf.keras.utils.Sequence
    stream : GlobalState or None
        As what was read last has left it.
    """

    def __init__(self, sequence: Any, stream: GlobalState | None = None, *, apart: bool = True) -> None:
        self.sequence = sequence
        self.stream = self._looked_from = stream
        self._apart = apart
        self._names: CarriedNames | None = None
        self._undo: Undo | None = None
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

    def look(self) -> None:
        """Look at what the Sequence leads to, before anything of it is read; later differences to that are kept."""
        if self._names is not None:
            return
        try:
            space = Namespace({_NAME: self.sequence})
            self._names = CarriedNames({_SPACE: space}, {_SPACE: [_NAME]}, {}, kinds=_kinds())
            self._undo = Undo(self._names.parts)
        except Exception as error:  # noqa: BLE001 (objects of users may raise anything when they are looked at)
            logger.warning("What the %s keeps is not in checkpoints: %s", _kind(self.sequence), error)
            self._names = CarriedNames({}, {}, {})

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Have the Sequence keep what it kept before the block, in which it is read."""
        before, first = self.state(), [*self._first]
        try:
            yield
        finally:
            self._first[:] = first
            if self._undo is not None:
                self._undo.undo()
                self.put_state(before)

    def give_back(self) -> None:
        """Leave the Sequence as if its first item had not been read: another process reads it."""
        if self._first and self._undo is not None:
            self._undo.undo()

    def state(self) -> bytes:
        """Return what differs from the beginning."""
        self.look()
        if self._names is None:
            return b""
        saved = self._names.save()
        self._tell(saved.lost)
        return saved.data

    def put_state(self, state: bytes) -> None:
        """Put back what :meth:`state` has returned in a process with the same program."""
        self.look()
        if self._names is not None and state:
            self._tell(self._names.restore(state))

    def _tell(self, lost: Mapping[str, str]) -> None:
        for name, why in lost.items():
            if name not in _said:
                _said.add(name)
                what = f"what the {_kind(self.sequence)} keeps" if name == _NAME else f"`{name}`"
                logger.warning("Of the training data, %s %s: a trial that goes on has it anew.", what, why)


def _kind(value: Any) -> str:
    return type(value).__qualname__


def _kinds() -> Kinds:
    tensors = (tf.Tensor, tf.Variable, tf.data.Dataset, tf.Module, tf.keras.callbacks.Callback)
    return Kinds(as_users=(tf.keras.utils.Sequence,), fixed=(*tensors, *internals.tracked_kinds()))
