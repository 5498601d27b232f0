"""A machine behind SSH whose disk is full, whose clock is wrong, and whose Python is gone: all of it real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults import PATIENCE, Gate, Kernel, assert_complete_rows, checkpoint_at, ended, running_kernel
from installed_toy import install_toy
from laptop import Laptop
from small_disks import SmallDisk, small_disk
from ssh_machine import SshMachine, running_machine
from toy_programs import BATCHES, TOY_CELLS, TOY_CREATE

from det_native.schema.states import ExperimentState

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("cc") is None,
        reason="Linux and a C compiler give processes a clock that can be set",
    ),
]

DAY = 86_400
SHIM = Path(__file__).with_name("shifted_clock.c")


class ShiftedClock:
    """A clock for the processes of a machine."""

    def __init__(self, folder: Path) -> None:
        self._shim, self._shift = folder / "shifted_clock.so", folder / "shift"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self._shim, SHIM, "-ldl"], check=True)
        self._shift.write_bytes(bytes(8))

    @property
    def variables(self) -> dict[str, str]:
        """Variables of those who have it."""
        return {"LD_PRELOAD": str(self._shim), "TEST_CLOCK_SHIFT": str(self._shift)}

    def set(self, seconds: int) -> None:
        """Set it so many seconds forth or back of the right time."""
        with self._shift.open("r+b") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    packages = install_toy(tmp_path_factory.mktemp("toy"))
    with pytest.MonkeyPatch.context() as patch, running_machine(packages) as running:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")]).rstrip(":"))
        yield running


@pytest.fixture(scope="module")
def clock(machine: SshMachine) -> ShiftedClock:
    return ShiftedClock(machine.folder)


@pytest.fixture(scope="module")
def disk(machine: SshMachine) -> Iterator[SmallDisk]:
    with small_disk(machine.folder / "small", "128m") as mounted:
        os.chown(mounted.path, machine.user.pw_uid, machine.user.pw_gid)
        yield mounted
        machine.end_masters()


@pytest.fixture(scope="module")
def shared_laptop(
    machine: SshMachine, clock: ShiftedClock, disk: SmallDisk, tmp_path_factory: pytest.TempPathFactory
) -> Laptop:
    """The way to a master there that has this clock, and all of whose home is on this disk."""
    address = machine.python_with("small-python", DET_HOME=str(disk.path), **clock.variables)
    return Laptop(tmp_path_factory.mktemp("laptop"), machine, address)


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
    """The laptop, with this process as another client of its user."""
    monkeypatch.setenv("DET_HOME", str(shared_laptop.home.path))
    with shared_laptop.machine.as_seen_here(monkeypatch):
        yield shared_laptop


@pytest.fixture
def kernel(shared_kernel: Kernel, laptop: Laptop) -> Iterator[Kernel]:
    yield shared_kernel
    shared_kernel.clear()


def check(laptop: Laptop, kernel: Kernel, number: int, end: Any) -> None:
    """Check that nothing of a training is lost, twice or else than undisturbed."""
    experiment = laptop.attach(number)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(number) == end


def test_the_disk_there_is_full(laptop: Laptop, kernel: Kernel, undisturbed: Any, disk: SmallDisk, gate: Gate) -> None:
    number = kernel.submit_with(TOY_CREATE, stops="5", size=2_500_000, port=gate.port)
    visitor = gate.next()
    checkpoint_at(laptop.attach(number), 3)
    disk.fill()
    visitor.go()
    deadline = time.monotonic() + PATIENCE
    while "waits for disk space" not in (told := laptop.attach(number).trials[0].detail().notice):
        assert time.monotonic() < deadline, told
        time.sleep(0.02)
    assert str(disk.path) in told
    disk.fill()
    kernel.run("import os\nopen('more.bin', 'wb').write(os.urandom(30_000_000))")
    refused = kernel.run(TOY_CREATE.replace("settings)", "settings), include=['more.bin']"), fails=True).error
    assert "full" in refused, refused
    disk.empty()
    check(laptop, kernel, number, undisturbed)
    again = kernel.submit_with(TOY_CREATE)
    kernel.run("experiment.wait()")
    check(laptop, kernel, again, undisturbed)
    assert again == number + 1, "of the refused submit there is nothing"


def test_the_clock_there_is_a_day_off(
    laptop: Laptop, kernel: Kernel, undisturbed: Any, clock: ShiftedClock, gate: Gate
) -> None:
    number = kernel.submit_with(TOY_CREATE, stops="4 8", port=gate.port)
    try:
        visitor = gate.next()
        waiting = kernel.begin("experiment.wait(show='bar')")
        kernel.shows(waiting, "running")
        clock.set(DAY)
        assert laptop.machine.cut()  # the connection is made anew, to a machine with another time
        visitor.go()
        visitor = gate.next()
        clock.set(-DAY)
        assert str(number) in laptop.det("-m", laptop.address, "experiment", "list")
        visitor.go()
        kernel.finish(waiting)
        check(laptop, kernel, number, undisturbed)
        assert "reported nothing" not in str(laptop.attach(number).logs())
    finally:
        clock.set(0)


# An attempt that began while the Python was away may still be under way, and fail for all who wait for it.
BACK = """
import time
deadline = time.monotonic() + 120
while True:
    try:
        det.attach({number})
        break
    except det.errors.DetError:
        if time.monotonic() > deadline:
            raise
"""


@contextmanager
def without_python(machine: SshMachine) -> Iterator[None]:
    """Take the Python of the machine away for the block."""
    environment = machine.python.parents[1]
    away = environment.with_name("away")
    environment.rename(away)
    try:
        yield
    finally:
        away.rename(environment)


def test_the_python_there_is_gone_between_two_submits(
    laptop: Laptop, kernel: Kernel, undisturbed: Any, gate: Gate
) -> None:
    number = kernel.submit_with(TOY_CREATE, stops="5", port=gate.port)
    visitor = gate.next()
    with without_python(laptop.machine):
        assert laptop.machine.cut()
        refused = kernel.run(TOY_CREATE, fails=True).error
        assert f"on {laptop.machine.user.pw_name}@127.0.0.1" in refused, refused
        assert "not found" in refused, refused
        visitor.go()
    kernel.run(BACK.format(number=number))
    check(laptop, kernel, number, undisturbed)  # it went on under those who train
    again = kernel.submit_with(TOY_CREATE)
    kernel.run("experiment.wait()")
    check(laptop, kernel, again, undisturbed)
    assert again == number + 1, "of the refused submit there is nothing"
