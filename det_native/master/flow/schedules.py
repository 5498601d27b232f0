"""Notebooks are run at a time, or again and again, by schedules.

APScheduler's triggers say when. A time that passes while no master runs is made up for when the next one starts, once,
if that is soon enough (:data:`GRACE`); else it is left out, which the schedule says.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from sqlalchemy.exc import OperationalError

from det_native.errors import ArgumentError, DetError, MissingDependencyError, RequestError
from det_native.master.store import schedules
from det_native.master.store.database import Database
from det_native.schema.notebook_runs import NotebookRun, RunRequest
from det_native.schema.query.moments import stored
from det_native.schema.schedules import Schedule, ScheduleCreate, Timing, interval_of

logger = logging.getLogger(__name__)

#: So late a time that was missed is made up for.
GRACE = timedelta(hours=1)
_LATE = timedelta(minutes=1)
_LONGEST_SLEEP = 30.0
_AGAIN_SECONDS = 10.0

_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAYS = re.compile(r"([0-7])(?:-([0-7]))?(?:/([1-7]))?")

Clock = Callable[[], datetime]


def _with_named_days(line: str) -> str:
    """Return a line of cron with days of the week by name: cron counts from Sunday, APScheduler from Monday."""
    *fields, days = line.split()
    named = []
    for part in days.split(","):
        match = _DAYS.fullmatch(part)
        if match is None:
            named.append(part)
            continue
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the days {part} end before they begin")
        named += [_DAY_NAMES[day % 7] for day in range(first, last + 1, int(match[3] or 1))]
    return " ".join([*fields, ",".join(named)])


class Runs(Protocol):
    """Runs of notebooks on the master's machine."""

    def check(self, request: RunRequest) -> None:
        """Raise what beginning it would raise."""

    def begin(self, request: RunRequest) -> NotebookRun:
        """Begin a run; a request whose key has begun one gives that one."""

    def find(self, number: int | None) -> NotebookRun | None:
        """Return a run; None if it is not there any more."""


def next_time(timing: Timing, after: datetime, created: datetime) -> datetime | None:
    """Return the first time after `after` at which to run, None if there is none.

    Raises
    ------
    ArgumentError
        If ``every`` is no line of cron, though it has five fields.
    """
    try:
        from apscheduler.triggers.cron import CronTrigger
        from apscheduler.triggers.interval import IntervalTrigger
    except ModuleNotFoundError as error:
        raise MissingDependencyError("Schedules need APScheduler: pip install 'apscheduler>=3.10,<4'.") from error

    zone: Any = ZoneInfo(timing.timezone) if timing.timezone else None
    if timing.at is not None:
        moment = timing.at
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone) if zone is not None else moment.astimezone()
        return moment if moment > after else None
    assert timing.every is not None
    interval = interval_of(timing.every)
    later = after + timedelta(microseconds=1)
    if interval is not None:
        trigger = IntervalTrigger(seconds=int(interval.total_seconds()), start_date=created + interval, timezone=UTC)
    else:
        try:
            trigger = CronTrigger.from_crontab(_with_named_days(timing.every), timezone=zone)
        except ValueError as error:
            raise ArgumentError(
                f'every: {timing.every!r} is no line of cron ({error}): five fields, such as "0 3 * * *" for each '
                "night at three."
            ) from error
    found: datetime | None = trigger.get_next_fire_time(None, later)
    return found


