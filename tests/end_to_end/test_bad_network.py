"""A network that loses, repeats, delays and breaks off what a master is told: all arrives, once."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import FaultProxy, Network
from faults import PATIENCE, Cluster, Gate, Kernel, assert_complete_rows, ended
from http_proxy import Fault, http_proxy
from programs import BATCHES, TORCH_CREATE

from det_native.client.connect import connect
from det_native.client.handles import Experiment
from det_native.client.home import read_token
from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.schema.sockets import path_of, url_of
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

SEED = int(os.environ.get("DET_FAULT_SEED", "36"))
# The kernel's way to the master is made anew, so that it leads over what is between them.
RECONNECT = "from det_native.client.connect import connect; connect(start=False).close()"


@contextmanager
def interposed(cluster: Cluster) -> Iterator[tuple[Path, Path]]:
    """Give the socket of the master and the place where all look for it, which is free for the block."""
    place = path_of(cluster.master.url)
    target = place.with_name("beyond")
    place.rename(target)  # a socket is found by its file
    try:
        yield target, place
    finally:
        place.unlink(missing_ok=True)
        target.rename(place)


@pytest.fixture
def proxy(cluster: Cluster, kernel: Kernel) -> Iterator[FaultProxy]:
    """A network between the master and all others."""
    with interposed(cluster) as places, FaultProxy(*places) as made:
        kernel.run(RECONNECT)
        connect(start=False).close()
        yield made


@contextmanager
def drawn_cuts(proxy: FaultProxy, chance: random.Random) -> Iterator[list[Network]]:
    """Cut and hold the network for drawn times at drawn moments; gives what has been done."""
    over = threading.Event()
    done: list[Network] = []

    def disturb() -> None:
        while not over.wait(chance.uniform(0.02, 0.5)):
            network = chance.choice([Network.REFUSING, Network.HELD])
            with proxy.being(network):
                over.wait(chance.uniform(0.02, 1.0))
            done.append(network)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def until(holds: Callable[[], bool]) -> None:
    """Ask until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def check(kernel: Kernel, cluster: Cluster, number: int, end: Any) -> None:
    """Check that nothing of a training is lost, twice or else than undisturbed."""
    experiment = cluster.attach(number)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0, f"seed {SEED}"
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(number) == end, f"seed {SEED}"


def test_connections_break_off_at_drawn_bytes(
    kernel: Kernel, torch_end: Any, cluster: Cluster, proxy: FaultProxy
) -> None:
    with proxy.lossy(random.Random(SEED), 1_000, 50_000):
        number = kernel.submit_with(TORCH_CREATE)
        kernel.run("experiment.wait()")
    assert proxy.resets, f"seed {SEED}"
    check(kernel, cluster, number, torch_end)


@pytest.mark.soak
def test_a_slow_line_is_waited_for(kernel: Kernel, torch_end: Any, cluster: Cluster, proxy: FaultProxy) -> None:
    with proxy.slow(15_000):
        number = kernel.submit_with(TORCH_CREATE)
        kernel.run("experiment.wait()")
    check(kernel, cluster, number, torch_end)


def test_the_network_is_cut_at_drawn_moments(
    kernel: Kernel, torch_end: Any, cluster: Cluster, proxy: FaultProxy
) -> None:
    with drawn_cuts(proxy, random.Random(SEED)) as done:
        numbers = []
        while len(numbers) < 3 or (len(set(done)) < 2 and len(numbers) < 20):
            numbers.append(kernel.submit_with(TORCH_CREATE))
            kernel.run("experiment.wait()")
    assert len(set(done)) == 2, f"seed {SEED}"
    for number in numbers:
        check(kernel, cluster, number, torch_end)


def test_a_cut_is_told_to_who_waits_and_its_end_too(
    kernel: Kernel, torch_end: Any, cluster: Cluster, proxy: FaultProxy, gate: Gate
) -> None:
    number = kernel.submit_with(TORCH_CREATE, stops="5", port=gate.port)
    visitor = gate.next()
    waiting = kernel.begin("experiment.wait(show='bar')")
    kernel.shows(waiting, "running")
    with proxy.being(Network.REFUSING):
        kernel.shows(waiting, "No master answers at unix:")
        visitor.go()
    kernel.shows(waiting, "In touch again.")
    kernel.finish(waiting)
    check(kernel, cluster, number, torch_end)


@pytest.mark.soak
def test_a_line_that_loses_all_answers(
    kernel: Kernel, torch_end: Any, cluster: Cluster, proxy: FaultProxy, gate: Gate
) -> None:
    """Half-open: what the worker reports is stored, which it is never told, so that it reports it once more."""
    number = kernel.submit_with(TORCH_CREATE, stops="5 10", port=gate.port)
    visitor = gate.next()
    with proxy.being(Network.DEAF):
        visitor.go()
        visitor = gate.next()
        beyond = Experiment(HttpSource(Session(url_of(proxy.target), read_token(cluster.home))), number)
        until(lambda: [row["batch"] for row in beyond.trials[0].metrics("training")][-1:] == [9])
    accepted = proxy.accepted
    visitor.go()
    check(kernel, cluster, number, torch_end)
    assert proxy.accepted > accepted


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.TWICE, Fault.LATE], ids=lambda fault: fault.name)
def test_requests_are_lost_repeated_and_overtaken(
    fault: Fault, kernel: Kernel, torch_end: Any, cluster: Cluster
) -> None:
    chance = random.Random(f"{SEED} {fault}")
    known = cluster.attach(1)._source.experiments(1000)
    with interposed(cluster) as places, http_proxy(*places) as proxy:
        proxy.fault = lambda number, name: fault if chance.random() < 0.3 else Fault.NONE
        kernel.run(RECONNECT)
        number = kernel.submit_with(TORCH_CREATE)
        kernel.run("experiment.wait()")
    connect(start=False).close()
    kernel.run(RECONNECT)
    assert fault in proxy.faults, f"seed {SEED}"
    assert {status // 100 for status in proxy.overtaken} <= {2, 4}, proxy.overtaken
    check(kernel, cluster, number, torch_end)
    assert len(cluster.attach(number)._source.experiments(1000)) == len(known) + 1, "it is made once"
