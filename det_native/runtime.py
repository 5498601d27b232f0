"""Who is running the user's program at this moment.

``init()``, ``fit()`` and ``create()`` mean different things in a notebook kernel and inside a program that the harness
replays. The harness installs itself here before it runs the program; with nothing installed, the user is typing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from det_native.schema.environment import TrialEnvironment


class ProgramHost(Protocol):
    """What replays a captured program: the worker's harness, or a checkpoint being loaded back.

    ``environment`` is the trial that the program is replayed for, ``role`` what for. ``take_call`` is asked at every
    training call (``fit``, ``create``, ``train_and_evaluate``) of the program; it returns a null handle for a call
    that is not the recorded one, and for the recorded one takes over and does not return. ``take_loop`` is asked where
    the program trains in a loop of its own (``train``): what it returns is called where that loop asks for its first
    batch, and gives the loop's batches; none for a call that is not the recorded one, and after those of the recorded
    one it does not let the program go on. ``stand_in`` gives a null handle for what is not at
    hand here of a training. ``owns_init`` is asked at every ``init()``: whether it is the one that the
    recorded call belongs to, so that ``environment`` is its trial. That one calls ``set_streams_of_init``.
    ``takes_any_call`` says that no call is recorded, as of a script that knows nothing of det_native: it trains with
    the first that it makes, and runs on after that.
    """

    environment: TrialEnvironment
    role: Literal["worker", "load"]

    @property
    def takes_any_call(self) -> bool:
        """Whether the program's first training call is the trial's, whichever it is."""

    def take_call(self, kind: str, payload: Any) -> Any:
        """Handle one training call of the program."""

    def take_loop(self, kind: str, payload: Any) -> Callable[[], Iterator[Any]]:
        """Return what gives the batches of one loop of the program."""

    def stand_in(self, place: str) -> Any:
        """Return a null handle; `place` says which training it is of."""

    def owns_init(self) -> bool:
        """Whether the ``init()`` being called is the recorded call's; True for any if none is recorded."""

    def set_streams_of_init(self) -> None:
        """Have a trial with the notebook's seed draw from here on what the notebook drew after its ``init()``."""


_host: ProgramHost | None = None


def active_host() -> ProgramHost | None:
    """Return the host that replays the current program, or None in a user's own process."""
    return _host


@contextmanager
def hosted(host: ProgramHost) -> Iterator[None]:
    """Make `host` the one that training calls are handed to, for the duration of the block."""
    global _host
    previous, _host = _host, host
    try:
        yield
    finally:
        _host = previous


_replay: Callable[..., Any] | None = None


def register_replay(replay: Callable[..., Any]) -> None:
    """Have handles of earlier experiments made by `replay`: the harness does not import the room of handles."""
    global _replay
    _replay = replay


def replayed_experiment(*arguments: Any) -> Any:
    """Return the handle of an earlier experiment of the program, as ``client.replayed_source.replayed`` makes it."""
    assert _replay is not None, "the program has made a training call"
    return _replay(*arguments)


class Later:
    """A value that is made when somebody asks for it first.

    Parameters
    ----------
    make : callable
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class MadeLater:
    """An attribute whose value may be a `Later`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = getattr(instance, self._name)
        if isinstance(value, Later):
            value = value.make()
            setattr(instance, self._name, value)
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance, self._name, value)