class Schedules:
    """Begins the runs that are due, in a thread of its own.

    Parameters
    ----------
    runs : Runs
        Begins runs of notebooks.
    clock : callable
        The present time.
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        runs: Runs,
        *,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self._database = database
        self._owner = owner
        self._runs = runs
        self.clock = clock
        self._woken = threading.Event()
        self._closed = threading.Event()
        self._working = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="det-schedules", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._closed.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def create(self, wanted: ScheduleCreate) -> Schedule:
        """Keep a schedule.

        Raises
        ------
        ArgumentError
            If its time has passed, ``every`` is not a line of cron, or the notebook cannot be run.
        """
        now = self.clock()
        due = next_time(wanted.timing, now, now)
        if due is None:
            raise ArgumentError(
                f"{wanted.timing.text}: that time has passed; it is {now.isoformat(timespec='minutes')}."
            )
        self._runs.check(wanted.request)
        timing = {**wanted.timing.model_dump(mode="json"), "overlap": wanted.overlap}
        body = wanted.request.model_dump(mode="json")
        with self._database.write() as transaction:
            number = schedules.add(transaction, self._owner, wanted.name, timing, body, stored(due))
            schedules.change(transaction, number, created=stored(now))
            schedule = schedules.get(transaction.connection, self._owner, number)
        logger.info("schedule %d made: %s, next at %s", number, wanted.timing.text, schedule.next)
        self._woken.set()
        return schedule

    def listing(self, *, ended: bool) -> list[Schedule]:
        """Return the schedules, newest first."""
        with self._database.read() as connection:
            return list(map(self._with_outcome, schedules.listing(connection, self._owner, ended=ended)))

    def get(self, number: int) -> Schedule:
        """Return a schedule."""
        with self._database.read() as connection:
            return self._with_outcome(schedules.get(connection, self._owner, number))

    def _with_outcome(self, schedule: Schedule) -> Schedule:
        run = self._runs.find(schedule.last_run)
        return schedule if run is None else schedule.model_copy(update={"last_outcome": run.outcome})

    def cancel(self, number: int) -> Schedule:
        """Have a schedule begin nothing more; runs that it has begun go on."""
        return self._change(number, "canceled", (schedules.ACTIVE, schedules.PAUSED), schedules.CANCELED)

    def pause(self, number: int) -> Schedule:
        """Have a schedule begin nothing until it is resumed."""
        return self._change(number, "paused", (schedules.ACTIVE,), schedules.PAUSED)

    def resume(self, number: int) -> Schedule:
        """Have a paused schedule begin runs again, from its next time on."""
        return self._change(number, "resumed", (schedules.PAUSED,), schedules.ACTIVE)

    def _change(self, number: int, verb: str, states: tuple[str, ...], state: str) -> Schedule:
        with self._database.write() as transaction:
            found = schedules.get(transaction.connection, self._owner, number)
            if found.state not in states:
                raise RequestError(409, f"Schedule {number} is {found.state.lower()}: it cannot be {verb}.")
            changes: dict[str, Any] = {"state": state}
            if state == schedules.CANCELED:
                changes |= {"next": None, "ended": stored(self.clock())}
            if state == schedules.ACTIVE:
                due = next_time(found.timing, self.clock(), datetime.fromisoformat(found.created))
                if due is None:
                    raise RequestError(409, f"Schedule {number} cannot be resumed: its time has passed.")
                changes["next"] = stored(due)
            schedules.change(transaction, number, **changes)
            changed = schedules.get(transaction.connection, self._owner, number)
        self._woken.set()
        return changed

    def begin_due(self) -> None:
        """Begin the runs that are due."""
        with self._working:
            with self._database.read() as connection:
                found = schedules.due(connection, self._owner, stored(self.clock()))
            for schedule in found:
                self._begin_one(schedule)

    def _begin_one(self, schedule: Schedule) -> None:
        assert schedule.next is not None
        now, due = self.clock(), datetime.fromisoformat(schedule.next)
        run: NotebookRun | None = None
        if now - due > GRACE:
            note = f"{schedule.next} passed while no master ran, more than an hour before the next start: left out."
        else:
            note = self._still_running(schedule)
            if not note:
                try:
                    run = self._begun(schedule)
                    if now - due > _LATE:
                        note = f"Run late: {schedule.next} passed while no master ran."
                except OperationalError:  # tried again
                    raise
                except DetError as error:
                    note = f"No run began at {schedule.next}: {error}"
        later = next_time(schedule.timing, now, datetime.fromisoformat(schedule.created))
        changes: dict[str, Any] = {"error": note, "next": None if later is None else stored(later)}
        if later is None:
            changes |= {"state": schedules.COMPLETED, "ended": stored(now)}
        if run is not None:
            changes |= {"submitted": schedule.submitted + 1, "last_run": run.id}
        if note:
            logger.warning("schedule %d: %s", schedule.id, note)
        with self._database.write() as transaction:
            if schedules.get(transaction.connection, self._owner, schedule.id).state != schedules.ACTIVE:
                changes = {name: changes[name] for name in ("submitted", "last_run") if name in changes}
            if changes:
                schedules.change(transaction, schedule.id, **changes)

    def _still_running(self, schedule: Schedule) -> str:
        run = None if schedule.overlap else self._runs.find(schedule.last_run)
        if run is None or run.is_ended:
            return ""
        return f"No run began at {schedule.next}: run {schedule.last_run}, the one before, went on."

    def _begun(self, schedule: Schedule) -> NotebookRun:
        """Begin a run once, even if the master ends before that is noted: one key begins one run."""
        with self._database.read() as connection:
            request = RunRequest.model_validate(schedules.body_of(connection, schedule.id))
        key = f"schedule-{schedule.id}-{schedule.next}"
        return self._runs.begin(request.model_copy(update={"key": key, "schedule": schedule.id}))

    def _run(self) -> None:
        while not self._closed.is_set():
            self._woken.clear()
            try:
                self.begin_due()
                pause = self._pause()
            except (DetError, OSError, OperationalError) as error:
                logger.error("Schedules are not looked after now; it is tried again: %s", error)
                pause = _AGAIN_SECONDS
            except Exception:
                logger.exception("Looking after schedules failed.")
                pause = _LONGEST_SLEEP
            self._woken.wait(pause)

    def _pause(self) -> float:
        with self._database.read() as connection:
            due = schedules.next_due(connection, self._owner)
        # Never for long: the clock may be set, and a laptop may sleep.
        return (
            _LONGEST_SLEEP
            if due is None
            else min(_LONGEST_SLEEP, max(0.0, (datetime.fromisoformat(due) - self.clock()).total_seconds()))
        )
