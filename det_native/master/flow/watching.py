"""Watches the live runs: tells of those that hang or are stopped, and says which are to be ended."""

from __future__ import annotations

import logging
import time

from det_native.master.flow.context import Context
from det_native.master.flow.watchdog import CONTACT_SECONDS, Verdict, Watch, span
from det_native.master.store import logs
from det_native.schema.watchdog import Watchdog

logger = logging.getLogger(__name__)


class Watches:
    """One watch for each live run. But for :meth:`heard`, used by the decision thread only."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._watches: dict[str, Watch] = {}
        self._stopped: dict[str, list[int]] = {}
        self._looked: dict[str, float] = {}

    def begin(self, run_id: str, config: Watchdog) -> None:
        """Begin to watch a run."""
        self._watches[run_id] = Watch.begin(config, time.monotonic())

    def heard(self, run_id: str, *, reports: bool, counter: int | None) -> None:
        """The worker of a run has spoken; may be called from any thread."""
        watch = self._watches.get(run_id)
        if watch is not None:
            watch.heard(time.monotonic(), reports=reports, counter=counter)

    def wrote(self, run_id: str) -> None:
        """A run has written output."""
        watch = self._watches.get(run_id)
        if watch is not None:
            watch.wrote(time.monotonic())

    def forget(self, run_id: str) -> None:
        """A run has ended."""
        self._watches.pop(run_id, None)
        self._stopped.pop(run_id, None)
        self._looked.pop(run_id, None)

    def look(self, run_id: str, trial_id: int) -> bool:
        """Tell what there is to tell of a run; return whether it is to be ended, since it hangs."""
        watch = self._watches.get(run_id)
        if watch is None:
            return False
        now = time.monotonic()
        self._look_for_stopped(run_id, trial_id, watch, now)
        verdict = watch.verdict(now)
        if verdict is Verdict.TELL:
            what = "ended and continued from its latest checkpoint" if watch.restarts else "ended"
            self._log(
                run_id,
                trial_id,
                f"Nothing was reported for {span(now - watch.progressed)}: no metrics, no checkpoint, no output. After "
                f"{span(watch.limit)} the run is {what} (watchdog.minutes, watchdog.action). The stack of every thread "
                "follows, as far as the process can still write it.",
            )
            self._context.launcher.ask_for_stacks(run_id)
        return verdict is Verdict.END

    def end_of_hung(self, run_id: str) -> tuple[str, bool]:
        """Return what is told of a run that is ended since it hangs, and whether its trial may be continued."""
        watch = self._watches[run_id]
        return (
            f"The trial reported nothing for {span(watch.limit)} (watchdog.minutes): its code hangs. The stack of "
            "every thread is in its log.",
            watch.restarts,
        )

    def silence(self, run_id: str) -> float:
        """Return for how many seconds a run has not been heard of."""
        watch = self._watches.get(run_id)
        return 0.0 if watch is None else time.monotonic() - watch.contact

    def note(self, run_id: str) -> str:
        """Return what a live run waits for, in words that follow "waits for"; "" where it waits for nothing."""
        stopped = self._stopped.get(run_id)
        if stopped:
            return f"its process {stopped[0]}, which is stopped by a signal (`kill -CONT {stopped[0]}` lets it go on)"
        watch = self._watches.get(run_id)
        if watch is not None and watch.told():
            return f"a sign of life: it has reported nothing for over {span(watch.limit / 2)}"
        return ""

    def _look_for_stopped(self, run_id: str, trial_id: int, watch: Watch, now: float) -> None:
        if not watch.silent(now):
            if self._stopped.pop(run_id, None):
                self._log(run_id, trial_id, "Its process goes on.")
            return
        if now < self._looked.get(run_id, 0.0) + CONTACT_SECONDS / 2:
            return
        self._looked[run_id] = now
        stopped = self._context.runner_of(run_id).stopped(run_id)
        if stopped and not self._stopped.get(run_id):
            self._log(
                run_id,
                trial_id,
                f"Its process {stopped[0]} is stopped by a signal (SIGSTOP); `kill -CONT {stopped[0]}` lets it go on.",
            )
        self._stopped[run_id] = stopped

    def _log(self, run_id: str, trial_id: int, text: str) -> None:
        logger.warning("trial with the id %d, run %s: %s", trial_id, run_id, text)
        with self._context.database.write() as transaction:
            logs.add(transaction, trial_id, run_id, "system", [text])
