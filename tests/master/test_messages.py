"""Messages leave by a webhook and by e-mail, once each, and no secret is shown; against real servers."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from click.testing import CliRunner, Result
from master_parts import Master, Worker, configuration, running_master

from det_native import PROTOCOL
from det_native.client.command import cli
from det_native.client.notifying import notify
from det_native.errors import ArgumentError
from det_native.master.notify.mail import SmtpServer
from det_native.schema.loading import ConfigurationWarning
from det_native.schema.states import ExitReason


class Hooks:
    """What an HTTP server of a test was sent; it refuses with the statuses that it was given first."""

    def __init__(self) -> None:
        self.refusals: list[int] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.taken: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self.url = ""

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.taken) >= count, 60), f"only {self.taken}"
            return list(self.taken)


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    """Run an HTTP server that takes what is posted."""
    found = Hooks()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with found.changed:
                found.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                status = found.refusals.pop(0) if found.refusals else 204
                if status == 204:
                    found.taken.append(json.loads(body))
                found.changed.notify_all()
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}/services/SECRETPATH"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def trained(master: Master, count: int = 1, **notify: Any) -> tuple[int, Worker]:
    experiment = master.create({"notify": [notify]} if notify else {})
    worker = Worker(master, master.world.wait_for_jobs(count)[-1])
    worker.start()
    return int(experiment["id"]), worker


def ended(master: Master, experiment_id: int, worker: Worker) -> None:
    worker.complete()
    master.launcher.end(worker.job.run_id, 0)
    master.until_state(experiment_id, "COMPLETED")


def steps(master: Master) -> None:
    """Do what the master's own thread does, now."""
    master.service.messages.collect()
    master.service.messages.send_due()


@contextmanager
def quiet(home: Path, clock: Clock | None = None) -> Iterator[Master]:
    """Run a master whose thread for messages does nothing by itself."""
    with running_master(home) as master:
        messages = master.service.messages
        messages.wake = lambda _: None  # type: ignore[method-assign]
        if clock is not None:
            messages.clock = clock
        yield master


def test_the_end_of_an_experiment_is_posted_as_signed_json(master: Master, hooks: Hooks) -> None:
    number, worker = trained(master, webhook=hooks.url, secret="hush", name="mine")
    ended(master, number, worker)
    [body] = hooks.wait_for(1)
    assert body["event"] == "end"
    assert (body["experiment"]["id"], body["experiment"]["state"]) == (number, "COMPLETED")
    assert body["text"].startswith(f"Experiment {number} has completed")
    [(headers, content)] = hooks.requests
    assert headers["x-det-signature"] == "sha256=" + hmac.new(b"hush", content, hashlib.sha256).hexdigest()
    assert headers["x-det-event"] == "end"


def test_slack_gets_its_form_and_a_failure_its_error(master: Master, hooks: Hooks) -> None:
    config = {"notify": [{"on": ["failure"], "webhook": hooks.url, "format": "slack"}], "max_restarts": 0}
    experiment = master.create(config)
    worker = Worker(master, master.world.wait_for_jobs(1)[-1])
    worker.start()
    worker.exit(ExitReason.USER_ERROR, message="shapes do not fit")
    master.launcher.end(worker.job.run_id, 1)
    master.until_state(experiment["id"], "ERROR")
    [body] = hooks.wait_for(1)
    assert set(body) == {"text"}
    assert body["text"].endswith("has failed: ValueError: shapes do not fit")


def test_a_server_that_fails_twice_gets_it_once_even_if_the_master_restarts_between(
    tmp_path: Path, hooks: Hooks
) -> None:
    hooks.refusals = [503, 500]
    clock = Clock()
    with quiet(tmp_path / "home", clock) as master:
        number, worker = trained(master, webhook=hooks.url)
        ended(master, number, worker)
        steps(master)
        assert len(hooks.requests) == 1
        steps(master)  # not again before its time
        assert len(hooks.requests) == 1
    with quiet(tmp_path / "home", clock) as master:
        clock.pass_by(11)
        steps(master)
        assert (len(hooks.requests), hooks.taken) == (2, [])
        [shown] = master.get("/messages")
        assert shown["state"] == "WAITING"
        assert "answers 500" in shown["error"]
        clock.pass_by(21)
        steps(master)
    with quiet(tmp_path / "home", clock) as master:
        clock.pass_by(4000)
        steps(master)
        assert master.get("/messages")[0]["state"] == "SENT"
    assert [body["event"] for body in hooks.taken] == ["end"]
    assert len({headers["x-det-delivery"] for headers, _ in hooks.requests}) == 1


def test_what_happens_while_no_message_can_be_looked_after_is_told_by_the_next_master(
    tmp_path: Path, hooks: Hooks
) -> None:
    with quiet(tmp_path / "home") as master:
        number, worker = trained(master, webhook=hooks.url)
        ended(master, number, worker)
    with quiet(tmp_path / "home") as master:
        steps(master)
        steps(master)
    assert len(hooks.taken) == 1


