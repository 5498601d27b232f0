"""A machine behind SSH, and a network to it, of which everything fails: real processes, at drawn moments.

What was acknowledged is there, each row once, the weights are those of an undisturbed training, and the user is told.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fault_proxy import FaultProxy, Network
from faults import PATIENCE, Gate, Kernel, assert_complete_rows, ended, running_kernel
from installed_toy import install_toy
from laptop import Laptop
from ssh_machine import SshMachine, running_machine
from toy_programs import BATCHES, TOY_CELLS, TOY_CREATE

from det_native.client.connect import connect
from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState
from det_native.storage.blobs import BlobStore

pytestmark = [pytest.mark.slow, pytest.mark.long]

SEED = int(os.environ.get("DET_FAULT_SEED", "36"))
LARGE = 6_000_000

# What is sent with the program is new each time; a submit that breaks off says so, and is done once more.
LARGE_FILE = f"import os\nopen('large.bin', 'wb').write(os.urandom({LARGE}))\nblob = 'large.bin'"
SUBMIT = """
experiment = det.experimental.create(Counting, configuration(**settings), include=["large.bin"])
"""
SUBMIT_OR_SAY = f"""
from det_native.errors import MasterUnreachableError
try:
    {SUBMIT.strip()}
except MasterUnreachableError as error:
    print(error)
else:
    print("NUMBER", experiment.id)
"""

# One who waits gives up after a minute without a master, which is soon over on a busy machine.
WAIT_OR_SAY = """
from det_native.errors import NoMasterError
try:
    experiment.wait(show="bar")
except NoMasterError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    packages = install_toy(tmp_path_factory.mktemp("toy"))
    with pytest.MonkeyPatch.context() as patch, running_machine(packages) as running:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")]).rstrip(":"))
        yield running


@pytest.fixture(scope="module")
def network(machine: SshMachine) -> Iterator[FaultProxy]:
    """The network between the laptop and the machine."""
    with FaultProxy(machine.port) as between:
        machine.be_behind(between.port)
        yield between


@pytest.fixture(scope="module")
def shared_laptop(machine: SshMachine, network: FaultProxy, tmp_path_factory: pytest.TempPathFactory) -> Laptop:
    return Laptop(tmp_path_factory.mktemp("laptop"), machine)


@pytest.fixture(scope="module")
def shared_kernel(shared_laptop: Laptop) -> Iterator[Kernel]:
    with running_kernel(shared_laptop, "notebook", *TOY_CELLS) as opened:
        yield opened


@pytest.fixture(scope="module")
def undisturbed(shared_kernel: Kernel) -> Any:
    """What the training comes to there if nothing disturbs it."""
    number = shared_kernel.submit_with(TOY_CREATE)
    shared_kernel.run("experiment.wait()")
    return shared_kernel.end_of(number)


