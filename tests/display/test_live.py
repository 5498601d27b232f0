"""The kernel's side of a live view, in a real kernel: what it publishes, tells and is told, and that it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from det_native.display.widget import VIEW_TYPE, WIDGET_TYPE

pytestmark = pytest.mark.slow

PATIENCE = 30.0
TESTS = Path(__file__).parent.parent

# In the kernel: experiments that go on until they are told to end.
PREPARE = f"""
import sys, threading
sys.path.insert(0, {str(TESTS)!r})
import det_native as det
import det_native.display.live as live
from made_experiments import make_experiment
from det_native.schema import rest
from det_native.schema.states import ExperimentState

live.FIRST_RENEWAL_SECONDS, live.RENEW_SECONDS, live.PUSH_SECONDS = 0.3, 0.3, 0.1
live.CALM_SECONDS, live.RETRY_SECONDS = 0.2, 0.2

class GoingOn:
    def __init__(self, name):
        self.experiment = make_experiment(name=name)
        self.store = self.experiment.source
        self.store.write(state=ExperimentState.ACTIVE, progress=0.5)

    def finish(self):
        self.store.write(state=ExperimentState.COMPLETED, progress=1.0)

def threads():
    return sorted(each.name for each in threading.enumerate() if each.name.startswith("det-"))
"""

Message = dict[str, Any]


class Kernel:
    """A kernel; keeps all that it publishes."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client
        self.published: list[Message] = []

    def run(self, code: str) -> list[Message]:
        """Run a cell, and return what was published meanwhile."""
        begin = len(self.published)
        number = self.start(code)
        self.until(lambda message: is_idle(message, number))
        failed = [message for message in self.published[begin:] if message["msg_type"] == "error"]
        assert not failed, failed
        return self.published[begin:]

    def start(self, code: str) -> str:
        """Begin to run a cell."""
        return str(self.client.execute(code))

    def value(self, expression: str) -> str:
        """Return the value of an expression as text."""
        (result,) = [each for each in self.run(expression) if each["msg_type"] == "execute_result"]
        return str(result["content"]["data"]["text/plain"])

    def until(self, fits: Callable[[Message], bool], begin: int | None = None) -> Message:
        """Return the first message that fits, of those from `begin` on; by default of those to come."""
        place = len(self.published) if begin is None else begin
        end = time.monotonic() + PATIENCE
        while True:
            for message in self.published[place:]:
                place += 1
                if fits(message):
                    return message
            assert time.monotonic() < end, [each["msg_type"] for each in self.published]
            self.published.append(self.client.get_iopub_msg(timeout=PATIENCE))

    def tell(self, comm: str, content: dict[str, Any]) -> None:
        """Send what the front end of a widget sends."""
        data = {"method": "custom", "content": content}
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self.client.shell_channel.send(message)


def is_idle(message: Message, number: str) -> bool:
    """Whether it says that a cell has run."""
    state = message["content"].get("execution_state")
    return message["parent_header"].get("msg_id") == number and state == "idle"


def said(kind: str) -> Callable[[Message], bool]:
    """Whether a widget says something of a kind to its front end."""
    return lambda message: (
        message["msg_type"] == "comm_msg" and message["content"]["data"].get("content", {}).get("type") == kind
    )


def tells(part: str) -> Callable[[Message], bool]:
    """Whether a widget tells its front end a part of what it shows, or why there is none."""
    return lambda message: message["msg_type"] == "comm_msg" and part in message["content"]["data"].get("state", {})


def state_of(message: Message) -> dict[str, Any]:
    """Return what a widget tells."""
    return dict(message["content"]["data"]["state"])


def content_of(message: Message) -> dict[str, Any]:
    """Return what a widget says."""
    return dict(message["content"]["data"]["content"])


@contextmanager
def kernel_with(home: Path, **variables: str) -> Iterator[Kernel]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env={**os.environ, "DET_HOME": str(home), **variables})
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        kernel = Kernel(client)
        kernel.run(PREPARE)
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        client.context.destroy(linger=0)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel whose notebook somebody looks at in JupyterLab."""
    home = tmp_path_factory.mktemp("watched")
    with kernel_with(home, JPY_SESSION_NAME=str(home / "watched.ipynb")) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel whose notebook is only executed."""
    with kernel_with(tmp_path_factory.mktemp("executed")) as kernel:
        yield kernel


