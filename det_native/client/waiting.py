"""Waiting for an experiment's end: events move a progress bar, errors are shown at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Set
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import TypeVar

from det_native.client.events import FIRST_PAUSE, LONGEST_PAUSE, EventFeed
from det_native.client.logs import Logs
from det_native.client.progress import ExperimentProgress
from det_native.client.rendering import IsLeft, Outputs, ProgressView
from det_native.client.source import PATIENCE, Source
from det_native.client.travel_hints import travel_hint
from det_native.errors import ExperimentFailedError, MasterUnreachableError, NoMasterError, UserCodeError
from det_native.own_time import own_time
from det_native.schema import rest
from det_native.schema.states import ExperimentState, TrialState

LOG_TAIL = 20
# Seconds without an event after which the view shows what it held back.
SETTLED = 0.3
# Seconds out of touch after which that is said, and a master of this machine that was killed is started again.
TOUCH_SECONDS = 1.0
# Seconds between two looks whether the user has had enough of waiting.
LOOK_SECONDS = 0.25
IN_TOUCH = "In touch again."

Answer = TypeVar("Answer")


class WaitInterrupt(KeyboardInterrupt):
    """Ctrl-C has ended the waiting, and the user was told what that means."""


_is_told: ContextVar[bool] = ContextVar("_is_told", default=False)


@contextmanager
def interrupt_is_told() -> Iterator[None]:
    """Leave what to say on Ctrl-C to the caller, who knows more of what comes next."""
    token = _is_told.set(True)
    try:
        yield
    finally:
        _is_told.reset(token)


def tell_interrupt(experiment_id: int, say: Callable[[str], None]) -> None:
    """Say that the waiting was interrupted, and what has become of the experiment."""
    if not _is_told.get():
        say(f"Experiment {experiment_id} goes on running: experiment.wait() shows it again, experiment.stop() ends it.")


def wait(
    source: Source,
    experiment_id: int,
    view: ProgressView,
    *,
    timeout: float | None = None,
    after: int = 0,
    shown: set[str] | None = None,
    is_left: IsLeft = lambda: False,
    outputs: Outputs | None = None,
) -> int:
    """Block until the experiment has ended.

    Parameters
    ----------
    view : ProgressView
        What shows the progress; it is closed here.
    timeout : float, optional
        Seconds.
    after : int
        Id of the last event that was already shown.
    shown : set of str, optional
        Takes up the tracebacks that are shown.
    is_left : callable
        Asks whether the user wants the experiment left running; then it is as with Ctrl-C.
    outputs : Outputs, optional
        Shows what the training prints and shows.

    Returns
    -------
    int
        Id of the last event.

    Raises
    ------
    TimeoutError
        If the experiment has not ended in time.
    WaitInterrupt
        On Ctrl-C; the experiment goes on.
    """
    with closing(view), own_time():
        try:
            shown = set() if shown is None else shown
            return _follow(source, experiment_id, view, timeout, after, shown, is_left, outputs or Outputs())
        except TimeoutError:
            raise TimeoutError(_not_ended(source, experiment_id, timeout)) from None
        except KeyboardInterrupt:
            tell_interrupt(experiment_id, view.message)
            raise WaitInterrupt from None  # a new one: where in the waiting it arrived says nothing


def _follow(
    source: Source,
    experiment_id: int,
    view: ProgressView,
    timeout: float | None,
    after: int,
    tracebacks: set[str],
    is_left: IsLeft,
    outputs: Outputs,
) -> int:
    """Show events until the experiment has ended; return the id of the last one."""
    last = after
    with EventFeed(source, experiment_id, after) as feed:
        progress = _first_look(source, experiment_id, view.message)
        for warning in progress.new_warnings():
            view.message(warning)
        view.update(progress.fraction, progress.text)
        if progress.ended:
            return last
        failed: set[int | None] = set()
        for event in _until(feed, timeout, view.flush, Touch(feed, view, source.revive), is_left):
            last = max(last, event.id)
            error = progress.apply(event)
            outputs.take(event)
            if error is not None:
                known = error.traceback in tracebacks
                text = error_text(
                    error, progress.number_of(event.trial_id), again=event.trial_id in failed, known=known
                )
                view.message(text if known else text + travel_hint(source, experiment_id, error))
                failed.add(event.trial_id)
                tracebacks.add(error.traceback)
            for warning in progress.new_warnings():
                view.message(warning)
            view.update(progress.fraction, progress.text)
            if progress.ended and _truly_ended(source, experiment_id):
                break
    return last


def _first_look(source: Source, experiment_id: int, say: Callable[[str], None]) -> ExperimentProgress:
    """Return how the experiment stands."""

    def look() -> ExperimentProgress:
        progress = ExperimentProgress(source.experiment(experiment_id))
        progress.update_trials(source.trials(experiment_id))
        return progress

    return patiently(source, look, say)


def patiently(source: Source, question: Callable[[], Answer], say: Callable[[str], None] | None = None) -> Answer:
    """Ask something; a master that has just gone away is waited for, as in the stream of events.

    Parameters
    ----------
    say : callable, optional
        Takes what is to be told if that lasts, and that it is over.
    """
    begun, pause, told = time.monotonic(), FIRST_PAUSE, False
    while True:
        try:
            answer = question()
        except MasterUnreachableError as error:
            patience = min(PATIENCE, source.patience) if isinstance(error, NoMasterError) else source.patience
            waited = time.monotonic() - begun
            if waited >= patience:
                raise
            if waited >= TOUCH_SECONDS and source.revive():
                continue
            if say is not None and not told and waited >= TOUCH_SECONDS:
                say(str(error))
                told = True
        else:
            if say is not None and told:
                say(IN_TOUCH)
            return answer
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


class Touch:
    """Says when the master is out of reach, and when it is back.

    Parameters
    ----------
    revive : callable
        Starts a master of this machine again that was killed.
    """

    def __init__(self, feed: EventFeed, view: ProgressView, revive: Callable[[], bool] = lambda: False) -> None:
        self._feed = feed
        self._view = view
        self._revive = revive
        self._told = False

    def look(self) -> None:
        """Say what has changed; a moment without connection is nothing to be told."""
        trouble = self._feed.out_of_touch
        if trouble is None:
            if self._told:
                self._view.message(IN_TOUCH)
            self._told = False
            return
        since, error = trouble
        if self._told or time.monotonic() - since < TOUCH_SECONDS:
            return
        self._told = True
        revived = self._revive()
        self._view.message("The master has ended unexpectedly; it was started again." if revived else str(error))


def raise_failure(
    source: Source, experiment_id: int, detail: rest.ExperimentDetail, shown: Set[str] = frozenset()
) -> None:
    """Raise what made the experiment fail, if it did.

    Parameters
    ----------
    shown : set of str
        Tracebacks that the user has just seen: they are not repeated.

    Raises
    ------
    UserCodeError
        With the user's traceback, or its place if it was shown.
    ExperimentFailedError
        With the end of the log.
    """
    if detail.state is not ExperimentState.ERROR:
        return
    headline = f"Experiment {experiment_id} failed."
    error = detail.error
    if error is not None and error.traceback:
        said = error.message.partition("\n")[0]
        brief = f"Experiment {experiment_id} failed{_place(error)}: {error.type}{': ' if said else ''}{said}"
        if error.traceback in shown:
            message = f"{brief} (the traceback is above)"
        else:
            message = f"{headline}\n{error.traceback}{travel_hint(source, experiment_id, error)}"
        raise UserCodeError(message, traceback=error.traceback, cell=error.cell, file=error.file, line=error.line)
    reason = f"\n{detail.error.type}: {detail.error.message}" if detail.error is not None else ""
    raise ExperimentFailedError(f"{headline}{reason}{_log_tail(source, experiment_id)}")


def error_text(error: rest.UserErrorInfo, number: int | None, *, again: bool = False, known: bool = False) -> str:
    """Return what to show for an exception in the user's code: which trial, where, and the traceback.

    Parameters
    ----------
    number : int or None
        That of the trial inside the experiment.
    again : bool
        This trial has failed before.
    known : bool
        The same traceback was shown before, of this trial or another: one line is enough.
    """
    trial = f"Trial {number}" if number is not None else "The experiment"
    when = f"at batch {error.batch}" if error.batch else "before its first batch"
    headline = f"{trial} failed{' again' if again else ''} {when}{',' if _place(error) else ''}{_place(error)}"
    if known and error.traceback:
        return f"{headline}, in the same way."
    if not error.traceback and "\n" not in error.message:
        return f"{headline}: {error.type}: {error.message}"
    return f"{headline}:\n{error.traceback or f'{error.type}: {error.message}'}"


def _place(error: rest.UserErrorInfo) -> str:
    """Return `` in cell [3], line 2, on rank 1``; empty if nothing is known."""
    cell = f"cell [{error.cell}]" if error.cell is not None else ""
    place = [cell, error.file or ""]
    where = ", ".join(part for part in place if part)
    line = f", line {error.line}" if where and error.line is not None else ""
    rank = f" on {error.process}" if error.process else ""
    return (f" in {where}{line}{',' if rank else ''}" if where else "") + rank


def _not_ended(source: Source, experiment_id: int, timeout: float | None) -> str:
    started = f"Experiment {experiment_id} has not ended after {timeout:g} s; "
    if source.experiment(experiment_id).state is ExperimentState.PAUSED:
        return f"{started}it is paused. experiment.resume() goes on with it, experiment.stop() ends it."
    return f"{started}it goes on. experiment.wait() waits again, experiment.stop() ends it."


def _until(
    feed: EventFeed, timeout: float | None, settled: Callable[[], None], touch: Touch, is_left: IsLeft
) -> Iterator[rest.Event]:
    """Yield events for so many seconds; call `settled` whenever none has come for a while.

    Raises
    ------
    KeyboardInterrupt
        If the user wants the experiment left running.
    """
    deadline = math.inf if timeout is None else time.monotonic() + timeout

    def next_within(seconds: float) -> rest.Event | None:
        remaining = max(min(deadline - time.monotonic(), seconds), 0.0)
        return feed.next(None if remaining == math.inf else remaining)

    def waited_for() -> rest.Event | None:
        while True:
            try:
                return next_within(LOOK_SECONDS)
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise
                touch.look()
                look()

    def look() -> None:
        if is_left():
            raise KeyboardInterrupt

    while True:
        look()
        try:
            event = next_within(SETTLED)
        except TimeoutError:
            settled()
            event = waited_for()
        touch.look()
        if event is None:
            return
        yield event


def _truly_ended(source: Source, experiment_id: int) -> bool:
    """Ask again: a replayed event may tell of an end that was not the last one (a resumed experiment)."""
    return patiently(source, lambda: source.experiment(experiment_id).state.terminal)


def _log_tail(source: Source, experiment_id: int) -> str:
    failed = [trial for trial in source.trials(experiment_id) if trial.state is TrialState.ERROR]
    if not failed or not experiment_id:  # of a run that no master has there is no log
        return ""
    lines = Logs(source.logs(failed[0].id)).tail(LOG_TAIL)
    return f"\nLast lines of the log of trial {failed[0].shown_number}:\n{lines}" if lines else ""
