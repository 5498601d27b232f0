"""Messages on what happens to experiments: what is worth one goes into an outbox, and from there out.

What was stored as events is looked at in order, and each once: the place up to which it was looked at is stored in the
transaction that puts messages into the outbox. A message is tried until it is taken, or until it has been tried too
often; one whose master ends between the sending and the note of it is sent again with the same ``X-Det-Delivery``.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from det_native.errors import ArgumentError, DetError
from det_native.master.notify import mail, webhook
from det_native.master.notify.errors import SendError
from det_native.master.store import events, experiments, messages, metrics, secrets, settings, trials
from det_native.master.store.database import Database, Transaction
from det_native.messaging.happenings import event_of_state, first_nan, plateau_begin
from det_native.messaging.texts import body_of, body_of_test, subject_of
from det_native.schema import rest
from det_native.schema.notify import EventName, Notify
from det_native.schema.query.moments import stored
from det_native.schema.states import ExperimentState, MetricKind, TrialState

logger = logging.getLogger(__name__)

SETTING = "notify"
CURSOR = "notify:cursor"
MOST_ATTEMPTS = 10
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 3600.0
#: New best values, and failures of trials, are told of an experiment once in so many seconds at most.
SELDOM = 60.0
# Of changes to what ended longer ago nobody is told that it has ended.
_ENDED_LATELY = timedelta(days=1)
_GATHERED_SECONDS = 0.2
_EVENTS_AT_ONCE = 500

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class _Receiver:
    """An entry of ``notify``, and where it stands: what messages name it by."""

    source: str
    index: int
    rule: Notify
    since: str = ""

    def targets(self) -> Iterator[dict[str, Any]]:
        for kind, place in (("webhook", self.rule.webhook), ("email", self.rule.email)):
            if place is not None:
                yield {"source": self.source, "index": self.index, "kind": kind, "name": self.rule.name}


@dataclass
class _Seen:
    """What was seen of an experiment since the master started."""

    receivers: list[_Receiver] = field(default_factory=list)
    scanned: dict[tuple[str | None, MetricKind], int] = field(default_factory=dict)


class Messages:
    """Looks at events, and sends messages, in a thread of its own.

    Parameters
    ----------
    address : str
        The master's, for those who get a message.
    clock : callable
        The present time.
    smtp : SmtpServer or None
        By which e-mail is sent.
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        address: str,
        *,
        clock: Clock = lambda: datetime.now(UTC),
        smtp: mail.SmtpServer | None = None,
    ) -> None:
        self._database = database
        self._owner = owner
        self._master = {"host": socket.gethostname(), "address": address}
        self.clock = clock
        self._smtp = smtp
        self._cursor: int | None = None
        self._seen: dict[int, _Seen] = {}
        self._users: list[_Receiver] | None = None
        self._woken = threading.Event()
        self._closed = threading.Event()
        self._working = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="det-messages", daemon=True)

    def start(self) -> None:
        """Begin with what happens from now on, or where an earlier master has ended."""
        with self._database.write() as transaction:
            known = settings.get(transaction.connection, self._owner, CURSOR)
            self._cursor = events.last_id(transaction.connection) if known is None else int(known)
            if known is None:
                settings.put(transaction, self._owner, CURSOR, self._cursor)
        self._thread.start()

    def close(self) -> None:
        """End; what has not been sent is left to the next master."""
        self._closed.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self, experiment_ids: Iterable[int]) -> None:
        """Something has happened to experiments; where it is known that nobody is told of these, it costs nothing."""
        users, seen = self._users, self._seen
        for number in experiment_ids:
            known = seen.get(number)
            if users is None or users or known is None or known.receivers:
                self._woken.set()
                return

    # What users set.

    def receivers(self) -> list[dict[str, Any]]:
        """Return the user's own entries, without their secrets."""
        with self._database.read() as connection:
            return list(settings.get(connection, self._owner, SETTING) or [])

    def set_receivers(self, entries: Iterable[Notify]) -> list[dict[str, Any]]:
        """Keep the user's own entries."""
        entries = list(entries)
        if any(entry.desktop for entry in entries):
            raise ArgumentError(
                "desktop: it is set in the configuration of an experiment (notify: [{desktop: true}]), not for all."
            )
        with self._database.write() as transaction:
            dumped = [entry.model_dump(mode="json") for entry in entries]
            hidden = secrets.hide(transaction, self._owner, dumped)
            if hidden:
                settings.put(transaction, self._owner, SETTING, hidden)
                settings.put(transaction, self._owner, f"{SETTING}:since", stored(self.clock()))
            else:
                settings.remove(transaction, self._owner, SETTING)
        self._users = None
        return hidden

    def warnings(self, entries: Iterable[Notify]) -> list[str]:
        """Return what cannot be sent to these, a sentence each."""
        addresses = dict.fromkeys(entry.email for entry in entries if entry.email is not None)
        if self._smtp is not None or not addresses:
            return []
        return [f"Nothing can be sent to {', '.join(addresses)} yet: {mail.MISSING}."]

    def test(self) -> list[dict[str, str]]:
        """Send a test message to each of the user's own entries now; say of each whether it was taken."""
        told = []
        for receiver in self._of_user():
            for target in receiver.targets():
                body = body_of_test(stored(self.clock()), self._master)
                try:
                    self._send(target, body, "test", f"test-{stored(self.clock())}", None)
                    error = ""
                except SendError as refused:
                    error = str(refused)
                told.append({"name": receiver.rule.name, "kind": target["kind"], "error": error})
        return told

    def latest(self, limit: int) -> list[messages.Message]:
        """Return the newest messages."""
        with self._database.read() as connection:
            return messages.latest(connection, self._owner, limit)

    # From events to the outbox.

    def collect(self) -> None:
        """Put messages into the outbox on what has happened since the last call."""
        with self._working:
            while self._collect_some():
                pass

    def _collect_some(self) -> bool:
        assert self._cursor is not None
        with self._database.read() as connection:
            found = events.kinds_after(connection, self._owner, self._cursor, limit=_EVENTS_AT_ONCE)
            if not found:
                return False
            users = self._of_user()
            # What is as it now is, is read anew: of several events of the same kind the last says all.
            last_ones = {(event.type, event.experiment_id, event.trial_id): event for event in found}
            watched = [
                event for event in last_ones.values() if self._receivers_of(connection, event.experiment_id, users)
            ]
        last = found[-1].id
        if watched:
            with self._database.write() as transaction:
                for event in watched:
                    self._happened(transaction, event)
                settings.put(transaction, self._owner, CURSOR, last)
        self._cursor = last
        return len(found) == _EVENTS_AT_ONCE

    def _keep_cursor(self) -> None:
        if self._cursor is not None:
            with self._database.write() as transaction:
                settings.put(transaction, self._owner, CURSOR, self._cursor)

    def _of_user(self) -> list[_Receiver]:
        if self._users is None:
            with self._database.read() as connection:
                entries = settings.get(connection, self._owner, SETTING) or []
                since = settings.get(connection, self._owner, f"{SETTING}:since") or ""
            self._users = _receivers("user", entries, since)
        return self._users

    def _receivers_of(self, connection: Connection, experiment_id: int, users: list[_Receiver]) -> list[_Receiver]:
        seen = self._seen.get(experiment_id)
        if seen is None:
            try:
                entries = experiments.config_of(connection, experiment_id).get("notify") or []
            except DetError:  # deleted, or its row cannot be read
                entries = []
            seen = self._seen[experiment_id] = _Seen(_receivers("config", entries, ""))
        return [*seen.receivers, *users]

    def _happened(self, transaction: Transaction, event: events.Kind) -> None:
        connection = transaction.connection
        receivers = self._receivers_of(connection, event.experiment_id, self._of_user())
        try:
            experiment = experiments.get(connection, event.experiment_id)
        except DetError:  # deleted meanwhile
            return
        trial = None
        if event.trial_id is not None and event.type in ("trial", "metrics"):
            trial = trials.get(connection, event.trial_id)
        for receiver in receivers:
            wanted = receiver.rule.on
            if event.type == "experiment":
                self._state_changed(transaction, experiment, receiver)
            elif event.type == "trial" and trial is not None and "failure" in wanted:
                self._trial_changed(transaction, experiment, trial, receiver)
            elif event.type == "metrics" and trial is not None:
                if "nan" in wanted:
                    self._look_for_nan(transaction, experiment, trial, receiver)
                if "plateau" in wanted:
                    self._look_for_plateau(transaction, experiment, trial, receiver)
            if "best" in wanted and event.type in ("experiment", "metrics"):
                self._look_for_best(transaction, experiment, receiver)
        if event.type == "experiment" and experiment.state.terminal:
            self._seen.pop(event.experiment_id, None)

    def _state_changed(self, transaction: Transaction, experiment: rest.Experiment, receiver: _Receiver) -> None:
        event = event_of_state(experiment.state, receiver.rule.on)
        if event is None or experiment.ended is None:
            return
        if experiment.ended < max(receiver.since, stored(self.clock() - _ENDED_LATELY)):
            return
        failed = None
        if experiment.state is ExperimentState.ERROR:
            found = trials.of_experiment(transaction.connection, experiment.id)
            failed = next((trial for trial in found if trial.state is TrialState.ERROR), None)
        self._add(transaction, event, experiment, receiver, failed if experiment.error is None else None)

    def _trial_changed(
        self, transaction: Transaction, experiment: rest.Experiment, trial: rest.Trial, receiver: _Receiver
    ) -> None:
        """Tell of a failed trial, where its experiment goes on without it."""
        if trial.state is TrialState.ERROR and not experiment.state.terminal and experiment.trials > 1:
            self._add(transaction, "failure", experiment, receiver, trial, seldom=True)

    def _look_for_nan(
        self, transaction: Transaction, experiment: rest.Experiment, trial: rest.Trial, receiver: _Receiver
    ) -> None:
        told = messages.of_experiment(transaction.connection, experiment.id, "nan")
        if any(message.trial_id == trial.id and _same(message.target, receiver) for message in told):
            return
        scanned = self._seen[experiment.id].scanned
        for kind in (MetricKind.TRAINING, MetricKind.VALIDATION):
            key = (trial.run_id, kind)
            for row in metrics.rows(transaction.connection, trial.id, kind, after_batch=scanned.get(key, -1)):
                name = first_nan(row.metrics)
                if name is not None:
                    metric = {"name": name, "value": "NaN", "batch": row.batch}
                    self._add(transaction, "nan", experiment, receiver, trial, metric)
                    return
                scanned[key] = row.batch

    def _look_for_plateau(
        self, transaction: Transaction, experiment: rest.Experiment, trial: rest.Trial, receiver: _Receiver
    ) -> None:
        rule = receiver.rule.plateau
        if rule is None:
            return
        name = rule.metric or experiment.metric
        rows = metrics.validations(transaction.connection, trial.id, name)
        if not rows:
            found = metrics.rows(transaction.connection, trial.id, MetricKind.TRAINING, after_batch=-1)
            rows = [(row.batch, float(row.metrics[name])) for row in found if _is_number(row.metrics.get(name))]
        if not rows:
            return
        begin = plateau_begin(rows, rule, experiment.smaller_is_better, _batches_per_epoch(experiment, trial))
        if begin is None:
            return
        batch, value = begin
        told = messages.of_experiment(transaction.connection, experiment.id, "plateau")
        for message in told:
            same = message.trial_id == trial.id and _same(message.target, receiver)
            if same and message.body["metric"]["batch"] == batch:
                return
        self._add(transaction, "plateau", experiment, receiver, trial, {"name": name, "value": value, "batch": batch})

    def _look_for_best(self, transaction: Transaction, experiment: rest.Experiment, receiver: _Receiver) -> None:
        value = experiment.best_validation
        if value is None or experiment.ended is not None:
            return
        metric = {"name": experiment.metric, "value": value, "batch": None}
        self._add(transaction, "best", experiment, receiver, None, metric, seldom=True)

    def _add(
        self,
        transaction: Transaction,
        event: EventName,
        experiment: rest.Experiment,
        receiver: _Receiver,
        trial: rest.Trial | None = None,
        metric: dict[str, Any] | None = None,
        *,
        seldom: bool = False,
    ) -> None:
        """Put a message into the outbox for each way of a receiver, unless it has it; `seldom`: not too often."""
        now = self.clock()
        body = body_of(
            event,
            experiment.model_dump(mode="json"),
            time=stored(now),
            master=self._master,
            trial=None if trial is None else trial.model_dump(mode="json"),
            metric=metric,
        )
        known = messages.of_experiment(transaction.connection, experiment.id, event)
        for target in receiver.targets():
            mine = [message for message in known if message.target == target]
            due = now
            if self._is_known(event, mine, experiment, trial, metric, of_trial=seldom):
                continue
            if seldom and mine:
                last = mine[-1]
                if event == "best" and last.state == messages.WAITING and not last.attempts:
                    messages.change(transaction, last.id, body=body)
                    continue
                due = max(now, datetime.fromisoformat(last.next or last.created) + timedelta(seconds=SELDOM))
            messages.add(
                transaction,
                self._owner,
                event,
                target,
                body,
                now=stored(now),
                due=stored(due),
                experiment_id=experiment.id,
                trial_id=None if trial is None else trial.id,
            )

    @staticmethod
    def _is_known(
        event: EventName,
        mine: list[messages.Message],
        experiment: rest.Experiment,
        trial: rest.Trial | None,
        metric: dict[str, Any] | None,
        *,
        of_trial: bool,
    ) -> bool:
        """Whether there is such a message already."""
        match event:
            case "end":
                return bool(mine)
            case "failure" if of_trial:
                return any(trial is not None and message.trial_id == trial.id for message in mine)
            case "failure":
                return any(ExperimentState(message.body["experiment"]["state"]) is experiment.state for message in mine)
            case "best":
                return bool(mine and metric and mine[-1].body["metric"]["value"] == metric["value"])
            case _:
                return False

    # From the outbox out.

    def send_due(self) -> None:
        """Send what is due; what is not taken is tried again later."""
        with self._working:
            with self._database.read() as connection:
                due = messages.due(connection, stored(self.clock()))
            for message in due:
                if self._closed.is_set():
                    return
                self._try(message)

    def _try(self, message: messages.Message) -> None:
        attempts = message.attempts + 1
        try:
            self._send(message.target, message.body, message.event, f"det-{message.id}", message.experiment_id)
        except SendError as error:
            lasting = error.lasting or attempts >= MOST_ATTEMPTS
            pause = min(FIRST_PAUSE * 2 ** (attempts - 1), LONGEST_PAUSE)
            later = stored(self.clock() + timedelta(seconds=pause))
            state = messages.FAILED if lasting else messages.WAITING
            changes: dict[str, Any] = {"state": state, "error": str(error)[:500], "next": later}
            log = logger.error if lasting else logger.warning
            again = "it is given up" if lasting else f"it is tried again in {pause:.0f} s"
            log("message %d (%s, %s) does not leave: %s; %s", message.id, message.event, _who(message), error, again)
        else:
            changes = {"state": messages.SENT, "error": "", "next": stored(self.clock())}
        with self._database.write() as transaction:
            messages.change(transaction, message.id, attempts=attempts, **changes)

    def _send(
        self, target: dict[str, Any], body: dict[str, Any], event: str, delivery: str, experiment_id: int | None
    ) -> None:
        rule = self._rule_of(target, experiment_id)
        if target["kind"] == "email" and rule.email is not None:
            if self._smtp is None:
                raise SendError(mail.MISSING, lasting=True)
            mail.send(self._smtp, rule.email, subject_of(body), f"{body['text']}\n", delivery=delivery)
        elif target["kind"] == "webhook" and rule.webhook is not None:
            content = {"text": body["text"]} if rule.format == "slack" else body
            webhook.post(rule.webhook, content, event=event, delivery=delivery, secret=rule.secret)
        else:
            raise SendError("where it was to go is not set any more", lasting=True)

    def _rule_of(self, target: dict[str, Any], experiment_id: int | None) -> Notify:
        with self._database.read() as connection:
            if target["source"] == "user":
                entries = settings.get(connection, self._owner, SETTING) or []
            else:
                try:
                    assert experiment_id is not None
                    entries = experiments.config_of(connection, experiment_id).get("notify") or []
                except DetError:
                    entries = []
            try:
                return Notify.model_validate(secrets.reveal(connection, self._owner, entries[target["index"]]))
            except (IndexError, ValidationError) as error:
                raise SendError("where it was to go is not set any more", lasting=True) from error

    def _run(self) -> None:
        kept = self._cursor
        while not self._closed.is_set():
            self._woken.wait(self._pause())
            if self._closed.wait(_GATHERED_SECONDS):
                break
            self._woken.clear()
            try:
                self.collect()
                self.send_due()
            except (DetError, OSError, OperationalError) as error:
                logger.error("Messages are not looked after now; it is tried again: %s", error)
                self._closed.wait(FIRST_PAUSE)
            except Exception:
                logger.exception("Looking after messages failed.")
                self._closed.wait(FIRST_PAUSE)
        if kept != self._cursor:
            try:
                self._keep_cursor()
            except (DetError, OperationalError) as error:
                logger.warning("Events are looked at again by the next master: %s", error)

    def _pause(self) -> float:
        try:
            with self._database.read() as connection:
                due = messages.next_due(connection)
        except (DetError, OperationalError):
            return FIRST_PAUSE
        return LONGEST_PAUSE if due is None else max(0.0, (datetime.fromisoformat(due) - self.clock()).total_seconds())


def _receivers(source: str, entries: Iterable[Any], since: str) -> list[_Receiver]:
    found = []
    for index, entry in enumerate(entries):
        try:
            found.append(_Receiver(source, index, Notify.model_validate(entry), since))
        except ValidationError:
            logger.warning("an entry of notify cannot be read, and is left out (%s, entry %d)", source, index)
    return found


def _same(target: dict[str, Any], receiver: _Receiver) -> bool:
    return bool(target["source"] == receiver.source and target["index"] == receiver.index)


def _who(message: messages.Message) -> str:
    name = message.target.get("name")
    return f"{message.target['kind']} {name!r}" if name else str(message.target["kind"])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _batches_per_epoch(experiment: rest.Experiment, trial: rest.Trial) -> int | None:
    records, batch = experiment.config.get("records_per_epoch"), trial.hparams.get("global_batch_size")
    if isinstance(records, int) and isinstance(batch, int) and records > 0 and batch > 0:
        return max(1, records // batch)
    return None