def shown(messages: list[Message]) -> Message:
    """Return the one display among messages."""
    (display,) = [each for each in messages if each["msg_type"] == "display_data"]
    return display


def ends(kernel: Kernel) -> None:
    """Wait until no thread of a view is left."""
    end = time.monotonic() + PATIENCE
    while (names := kernel.value("threads()")) != "[]":
        assert time.monotonic() < end, names


def test_a_view_is_a_widget_beside_what_is_saved_and_its_cell_ends_at_once(watched: Kernel) -> None:
    begin = time.monotonic()
    display = shown(watched.run("a = GoingOn('first')\na.experiment"))
    assert time.monotonic() - begin < PATIENCE / 2, "the cell does not wait for the experiment"
    data = display["content"]["data"]
    assert set(data) == {WIDGET_TYPE, VIEW_TYPE, "text/plain", "text/html"}
    assert data["text/plain"].startswith("Experiment 1: first: running, 50% done")
    assert watched.value("a.experiment.state.name") == "'ACTIVE'"
    place = len(watched.published)
    watched.run("a.finish()")
    # The line may say the end before the state does: then all of it is renewed once more.
    updated = watched.until(
        lambda each: (
            each["msg_type"] == "update_display_data" and each["content"]["data"][VIEW_TYPE]["state"] == "COMPLETED"
        ),
        place,
    )
    assert "completed" in updated["content"]["data"]["text/plain"]
    assert updated["content"]["transient"] == display["content"]["transient"]
    assert updated["parent_header"] == display["parent_header"], "it belongs to the cell that showed it"
    assert updated["content"]["data"].keys() == {*data, "image/png"}
    named = {"experiment_id": 1, "trial_id": 0}
    assert data[VIEW_TYPE].items() > {**named, "state": "ACTIVE"}.items()
    assert updated["content"]["data"][VIEW_TYPE] == {**data[VIEW_TYPE], "state": "COMPLETED"}
    ends(watched)


@pytest.mark.parametrize("handle", ["g.experiment", "g.experiment.trials[0]"])
def test_what_goes_on_for_a_while_has_its_picture_saved_at_once(watched: Kernel, handle: str) -> None:
    running = "from det_native.schema.states import TrialState"
    going_on = f"{running}\ng.store.write_trial(g.store.trials()[0].model_copy(update=dict(state=TrialState.RUNNING)))"
    watched.run(f"g = GoingOn('seen again')\n{going_on}\nlive.FIRST_RENEWAL_SECONDS = live.RENEW_SECONDS = 3600")
    place = len(watched.published)
    watched.run(handle)
    updated = watched.until(lambda each: each["msg_type"] == "update_display_data", place)
    assert "image/png" in updated["content"]["data"]
    watched.run("live.FIRST_RENEWAL_SECONDS = live.RENEW_SECONDS = 0.3\ng.finish()")
    ends(watched)


def test_a_page_that_was_reloaded_is_told_what_to_keep(watched: Kernel) -> None:
    display = shown(watched.run("d = GoingOn('reloaded')\nd.experiment"))
    comm = display["content"]["data"][WIDGET_TYPE]["model_id"]
    watched.tell(comm, {"type": "hello"})
    place = len(watched.published)
    watched.run("")
    assert not any(said("saved")(message) for message in watched.published[place:])
    watched.tell(comm, {"type": "hello"})  # JupyterLab has forgotten which output is this display's
    kept = content_of(watched.until(said("saved"), place))["data"]
    assert kept.keys() == {*display["content"]["data"], "image/png"}
    assert kept["text/plain"].startswith("Experiment 1: ")
    place = len(watched.published)
    watched.run("d.finish()")
    watched.until(
        lambda each: said("saved")(each) and "completed" in content_of(each)["data"]["text/plain"],
        place,
    )
    ends(watched)
    place = len(watched.published)
    watched.tell(comm, {"type": "hello"})
    assert "completed" in content_of(watched.until(said("saved"), place))["data"]["text/html"].lower()
    ends(watched)