@pytest.fixture
def laptop(shared_laptop: Laptop, undisturbed: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    """The laptop, with this process as another client of its user; nothing runs on the machine."""
    monkeypatch.setenv("DET_HOME", str(shared_laptop.home.path))
    with shared_laptop.machine.as_seen_here(monkeypatch):
        yield shared_laptop


@pytest.fixture
def kernel(shared_kernel: Kernel, laptop: Laptop) -> Iterator[Kernel]:
    yield shared_kernel
    shared_kernel.clear()


def check(laptop: Laptop, kernel: Kernel, number: int, end: Any, restarts: int = 0) -> None:
    """Check that nothing of a training is lost, twice or else than undisturbed."""
    experiment = laptop.attach(number)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == restarts, f"seed {SEED}"
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(number) == end, f"seed {SEED}"


def known(laptop: Laptop) -> list[int]:
    """Return the numbers of the experiments there."""
    return [one.id for one in laptop.attach(1).source.experiments(1000)]  # type: ignore[attr-defined]


def assert_nothing_half(machine: SshMachine) -> None:
    """Check that what lies in the machine's store of blobs is whole."""
    folder = machine.home_there.path / "blobs"
    store = BlobStore(str(folder))
    for path in folder.glob("*/*"):
        if re.fullmatch(r"[0-9a-f]{64}", path.name):
            store.read(path.name)


@pytest.mark.soak
def test_the_server_is_stopped_while_it_trains(laptop: Laptop, kernel: Kernel, undisturbed: Any, gate: Gate) -> None:
    number = kernel.submit_with(TOY_CREATE, stops="5 10", port=gate.port)
    visitor = gate.next()
    waiting = kernel.begin("experiment.wait(show='bar')")
    kernel.shows(waiting, "running")
    laptop.machine.stop_sshd()
    try:
        kernel.shows(waiting, f"Out of touch with {laptop.address} since ")
        visitor.go()
        visitor = gate.next()
    finally:
        laptop.machine.start_sshd()
    visitor.go()
    kernel.shows(waiting, "In touch again.")
    kernel.finish(waiting)
    check(laptop, kernel, number, undisturbed)


def test_a_minute_without_network(
    laptop: Laptop, kernel: Kernel, undisturbed: Any, network: FaultProxy, gate: Gate
) -> None:
    number = kernel.submit_with(TOY_CREATE, stops="5", port=gate.port)
    visitor = gate.next()
    waiting = kernel.begin("experiment.wait(show='bar')")
    kernel.shows(waiting, "running")
    with network.being(Network.HELD):
        begun = time.monotonic()
        visitor.go()
        kernel.shows(waiting, f"Out of touch with {laptop.address} since ")
        time.sleep(max(60 - (time.monotonic() - begun), 0))  # the fault itself, not a wait for something
    kernel.shows(waiting, "In touch again.")
    kernel.finish(waiting)
    check(laptop, kernel, number, undisturbed)


@pytest.mark.soak
def test_a_slow_line(laptop: Laptop, kernel: Kernel, undisturbed: Any, network: FaultProxy) -> None:
    laptop.machine.cut()
    with network.slow(40_000):
        number = kernel.submit_with(TOY_CREATE)
        kernel.run("experiment.wait()")
    check(laptop, kernel, number, undisturbed)


def test_connections_break_off_at_drawn_bytes_of_an_upload(
    laptop: Laptop, kernel: Kernel, undisturbed: Any, network: FaultProxy
) -> None:
    chance = random.Random(SEED)
    before, resets = known(laptop), network.resets
    for _ in range(2):
        kernel.run(LARGE_FILE)
        kernel.run("settings = {}")
        with network.lossy(chance, 20_000, 3 * LARGE):
            for attempt in range(20):
                text = kernel.run(SUBMIT_OR_SAY).text
                assert_nothing_half(laptop.machine)
                if "NUMBER" in text:
                    break
                assert laptop.address in text, text
                assert attempt < 19, f"seed {SEED}"
            kernel.run("experiment.wait()")
        check(laptop, kernel, kernel.value("experiment.id"), undisturbed)
    assert network.resets > resets, f"seed {SEED}"
    assert len(known(laptop)) == len(before) + 2, "each is made once"


def test_the_kernel_is_killed_in_mid_upload(
    laptop: Laptop, kernel: Kernel, undisturbed: Any, network: FaultProxy
) -> None:
    before = known(laptop)
    with running_kernel(laptop, "killed", *TOY_CELLS, LARGE_FILE, "settings = {}") as doomed:
        passed = network.passed + random.Random(SEED).randrange(100_000, LARGE)
        with network.slow(2_000_000):
            doomed.begin(SUBMIT)
            deadline = time.monotonic() + PATIENCE
            while network.passed < passed:
                assert time.monotonic() < deadline
                time.sleep(0.005)
            doomed.kill()
    assert known(laptop) == before, "no half experiment"
    assert_nothing_half(laptop.machine)
    with running_kernel(laptop, "killed", *TOY_CELLS, "blob = 'large.bin'") as again:
        number = again.submit_with(SUBMIT)
        again.run("experiment.wait()")
    check(laptop, kernel, number, undisturbed)
    assert len(known(laptop)) == len(before) + 1


def test_the_master_there_is_killed_at_drawn_moments(
    laptop: Laptop, kernel: Kernel, undisturbed: Any, gate: Gate
) -> None:
    moments = sorted(random.Random(SEED).sample(range(2, BATCHES + 1), 2))
    number = kernel.submit_with(TOY_CREATE, stops=" ".join(map(str, moments)), port=gate.port)
    visitors = {moments[0]: gate.next()}
    waiting = kernel.begin(WAIT_OR_SAY)
    kernel.shows(waiting, "running")
    for moment in moments:
        visitor = visitors.get(moment) or gate.next()
        assert visitor.text == str(moment)
        master = laptop.machine.master
        os.kill(master.pid, signal.SIGKILL)
        assert wait_until_gone(master.pid, master.start, PATIENCE)
        visitor.go()
        if moment == moments[0]:
            kernel.shows(waiting, "No master runs on")
        connect(laptop.address)
        assert laptop.machine.master.pid != master.pid
    kernel.finish(waiting)
    kernel.run("experiment.wait()")
    check(laptop, kernel, number, undisturbed)


def kill_visitors(gate: Gate, moments: list[int]) -> None:
    """Kill whoever comes to the next of these moments, and let others go on, until somebody comes to the end."""
    left = list(map(str, moments))
    while (visitor := gate.next()).text != "end":
        if left and visitor.text == left[0]:
            left.pop(0)
            visitor.die(signal.SIGKILL)
        else:
            visitor.go()
    visitor.line.close()
    assert not left


@pytest.mark.soak
def test_the_worker_there_is_killed_at_drawn_batches(
    laptop: Laptop, kernel: Kernel, undisturbed: Any, gate: Gate
) -> None:
    moments = sorted(random.Random(SEED).sample(range(1, BATCHES + 1), 2))
    number = kernel.submit_with(TOY_CREATE, stops=" ".join(map(str, moments)), port=gate.port)
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(kill_visitors, gate, moments)
        kernel.run("experiment.wait()")
        with socket.create_connection(("127.0.0.1", gate.port)) as line:
            line.sendall(b"0 end\n")
            killing.result()
    check(laptop, kernel, number, undisturbed, restarts=2)
    told = str(laptop.attach(number).logs())
    assert told.count("SIGKILL") == 2, told
