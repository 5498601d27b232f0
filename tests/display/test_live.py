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

# In the kernel: experiments of its own that go on until they are told to end.
PREPARE = f"""
import sys, threading
sys.path.insert(0, {str(TESTS)!r})
import det_native as det
import det_native.display.live as live
from local_experiments import write_experiment
from det_native.local.store import LocalStore
from det_native.schema import rest

live.FIRST_RENEWAL_SECONDS, live.RENEW_SECONDS, live.PUSH_SECONDS = 0.3, 0.3, 0.1
live.CALM_SECONDS, live.RETRY_SECONDS = 0.2, 0.2

class GoingOn:
    def __init__(self, name):
        self.experiment = write_experiment(name=name)
        self.store = LocalStore.find(self.experiment.id)
        self.done = self.store.experiment()
        self.held, self.finish = threading.Event(), threading.Event()
        threading.Thread(target=self.run, name="run").start()
        assert self.held.wait(10)

    def run(self):
        with self.store.lock:
            self.store.write_experiment(self.done.model_copy(update=dict(state="ACTIVE", progress=0.5)))
            self.held.set()
            self.finish.wait(120)
            self.store.write_experiment(self.done)

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
    assert data["text/plain"].startswith("Experiment local-1: first: running, 50% done")
    assert watched.value("a.experiment.state.value") == "'ACTIVE'"
    place = len(watched.published)
    watched.run("a.finish.set()")
    updated = watched.until(
        lambda each: each["msg_type"] == "update_display_data" and "completed" in each["content"]["data"]["text/plain"],
        place,
    )
    assert updated["content"]["transient"] == display["content"]["transient"]
    assert updated["parent_header"] == display["parent_header"], "it belongs to the cell that showed it"
    assert updated["content"]["data"].keys() == {*data, "image/png"}
    assert updated["content"]["data"][VIEW_TYPE] == data[VIEW_TYPE]
    ends(watched)


@pytest.mark.parametrize("handle", ["g.experiment", "g.experiment.trials[0]"])
def test_what_goes_on_for_a_while_has_its_picture_saved_at_once(watched: Kernel, handle: str) -> None:
    going_on = "g.store.write_trial(g.store.trials()[0].model_copy(update=dict(state='RUNNING')))"
    watched.run(f"g = GoingOn('seen again')\n{going_on}\nlive.FIRST_RENEWAL_SECONDS = live.RENEW_SECONDS = 3600")
    place = len(watched.published)
    watched.run(handle)
    updated = watched.until(lambda each: each["msg_type"] == "update_display_data", place)
    assert "image/png" in updated["content"]["data"]
    watched.run("live.FIRST_RENEWAL_SECONDS = live.RENEW_SECONDS = 0.3\ng.finish.set()")
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
    assert kept["text/plain"].startswith("Experiment local-")
    place = len(watched.published)
    watched.run("d.finish.set()")
    watched.until(
        lambda each: said("saved")(each) and "completed" in content_of(each)["data"]["text/plain"],
        place,
    )
    ends(watched)
    place = len(watched.published)
    watched.tell(comm, {"type": "hello"})
    assert "completed" in content_of(watched.until(said("saved"), place))["data"]["text/html"].lower()
    ends(watched)


def test_the_front_end_is_told_everything_and_then_what_changes_also_while_a_cell_runs(watched: Kernel) -> None:
    display = shown(watched.run("b = GoingOn('told')\nb.experiment"))
    comm = display["content"]["data"][WIDGET_TYPE]["model_id"]
    place = len(watched.published)
    watched.tell(comm, {"type": "replay"})
    first = content_of(watched.until(said("view"), place))
    assert first["whole"]
    assert set(first["parts"]) == {"experiment", "trials", "checkpoints", "curves", "logs"}
    assert first["parts"]["experiment"]["name"] == "told"

    code = "rows = [rest.MetricRow(batch=9, metrics={'val_loss': 0.5})]\nb.store.write_rows(1, 'validation', rows)\n"
    busy = watched.start(f"{code}hold = threading.Event()\nhold.wait(1.5)")
    change = content_of(watched.until(said("view"), place + 1))
    while change["seq"] == first["seq"]:
        change = content_of(watched.until(said("view")))
    assert (change["seq"], change["whole"], set(change["parts"])) == (first["seq"] + 1, False, {"curves"})
    assert not any(is_idle(message, busy) for message in watched.published), "the cell still runs"
    watched.until(lambda message: is_idle(message, busy))

    watched.tell(comm, {"type": "replay"})
    again = content_of(watched.until(said("view")))
    assert again["whole"]
    assert again["seq"] == change["seq"] + 1
    watched.run("b.finish.set()")
    ends(watched)
    watched.tell(comm, {"type": "replay"})
    assert content_of(watched.until(said("view")))["parts"]["experiment"]["state"] == "COMPLETED", "after its end too"
    ends(watched)


def test_an_action_is_answered_and_a_refusal_is_said(watched: Kernel) -> None:
    display = shown(watched.run("c = GoingOn('acted on')\nc.experiment"))
    comm = display["content"]["data"][WIDGET_TYPE]["model_id"]
    for number, (action, words) in enumerate([("pause", "cannot be paused"), ("fly", "no action 'fly'")]):
        place = len(watched.published)
        watched.tell(comm, {"type": "act", "id": number, "action": action})
        answer = content_of(watched.until(said("answer"), place))
        assert answer["id"] == number
        assert words in answer["error"]
    watched.run("c.finish.set()")
    ends(watched)


def test_a_source_that_is_lost_is_said_and_found_again(watched: Kernel) -> None:
    display = shown(watched.run("d = GoingOn('lost')\nd.experiment"))
    comm = display["content"]["data"][WIDGET_TYPE]["model_id"]
    place = len(watched.published)
    watched.tell(comm, {"type": "replay"})
    watched.until(said("view"), place)
    watched.run("file = d.store.folder / 'experiment.json'\nfile.rename(file.with_name('away.json'))")
    assert content_of(watched.until(said("lost")))["message"]
    watched.run("file.with_name('away.json').rename(file)")
    watched.tell(comm, {"type": "replay"})
    assert content_of(watched.until(said("view")))["parts"]["experiment"]["name"] == "lost"
    watched.run("d.finish.set()")
    ends(watched)


@pytest.mark.parametrize("handle", ["over", "over.trials[0]"])
def test_what_has_ended_is_a_view_that_is_saved_at_once_and_told_when_it_is_asked_for(
    watched: Kernel, handle: str
) -> None:
    place = len(watched.published)
    display = shown(watched.run(f"over = write_experiment(name='over')\n{handle}"))
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
    parts = content_of(watched.until(said("view"), place))["parts"]
    assert parts["experiment"]["name"] == "over"
    assert parts["curves"]
    ends(watched)
    assert not [each for each in watched.published[place:] if each["msg_type"] == "update_display_data"]


def test_what_has_ended_is_no_view_in_a_notebook_that_is_only_executed(executed: Kernel) -> None:
    (result,) = [each for each in executed.run("write_experiment(name='over')") if each["msg_type"] == "execute_result"]
    assert set(result["content"]["data"]) == {"text/plain", "text/html", "image/png"}
    assert executed.value("threads()") == "[]"


def test_only_where_the_view_stands_the_bar_is_left_out(watched: Kernel) -> None:
    watched.run("e = GoingOn('bar')")
    wait = "threading.Timer(0.3, e.finish.set).start()\ne.experiment.wait()\nNone"
    first = watched.run(f"from IPython.display import display\ndisplay(e.experiment)\n{wait}")
    assert WIDGET_TYPE in shown(first)["content"]["data"]
    watched.run("f = GoingOn('bar')\nf.experiment")
    bar = shown(watched.run(wait.replace("e.", "f.", 2)))["content"]["data"]
    assert "<progress" in bar["text/html"]
    ends(watched)


def test_in_a_notebook_that_is_only_executed_the_cell_in_which_it_ends_shows_the_last_state(executed: Kernel) -> None:
    display = shown(executed.run("a = GoingOn('headless')\na.experiment"))
    assert set(display["content"]["data"]) == {"text/plain", "text/html"}
    executed.run("1 + 1")
    messages = executed.run("a.finish.set()\na.experiment.wait()\nNone")
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