def test_the_front_end_is_told_everything_and_then_what_changes_also_while_a_cell_runs(
    watched: Kernel, tmp_path: Path
) -> None:
    place = len(watched.published)
    display = shown(watched.run("b = GoingOn('told')\nb.experiment"))
    comm = display["content"]["data"][WIDGET_TYPE]["model_id"]
    first = state_of(watched.until(tells("experiment"), place))
    assert set(first) == {"experiment", "trials", "checkpoints", "curves", "logs", "outputs"}, "without being asked"
    assert first["experiment"]["name"] == "told"

    place = len(watched.published)
    code = "rows = [rest.MetricRow(batch=9, metrics={'val_loss': 0.5})]\nb.store.write_rows(1, 'validation', rows)\n"
    seen = tmp_path / "seen"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(seen)!r}).exists():\n    time.sleep(0.02)"
    busy = watched.start(f"{code}{waits}")
    assert set(state_of(watched.until(tells("curves"), place))) == {"curves"}
    assert not any(is_idle(message, busy) for message in watched.published), "the cell still runs"
    seen.touch()
    watched.until(lambda message: is_idle(message, busy), place)

    # A front end whose server knows the master follows it there: nothing is told until it asks.
    watched.tell(comm, {"type": "served"})
    watched.run("")
    place = len(watched.published)
    watched.run(code.replace("0.5", "0.4"))
    watched.run("threading.Event().wait(0.5)")
    assert not any(tells("curves")(message) for message in watched.published[place:])
    watched.tell(comm, {"type": "replay"})
    watched.until(tells("curves"), place)
    watched.run("b.finish()")
    ends(watched)
    states = [state_of(each)["experiment"]["state"] for each in watched.published[place:] if tells("experiment")(each)]
    assert states == ["COMPLETED"]


def test_an_action_is_answered_and_a_refusal_is_said(watched: Kernel) -> None:
    display = shown(watched.run("c = GoingOn('acted on')\nc.experiment"))
    comm = display["content"]["data"][WIDGET_TYPE]["model_id"]
    for number, (action, words) in enumerate([("pause", "It cannot be paused."), ("fly", "no action 'fly'")]):
        place = len(watched.published)
        watched.tell(comm, {"type": "act", "id": number, "action": action})
        answer = content_of(watched.until(said("answer"), place))
        assert answer["id"] == number
        assert words in answer["error"]
    watched.run("c.finish()")
    ends(watched)


def test_a_source_that_is_lost_is_said_and_found_again(watched: Kernel) -> None:
    place = len(watched.published)
    watched.run("d = GoingOn('lost')\nd.experiment")
    watched.until(tells("experiment"), place)
    place = len(watched.published)
    watched.run("d.store.away = 'No master answers.'")
    assert state_of(watched.until(tells("lost"), place))["lost"] == "No master answers."
    place = len(watched.published)
    watched.run("d.store.away = ''")
    assert state_of(watched.until(tells("lost"), place))["lost"] == ""
    watched.run("d.finish()")
    ends(watched)


@pytest.mark.parametrize("handle", ["over", "over.trials[0]"])
def test_what_has_ended_is_a_view_that_is_saved_at_once_and_told_when_it_is_asked_for(
    watched: Kernel, handle: str
) -> None:
    place = len(watched.published)
    display = shown(watched.run(f"over = make_experiment(name='over')\n{handle}"))
    data = display["content"]["data"]
    assert set(data) == {WIDGET_TYPE, VIEW_TYPE, "text/plain", "text/html"}, "seen before its picture is drawn"
    [saved] = [each for each in watched.published[place:] if each["msg_type"] == "update_display_data"]
    assert saved["content"]["transient"] == display["content"]["transient"]
    assert saved["parent_header"]["msg_id"] == display["parent_header"]["msg_id"], "while its cell runs"
    assert set(saved["content"]["data"]) == {*data, "image/png"}
    assert "completed" in saved["content"]["data"]["text/plain"]
    place = len(watched.published)
    assert watched.value("threads()") == "[]"
    watched.tell(data[WIDGET_TYPE]["model_id"], {"type": "replay"})
    parts = state_of(watched.until(tells("experiment"), place))
    assert parts["experiment"]["name"] == "over"
    assert parts["curves"]
    ends(watched)
    assert not [each for each in watched.published[place:] if each["msg_type"] == "update_display_data"]


def test_what_has_ended_is_no_view_in_a_notebook_that_is_only_executed(executed: Kernel) -> None:
    (result,) = [each for each in executed.run("make_experiment(name='over')") if each["msg_type"] == "execute_result"]
    assert set(result["content"]["data"]) == {"text/plain", "text/html", "image/png"}
    assert executed.value("threads()") == "[]"


