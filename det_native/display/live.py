"""Live views under a cell. The kernel is never blocked: what a view needs of it is done in a thread of its own.

What is saved with the notebook beside the widget (a line, HTML, a picture) is renewed soon after the cell, every half
minute while something happens, when the experiment is paused, and at its end; the thread ends with the experiment. What
has ended already is saved at once, and has no thread but while it is told to a front end that asks.
"""

from __future__ import annotations

import contextvars
import math
import threading
import time
import uuid
import weakref
from contextlib import suppress
from typing import Any

from det_native.client import ended
from det_native.client.events import EventFeed
from det_native.client.handles import Experiment
from det_native.client.trial import Trial
from det_native.display.environment import ends_with_notebook, in_notebook, running_shell
from det_native.display.fallback import last_state
from det_native.display.feed import ViewReader
from det_native.display.widget import can_show_widgets, make_widget, tell, view_of
from det_native.errors import DetError, NotFoundError
from det_native.schema.states import ExperimentState

FIRST_RENEWAL_SECONDS = 3.0
RENEW_SECONDS = 30.0
PUSH_SECONDS = 1.0
CALM_SECONDS = 2.0
# What is told takes at most this share of a processor, and so many characters a second: a training may run beside it.
SHARE = 0.05
PACE = 100_000
RETRY_SECONDS = 5.0
SETTLE_SECONDS = 20.0
# What a master says, or its absence.
UNREADABLE = (DetError, OSError)

_views: weakref.WeakSet[LiveView] = weakref.WeakSet()
# Those of a notebook that is only executed, until their last state is shown.
_unsettled: set[LiveView] = set()


def show(handle: Experiment | Trial) -> bool:
    """Show a handle as a live view; return whether that was done.

    What has ended is none where no widget can be shown: nothing would be renewed.
    """
    if not in_notebook():
        return False
    widget = can_show_widgets()
    if not widget and handle.state.terminal:
        return False
    view = LiveView(handle, widget=widget)
    _views.add(view)
    if not view.has_widget or ends_with_notebook():
        _unsettled.add(view)
        _settle_after_cells()
    view.start()
    return True


def show_once(handle: Experiment | Trial) -> bool:
    """Show a handle as a live view unless one stands under the cell that runs now; return whether one does."""
    cell, shown = _cell(), _shown(handle)
    return any(view.shown == shown and view.cell == cell for view in _views) or show(handle)


def views_of(handle: Experiment | Trial) -> list[LiveView]:
    """Return the live views of a handle."""
    return [view for view in list(_views) if view.shown == _shown(handle)]


def _settle_after_cells() -> None:
    """Have every cell of a notebook that is only executed end with the last state of what has ended on the screen.

    Such a notebook keeps only what a cell publishes while it runs: nothing of a thread that began in an earlier one.
    """
    events = running_shell().events
    if _settle not in events.callbacks["post_run_cell"]:
        events.register("post_run_cell", _settle)


def _settle(*_: object) -> None:
    for view in list(_unsettled):
        if view.settle():
            _unsettled.discard(view)