@pytest.mark.long
def test_a_server_that_refuses_for_good_is_not_asked_again(tmp_path: Path, hooks: Hooks) -> None:
    hooks.refusals = [404]
    clock = Clock()
    with quiet(tmp_path / "home", clock) as master:
        number, worker = trained(master, webhook=hooks.url)
        ended(master, number, worker)
        steps(master)
        clock.pass_by(100_000)
        steps(master)
        assert master.get("/messages")[0]["state"] == "FAILED"
    assert len(hooks.requests) == 1


@pytest.mark.long
def test_not_a_number_and_a_plateau_are_told_once_of_each_trial(tmp_path: Path, hooks: Hooks) -> None:
    with quiet(tmp_path / "home") as master:
        _, worker = trained(master, webhook=hooks.url, on=["nan", "plateau"], plateau={"validations": 2})
        for batch, loss in ((10, 0.5), (20, 0.4), (30, 0.45)):
            worker.validate(batch, loss=loss)
            steps(master)
        assert hooks.taken == []
        worker.validate(40, loss=0.41)
        steps(master)
        worker.validate(50, loss=0.42)
        steps(master)
        assert [body["event"] for body in hooks.taken] == ["plateau"]
        assert hooks.taken[0]["metric"] == {"name": "loss", "value": 0.4, "batch": 20}


@pytest.mark.long
def test_a_metric_that_is_not_a_number_is_told(tmp_path: Path, hooks: Hooks) -> None:
    with quiet(tmp_path / "home") as master:
        _, worker = trained(master, webhook=hooks.url, on=["nan"])
        for first in (1, 4):
            report = {"type": "metrics", "kind": "training", "batches": [first, first + 1]}
            worker.send({**report, "metrics": {"loss": ["NaN", 0.5]}})
            steps(master)
    assert [(body["event"], body["metric"]["batch"]) for body in hooks.taken] == [("nan", 1)]


@pytest.mark.long
def test_new_best_values_are_told_once_a_minute_at_most(tmp_path: Path, hooks: Hooks) -> None:
    clock = Clock()
    with quiet(tmp_path / "home", clock) as master:
        _, worker = trained(master, webhook=hooks.url, on=["best"])
        for batch, loss in ((10, 0.5), (20, 0.4), (30, 0.6), (40, 0.3)):
            worker.validate(batch, loss=loss)
            steps(master)
        assert [body["metric"]["value"] for body in hooks.taken] == [0.5]
        clock.pass_by(61)
        steps(master)
    assert [body["metric"]["value"] for body in hooks.taken] == [0.5, 0.3]