def wait_for(name: str, arguments: str = "") -> str:
    """Return a cell that waits for an experiment, which ends meanwhile."""
    return f"threading.Timer(0.3, {name}.finish).start()\n{name}.experiment.wait({arguments})"


def test_a_cell_that_waits_shows_one_view_whatever_else_it_shows(watched: Kernel) -> None:
    watched.run("from IPython.display import display")
    for before in ("", "display(e.experiment)\n"):
        # The value of the cell is the experiment, which is not shown again.
        display = shown(watched.run(f"e = GoingOn('waited for')\n{before}{wait_for('e')}"))
        assert WIDGET_TYPE in display["content"]["data"]
    watched.run("f = GoingOn('waited for')\nf.experiment")
    assert WIDGET_TYPE in shown(watched.run(wait_for("f")))["content"]["data"], "under another cell once more"
    ends(watched)


def test_waiting_shows_less_if_it_is_asked_to(watched: Kernel) -> None:
    cell = f"g = GoingOn('less')\n{wait_for('g', 'show=kind')}\nNone"
    watched.run("kind = 'bar'")
    assert 'role="progressbar"' in shown(watched.run(cell))["content"]["data"]["text/html"]
    watched.run("kind = 'none'")
    assert not [each for each in watched.run(cell) if each["msg_type"] in ("display_data", "stream")]


def test_in_a_notebook_that_is_only_executed_the_cell_in_which_it_ends_shows_the_last_state(executed: Kernel) -> None:
    display = shown(executed.run("a = GoingOn('headless')\na.experiment"))
    assert set(display["content"]["data"]) == {"text/plain", "text/html"}
    executed.run("1 + 1")
    messages = executed.run("a.finish()\na.experiment.wait(show='none')\nNone")
    (update,) = [
        each
        for each in messages
        if each["msg_type"] == "update_display_data"
        and each["content"]["transient"] == display["content"]["transient"]
        and each["parent_header"]["msg_id"] != display["parent_header"]["msg_id"]
    ]
    assert "completed" in update["content"]["data"]["text/plain"]
    assert "image/png" in update["content"]["data"]
    assert not [each for each in executed.run("2") if each["msg_type"] == "update_display_data"], "once"
    ends(executed)


def test_in_a_notebook_that_is_only_executed_waiting_shows_the_last_state(executed: Kernel) -> None:
    messages = executed.run(f"b = GoingOn('headless')\n{wait_for('b')}")
    (display,) = [each for each in messages if each["msg_type"] == "display_data"]
    updates = [each["content"] for each in messages if each["msg_type"] == "update_display_data"]
    assert updates[-1]["transient"] == display["content"]["transient"]
    assert "completed" in updates[-1]["data"]["text/plain"], "while the cell runs: what comes later is lost"
    assert not [each for each in messages if each["msg_type"] == "execute_result"]
    ends(executed)


def test_a_picture_that_was_logged_is_given_with_its_bytes(watched: Kernel) -> None:
    watched.run(
        """
import hashlib
from det_native.schema.outputs import MediaKind
going = GoingOn("draws")
picture = b"a picture"
sha256 = hashlib.sha256(picture).hexdigest()
going.store.content[sha256] = picture
facts = dict(trial_id=1, batch=4, name="samples", sha256=sha256, size=9, created="", format="png")
going.store.write_media(1, [rest.Medium(id=1, kind=MediaKind.IMAGE, **facts)])
"""
    )
    comm = shown(watched.run("going.experiment"))["content"]["data"][WIDGET_TYPE]["model_id"]
    watched.tell(comm, {"type": "content", "id": 1, "trial_id": 1, "medium_id": 1})
    given = watched.until(said("answer"))
    assert content_of(given) == {"type": "answer", "id": 1}
    assert [bytes(buffer) for buffer in given["buffers"]] == [b"a picture"]
    watched.tell(comm, {"type": "content", "id": 2, "trial_id": 1, "medium_id": 7})
    assert content_of(watched.until(said("answer")))["error"] == "It is not there any more."
    watched.tell(comm, {"type": "outputs", "id": 3, "trial_id": 1})
    told = state_of(watched.until(tells("outputs")))["outputs"]
    assert (told["trialId"], told["chosen"], len(told["media"])) == (1, True, 1)
    watched.run("going.finish()")
    ends(watched)