class LiveView:
    """One display of an experiment or a trial.

    Parameters
    ----------
    widget : bool
        Whether a widget shows it; otherwise the last state is shown, and renewed.
    """

    def __init__(self, handle: Experiment | Trial, *, widget: bool) -> None:
        self._handle = handle
        self._experiment_id, self._trial_id = _ids(handle)
        self._source = handle.source
        self._reader = ViewReader(self._source, self._experiment_id, self._trial_id)
        self._display_id = uuid.uuid4().hex
        self._reading = threading.Lock()
        self._served = not widget
        self._replay = threading.Event()
        self._greeted = False
        self._forgotten = False
        #: The user has pressed "Leave it running".
        self.left = threading.Event()
        self._rest = 0.0
        self._last_event = 0
        self._thread: threading.Thread | None = None
        self.shown = _shown(handle)
        self.cell = _cell()
        self.has_widget = widget
        self._widget = self._make_widget() if widget else None
        self._created = handle.detail().created if widget else ""

    def start(self) -> None:
        """Show the view, and follow what goes on in the background."""
        ended = self._handle.state.terminal
        self._publish(update=False, picture=False)
        if ended:
            self._publish(update=True)  # with the picture, which takes a while: the view is seen before
            return
        self._thread = self._spawn(self._run, f"det-live-{self._experiment_id}")

    @property
    def comm_id(self) -> str:
        """What the messages of its widget are known by; empty without one."""
        return "" if self._widget is None else str(self._widget.model_id)

    def offer_leaving(self, waits: bool) -> None:
        """Show or hide "Leave it running"."""
        self.left.clear()
        if self._widget is not None:
            self._widget.waiting = waits

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the following."""
        if self._thread is not None:
            self._thread.join(timeout)

    def settle(self) -> bool:
        """If the experiment has ended, show its last state in the name of the cell that runs now; return whether."""
        try:
            if not self._handle.state.terminal:
                return False
            self.join(SETTLE_SECONDS)
            self._publish(update=True)
        except NotFoundError:
            return True
        except UNREADABLE:
            return False  # the master is away: after the next cell then
        return True

    def _make_widget(self) -> Any:
        return make_widget(self._experiment_id, self._trial_id, self._source.url, self._take)

    def _spawn(self, target: Any, name: str, *arguments: Any) -> threading.Thread:
        # In the context of this cell: what the thread publishes is the cell's, whichever cell runs by then.
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(target, *arguments), name=name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        """Follow the experiment over any number of losses of its master."""
        while True:
            try:
                self._follow()
                self._push()
                self._publish(update=True)
                if (result := ended.result_of(self._handle)) is not None and self._handle.state.terminal:
                    result.bring_files()
            except NotFoundError as error:
                self._tell({}, lost=str(error))
                return  # deleted: it does not come back
            except UNREADABLE as error:
                self._tell({}, lost=str(error))
                self._replay.wait(RETRY_SECONDS)
            else:
                return

    def _follow(self) -> None:
        """Push and renew as things happen, until the end."""
        pushed, due = -math.inf, time.monotonic() + (0 if self._has_begun() else FIRST_RENEWAL_SECONDS)
        changed, paused = True, False
        with EventFeed(self._source, self._experiment_id, self._last_event) as feed:
            while True:
                try:
                    event = feed.next(PUSH_SECONDS)
                except TimeoutError:
                    pass
                else:
                    if event is None:
                        return
                    self._last_event, changed = max(self._last_event, event.id), True
                    if event.type in ("experiment", "trial") and self._handle.state.terminal:
                        return
                    paused = (
                        event.type == "experiment" and ExperimentState(event.data["state"]) is ExperimentState.PAUSED
                    )
                now = time.monotonic()
                if self._wants_push(now - pushed, changed=changed):
                    changed |= self._push()
                    pushed = time.monotonic()
                if changed and (paused or now >= due):
                    self._publish(update=True)
                    due, changed, paused = now + RENEW_SECONDS, False, False

    def _has_begun(self) -> bool:
        """Return whether there are curves to draw already: what is saved has its picture at once then."""
        if isinstance(self._handle, Experiment):
            return self._handle.detail().progress > 0
        return self._handle.detail().batches > 0

    def _wants_push(self, seconds: float, *, changed: bool) -> bool:
        if self._replay.is_set():
            return True
        return not self._served and seconds >= max(PUSH_SECONDS if changed else CALM_SECONDS, self._rest)

    def _push(self) -> bool:
        """Tell the front end what has changed; return whether anything has."""
        if self._served and not self._replay.is_set():
            return False
        with self._reading:
            begun = time.monotonic()
            self._replay.clear()
            parts = self._reader.changes()
            self._tell(parts)
            self._rest = max((time.monotonic() - begun) / SHARE, self._reader.size / PACE)
        return bool(parts)

    def _tell(self, parts: dict[str, Any], lost: str = "") -> None:
        if self._widget is not None:
            tell(self._widget, parts, lost)

    def _send(self, message: dict[str, Any], *buffers: bytes) -> None:
        if self._widget is not None:
            self._widget.send(message, list(buffers) or None)

    def _take(self, content: dict[str, Any]) -> None:
        """Do what the front end asks; what takes time, in a thread."""
        kind = content.get("type")
        if kind == "hello":
            self._forgotten = self._greeted
            self._greeted = True
            if self._forgotten:
                self._spawn(self._renew, f"det-renew-{self._experiment_id}")
        elif kind == "served":
            self._served = True
        elif kind == "replay":
            self._served = False
            self._replay.set()
            if self._thread is None or not self._thread.is_alive():
                self._spawn(self._push_once, f"det-replay-{self._experiment_id}")
        elif kind == "leave":
            self.left.set()
        elif kind == "outputs":
            self._spawn(self._choose, f"det-outputs-{self._experiment_id}", content.get("id"), content.get("trial_id"))
        elif kind == "content":
            asked = content.get("id"), content.get("trial_id"), content.get("medium_id")
            self._spawn(self._give_content, f"det-content-{self._experiment_id}", *asked)
        elif kind == "act":
            self._spawn(self._act, f"det-act-{self._experiment_id}", content.get("id"), content.get("action"))

    def _push_once(self) -> None:
        try:
            self._push()
        except UNREADABLE as error:
            self._tell({}, lost=str(error))

    def _renew(self) -> None:
        with suppress(*UNREADABLE):
            self._publish(update=True)

    def _act(self, number: object, action: object) -> None:
        source = self._source
        actions = {"pause": source.pause, "resume": source.resume, "stop": source.stop, "kill": source.kill}
        answer: dict[str, Any] = {"type": "answer", "id": number}
        try:
            actions[str(action)](self._experiment_id)
        except DetError as error:
            answer["error"] = str(error)
        except KeyError:
            answer["error"] = f"There is no action {action!r}."
        self._send(answer)

    def _choose(self, number: object, trial_id: object) -> None:
        """Tell what another trial has logged and written; 0 for the best one."""
        self._reader.outputs_of = int(str(trial_id))
        self._replay.set()
        self._push_once()
        self._send({"type": "answer", "id": number})

    def _give_content(self, number: object, trial_id: object, medium_id: object) -> None:
        """Give the front end a picture, say, that it shows."""
        answer: dict[str, Any] = {"type": "answer", "id": number}
        try:
            found = {medium.id: medium for medium in self._source.media(int(str(trial_id)))}
            content = self._source.medium_content(found[int(str(medium_id))])
        except UNREADABLE as error:
            self._send({**answer, "error": str(error)})
        except (KeyError, ValueError):
            self._send({**answer, "error": "It is not there any more."})
        else:
            self._send(answer, content)

    def _publish(self, *, update: bool, picture: bool = True) -> None:
        """Show the view, or renew what is saved of it."""
        state = self._handle.state  # if it ends meanwhile, this is published once more
        data = last_state(self._handle, picture=picture)
        if self._widget is not None:
            data |= view_of(self._widget, self._created, state.name)
        running_shell().display_pub.publish(data, transient={"display_id": self._display_id}, update=update)
        if self._forgotten:
            self._send({"type": "saved", "data": data})


def _ids(handle: Experiment | Trial) -> tuple[int, int]:
    if isinstance(handle, Experiment):
        return handle.id, 0
    return handle.experiment_id, handle.id


def _shown(handle: Experiment | Trial) -> tuple[str, int, int]:
    """Return what tells one thing that is shown from another."""
    return handle.source.url, *_ids(handle)


def _cell() -> str:
    """Return what tells one execution of a cell from another."""
    shell = running_shell()
    parent = shell.get_parent() if shell is not None and hasattr(shell, "get_parent") else {}
    return str((parent or {}).get("header", {}).get("msg_id", ""))
