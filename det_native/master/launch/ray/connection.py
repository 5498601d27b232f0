"""The connection to the cluster: a bridge, which is started anew where it ends, hangs or is refused."""

from __future__ import annotations

import logging
import selectors
import time
from collections.abc import Callable, Iterator

from det_native.errors import MasterError
from det_native.master.launch.ray.bridge_process import BridgeProcess
from det_native.master.launch.ray.messages import Close, Command, Connected, Event, Lost

logger = logging.getLogger(__name__)

_PAUSES = (0.5, 15.0)
_REFUSED_PAUSE = 30.0
_STEADY_SECONDS = 30.0
_CLOSE_SECONDS = 20.0
# The exit codes of a bridge that has said why it ends, or that was asked to end.
_EXPLAINED_CODES = (0, 3, 4)
# A bridge that is connected says something every 10 seconds.
_SILENT_SECONDS = 60.0


class Connection:
    """Keeps a bridge to the cluster.

    Parameters
    ----------
    address : str
        Of the cluster.
    arguments : callable
        Returns what a bridge is started with; None as long as none can be started.
    greet : callable
        Called with each bridge that begins, which knows nothing of what was said to another one before.
    on_end : callable
        Called when a bridge has ended.

    Attributes
    ----------
    connected : Connected or None
        What the bridge has said of the cluster, None as long as it is not connected.
    refused : bool
        Whether the cluster has refused us for a reason that trying again does not change.
    is_away : bool
        Whether nobody has answered at its address.
    trouble : str
        Why the cluster cannot be used now, a sentence; empty if it can.
    """

    def __init__(
        self,
        address: str,
        arguments: Callable[[], list[str] | None],
        greet: Callable[[BridgeProcess], None],
        on_end: Callable[[], None],
    ) -> None:
        self.bridge: BridgeProcess | None = None
        self.connected: Connected | None = None
        self.refused = False
        self.is_away = False
        self.trouble = f"The Ray cluster at {address} has not answered yet."
        self._address, self._arguments, self._greet, self._on_end = address, arguments, greet, on_end
        self._begun_at, self._start_at, self._pause = 0.0, 0.0, _PAUSES[0]

    def send(self, command: Command) -> None:
        """Have the bridge do something soon; a bridge that begins later hears what it must know when it is greeted."""
        if self.bridge is not None:
            self.bridge.send(command)

    def hurry(self) -> None:
        """Have a bridge that is to be tried again later tried now."""
        self._start_at = 0.0

    def pump(self) -> Iterator[Event]:
        """Take what the bridge says, one thing after the other, and start a bridge where there is none."""
        if self.bridge is None:
            if time.monotonic() >= self._start_at:
                self._start()
            return
        self.bridge.pump()
        try:
            for event in self.bridge.receive():
                self._note(event)
                yield event
            if self.connected is not None and self.bridge.silent > _SILENT_SECONDS:
                logger.warning("the bridge to the Ray cluster hangs, and is ended")
                self._ended()
        except EOFError:
            self._ended()
        except MasterError as error:
            logger.error("%s", error)
            self._ended()

    def register(self, selector: selectors.BaseSelector, pause: float) -> float:
        """Have a selector wait for the bridge too; return how many seconds, `pause` at most, it may wait."""
        if self.bridge is None:
            return min(pause, max(self._start_at - time.monotonic(), 0.0))
        selector.register(self.bridge.stdout, selectors.EVENT_READ)
        if self.bridge.sending:
            selector.register(self.bridge.stdin, selectors.EVENT_WRITE)
        return pause

    def say_ready(self) -> None:
        """Note that machines can be used."""
        self._set_trouble("")

    def close(self, *, kill_workers: bool, has_runs: bool) -> None:
        """End the bridge, once it has told the machines."""
        if self.bridge is None:
            return
        if self.connected is not None or (kill_workers and has_runs):
            self.bridge.send(Close(kill_workers=kill_workers))
            self.bridge.finish(time.monotonic() + _CLOSE_SECONDS)
        self.bridge.end()
        self.bridge = None

    def _start(self) -> None:
        arguments = self._arguments()
        if arguments is None:
            return
        self._begun_at = time.monotonic()
        self.bridge = BridgeProcess(arguments)
        self._greet(self.bridge)

    def _ended(self) -> None:
        assert self.bridge is not None
        code = self.bridge.end()
        self.bridge = None
        now = time.monotonic()
        if self.connected is not None:
            self.connected = None
            self._set_trouble(f"The connection to the Ray cluster at {self._address} was lost. It is tried again.")
            logger.warning("the bridge to the Ray cluster has ended with code %d; another one is started", code)
        elif code not in _EXPLAINED_CODES:  # Ray ends its process where it cannot go on
            self.is_away = True
            self._set_trouble(
                f"The connection to the Ray cluster at {self._address} cannot be made: Ray has ended the process that "
                f"makes it (code {code}), and the master's log has what Ray said. It is tried again."
            )
        if now - self._begun_at > _STEADY_SECONDS:
            self._pause = _PAUSES[0]
        self._start_at = max(self._start_at, now + self._pause)
        self._pause = min(2 * self._pause, _PAUSES[1])
        self._on_end()

    def _note(self, event: Event) -> None:
        match event:
            case Connected():
                self.connected, self.refused, self.is_away = event, False, False
                self._set_trouble(f"The machines of the Ray cluster at {self._address} are being prepared.")
            case Lost():
                self.refused = event.for_good
                self.is_away = self.connected is None and not event.for_good
                if event.for_good:
                    self._start_at = time.monotonic() + _REFUSED_PAUSE
                self._set_trouble(event.why)

    def _set_trouble(self, why: str) -> None:
        if why != self.trouble:
            self.trouble = why
            if why and self.connected is None:
                logger.warning("%s", why)
