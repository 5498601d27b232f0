"""Tells a user who waits for an answer that the master is silent, and why, within seconds."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import requests

from det_native.client.lines import Lines
from det_native.schema.home import Home, read_runtime

# What is told comes at most 5 s after the request: the wait, then a question that takes two seconds at most.
_WAIT_SECONDS = 2.5
_PROBE_SECONDS = 1.0

# Whether a question (GET) to a master that is silent is given up soon, which the command does: a script waits for it.
questions_are_given_up = False
QUESTION_SECONDS = 6.0


@contextmanager
def told_if_silent(url: str, name: str) -> Iterator[None]:
    """While the block waits for an answer: say once on standard error if the master does not even tell its health.

    A master that is only busy with this request says nothing and nothing is said.

    Parameters
    ----------
    url : str
        The master's address, without a path.
    name : str
        What it is called.
    """
    answered = threading.Event()
    watcher = threading.Timer(_WAIT_SECONDS, _watch, (url, name, answered))
    watcher.daemon = True
    watcher.name = "det-silence"
    try:
        watcher.start()  # an interrupt may come while it starts
        yield
    finally:
        answered.set()
        watcher.cancel()


def reason_of_silence(url: str) -> str:
    """Return why a master of this machine's home is silent and what to do; "" where that is not known."""
    runtime = read_runtime(Home.default())
    if runtime is None or not runtime.is_at(url):
        return ""
    import psutil  # slow to load, and hardly ever needed

    try:
        stopped = psutil.Process(runtime.pid).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return ""
    if stopped:
        return f"Its process {runtime.pid} is stopped by a signal; `kill -CONT {runtime.pid}` lets it go on."
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load > processors:
        return f"The machine is busy (a load of {load:.0f} on {processors} processors), so it may only be slow."
    return (
        f"Its process {runtime.pid} hangs; `det down` and `det up` start it anew. Nothing that it has acknowledged is "
        "lost."
    )


def is_hung(url: str) -> bool:
    """Whether a master does not even tell its health, though it is given time."""
    return not _tells_health(url, QUESTION_SECONDS)


def _watch(url: str, name: str, answered: threading.Event) -> None:
    while not answered.is_set():
        if not _tells_health(url):
            if not answered.is_set():
                text = f"The master at {name} does not answer; still waiting. {reason_of_silence(url)}"
                print(f"Warning: {text.strip()}", file=sys.stderr, flush=True)
            return
        answered.wait(_WAIT_SECONDS)


def _tells_health(url: str, seconds: float = _PROBE_SECONDS) -> bool:
    from det_native.schema.routes import GET_HEALTH  # the table takes a while to load, and `det` loads this module

    try:
        with requests.Session() as session:
            session.trust_env = False
            return session.get(
                Lines(session).base(url) + GET_HEALTH.address(), timeout=seconds, stream=True, verify=False
            ).ok
    except requests.RequestException:
        return False