def test_no_secret_is_shown_stored_in_the_configuration_or_logged(
    master: Master, hooks: Hooks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hooks.refusals = [503]
    number, worker = trained(master, webhook=hooks.url, secret="hush-hush")
    job = worker.job.model_dump_json()
    ended(master, number, worker)
    with hooks.changed:
        assert hooks.changed.wait_for(lambda: bool(hooks.requests), 60)
    master.client.put("/api/v1/settings/notify", json={"entries": [{"webhook": hooks.url, "secret": "hush-hush"}]})
    shown = [
        job,
        json.dumps(master.get(f"/experiments/{number}")),
        json.dumps(master.get("/messages")),
        json.dumps(master.get("/settings/notify")),
        caplog.text,
    ]
    for text in shown:
        assert "hush-hush" not in text
        assert "SECRETPATH" not in text
    entry = master.get("/settings/notify")["entries"][0]
    assert entry["webhook"].endswith("@127.0.0.1")
    # What was shown may be sent back, and a copy of a configuration holds still.
    master.client.put("/api/v1/settings/notify", json={"entries": [entry]})
    again = master.get(f"/experiments/{number}")["config"]["notify"]
    assert master.client.post(
        "/api/v1/experiments",
        json={"protocol": PROTOCOL, "config": configuration(notify=again), "bundle_id": master.bundle()},
    ).is_success
    assert [test["error"] for test in master.client.post("/api/v1/settings/notify/test").json()["tests"]] == [""]


@contextmanager
def smtp_server() -> Iterator[tuple[int, list[Any]]]:
    """Run an SMTP server; its first letter is refused for a while."""
    letters: list[Any] = []
    refusals = ["451 later"]

    class Handler:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 (as aiosmtpd calls it)
            if refusals:
                return refusals.pop()
            letters.append(envelope)
            return "250 taken"

    with socket.socket() as free:  # the controller cannot be told any free port
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(Handler(), hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield port, letters
    finally:
        controller.stop()


@pytest.mark.long
def test_an_e_mail_goes_to_a_real_server_that_refuses_it_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    with smtp_server() as (port, letters):
        monkeypatch.setenv("DET_SMTP_URL", f"smtp://127.0.0.1:{port}?from=det@example.org")
        with quiet(tmp_path / "home", clock) as master:
            number, worker = trained(master, email="user@example.org")
            ended(master, number, worker)
            steps(master)
            assert letters == []
            clock.pass_by(11)
            steps(master)
            assert master.get("/messages")[0]["state"] == "SENT"
    [letter] = letters
    assert (letter.mail_from, letter.rcpt_tos) == ("det@example.org", ["user@example.org"])
    content = message_from_bytes(letter.content)
    assert f"Experiment {number} has completed" in content["Subject"]
    assert f"Experiment {number} has completed" in content.get_payload()


@pytest.mark.long
def test_without_an_smtp_server_a_test_says_what_to_set(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    det = commands(master, monkeypatch)
    assert det("notify", "set", "--email", "user@example.org").exit_code == 0
    told = det("notify", "test")
    assert told.exit_code == 1
    assert "DET_SMTP_URL" in told.output


@pytest.mark.parametrize("url", ["mail.example.org", "smtp://user:hush@host:x?from=a@b", "smtp://user:hush@host:25"])
def test_a_wrong_address_of_an_smtp_server_is_one_sentence_without_its_password(url: str) -> None:
    with pytest.raises(ArgumentError, match="must be of the form smtp://") as raised:
        SmtpServer.of({"DET_SMTP_URL": url})
    assert "hush" not in str(raised.value)


@pytest.mark.long
def test_a_second_notification_is_added_and_one_of_the_same_name_replaced(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    det = commands(master, monkeypatch)
    first = det("notify", "set", "--webhook", "https://hooks.example.org/first")
    assert "The notification 'webhook' is added" in first.output
    mail = det("notify", "set", "--email", "user@example.org")
    assert mail.exit_code == 0
    assert "Warning: Nothing can be sent to user@example.org yet" in mail.output
    assert "DET_SMTP_URL" in mail.output
    det("notify", "set", "--webhook", "https://hooks.example.org/second")
    det("notify", "set", "--name", "team", "--email", "team@example.org")
    names = [entry["name"] for entry in master.get("/settings/notify")["entries"]]
    assert names == ["webhook", "email", "webhook 2", "team"]
    again = det("notify", "set", "--name", "email", "--email", "other@example.org")
    assert "The notification 'email' is replaced" in again.output
    entries = master.get("/settings/notify")["entries"]
    assert [entry["name"] for entry in entries] == names
    assert entries[1]["email"] == "other@example.org"
    answer = master.client.put("/api/v1/settings/notify", json={"entries": entries}).json()
    [warning] = answer["warnings"]
    assert warning.startswith("Nothing can be sent to other@example.org, team@example.org yet")


@pytest.mark.long
def test_from_python_too_a_notification_says_that_it_replaces_and_cannot_be_sent(
    master: Master, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DET_TOKEN", master.token)
    url = str(master.client.base_url)
    with pytest.warns(ConfigurationWarning, match="DET_SMTP_URL"):
        notify(email="user@example.org", master_url=url)
    assert capsys.readouterr().out == ""
    with pytest.warns(ConfigurationWarning, match="DET_SMTP_URL"):
        notify(email="user@example.org", name="email", on="end", master_url=url)
    assert capsys.readouterr().out == "The notification 'email' is replaced.\n"
    assert [entry["on"] for entry in master.get("/settings/notify")["entries"]] == [["end"]]


def commands(master: Master, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("DET_TOKEN", master.token)

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--master", str(master.client.base_url), *words])

    return run


@pytest.mark.long
def test_the_user_is_told_of_every_experiment_from_the_command_line_on(
    master: Master, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    det = commands(master, monkeypatch)
    old, worker = trained(master)
    ended(master, old, worker)
    told = det("notify", "set", "--name", "hook", "--webhook", hooks.url, "--on", "end")
    assert told.exit_code == 0, told.output
    assert "SECRETPATH" not in told.output
    assert "hook" in det("notify", "list").output
    assert "webhook 'hook': sent." in det("notify", "test").output
    number, worker = trained(master, 2)
    ended(master, number, worker)
    bodies = hooks.wait_for(2)
    assert [body["event"] for body in bodies] == ["test", "end"]
    assert bodies[1]["experiment"]["id"] == number  # and not of the one that had ended before
    master.until("/messages", lambda found: found[0]["state"] == "SENT")
    assert "sent" in det("notify", "messages").output
    assert det("notify", "remove", "hook").exit_code == 0
    assert master.get("/settings/notify") == {"entries": []}


@pytest.mark.long
def test_wrong_entries_are_one_sentence(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    det = commands(master, monkeypatch)
    for words, said in (
        (["--on", "finish", "--email", "a@b.org"], "notify.on.0 must be 'end', 'failure', 'nan', 'plateau' or 'best'"),
        (["--webhook", "http://169.254.169.254/x"], "notify.webhook must not be 169.254.169.254"),
        (["--email", "nobody"], "notify.email must be an e-mail address"),
        ([], "needs one of webhook, email and desktop"),
    ):
        told = det("notify", "set", *words)
        assert told.exit_code != 0
        assert said in str(told.exception), told.exception
    assert "There is no notification 'x'" in str(det("notify", "remove", "x").exception)
    body = {"protocol": PROTOCOL, "config": configuration(notify=[{"on": ["x"]}]), "bundle_id": master.bundle()}
    refused = master.client.post("/api/v1/experiments", json=body)
    assert refused.status_code in (400, 422)
    assert "notify" in refused.text
