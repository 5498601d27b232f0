"""A notebook here, training on a machine that is reached by SSH, and the connection killed at every kind of moment."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from faults import GATE_CELL, PATIENCE, Gate, Kernel, assert_complete_rows, ended, running_kernel
from installed_toy import install_toy
from laptop import Laptop
from ssh_machine import SshMachine, running_machine

from det_native.client.connect import connect
from det_native.client.events import EventFeed
from det_native.client.loading import ArrivingFile
from det_native.schema.home import read_runtime
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

BATCHES = 12
CELL = """
import random
import signal
import det_native as det
from toy_framework.trial import ToyTrial

class Counting(ToyTrial):
    def train_batch(self, batch_idx):
        if str(batch_idx + 1) in self.context.get_hparam("stops").split():
            gate(self.context.get_hparam("port"), batch_idx + 1)
        metrics = super().train_batch(batch_idx)
        self.steps += [0] * self.context.get_hparam("size")
        return metrics

def configuration(**settings):
    return {
        "hyperparameters": {"global_batch_size": 1, "stops": "", "port": 0, "size": 0} | settings,
        "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": %d}},
        "scheduling_unit": 1,
        "checkpoint_policy": "none",
        "min_validation_period": {"batches": 5},
        "min_checkpoint_period": {"batches": 6},
    }
"""

SUBMIT_OR_SAY = """
from det_native.errors import MasterUnreachableError
try:
    %s
except MasterUnreachableError as error:
    print(error)
else:
    print("NUMBER", experiment.id)
"""


# As in a notebook that somebody looks at. It leaves the environment as it is: a cell that sets it would be sent by
# the tests after this one, whose kernel this is.
SHOWN = """
import os
from unittest import mock
from det_native.display import live
with mock.patch.dict(os.environ, JPY_SESSION_NAME="notebook.ipynb"):
    live.show(experiment)
[view] = [each._widget for each in live._views if each.has_widget]
"""


@pytest.fixture(scope="module")
def shared_laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """The laptop and the machine."""
    packages = install_toy(tmp_path_factory.mktemp("toy"))
    with pytest.MonkeyPatch.context() as patch, running_machine(packages) as machine:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")]).rstrip(":"))
        laptop = Laptop(tmp_path_factory.mktemp("laptop"), machine)
        yield laptop


@pytest.fixture(scope="module")
def kernel(shared_laptop: Laptop) -> Iterator[Kernel]:
    """A kernel of the laptop."""
    with running_kernel(shared_laptop, "notebook", GATE_CELL, CELL % BATCHES) as opened:
        yield opened


@pytest.fixture
def laptop(shared_laptop: Laptop, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    """The laptop, with this process as another client of its user; the connection is closed afterwards."""
    monkeypatch.setenv("DET_HOME", str(shared_laptop.home.path))
    with shared_laptop.machine.as_seen_here(monkeypatch):
        yield shared_laptop


def create(**settings: object) -> str:
    """Return the cell that submits."""
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return f"experiment = det.experimental.create(Counting, configuration({given}))"


@pytest.mark.long
def test_it_trains_there_though_the_connection_is_killed(laptop: Laptop, kernel: Kernel, gate: Gate) -> None:
    machine = laptop.machine
    number = kernel.submit(create(stops="4 8", port=gate.port))
    first = gate.next()
    assert psutil.Process(first.pid).uids().real == machine.user.pw_uid
    waiting = kernel.begin("experiment.wait(show='bar')")
    with EventFeed(laptop.attach(number).source, number) as feed:
        seen = [feed.next(PATIENCE)]
        for visitor in (first, None):
            visitor = visitor or gate.next()
            connect(machine.address).health()  # over a connection that stands again
            assert machine.cut()
            visitor.go()
        while (event := feed.next(PATIENCE)) is not None:
            seen.append(event)
    kernel.finish(waiting)
    experiment = laptop.attach(number)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    ids = [event.id for event in seen if event is not None]
    with EventFeed(experiment.source, number) as again:
        known = [event.id for event in iter(lambda: again.next(PATIENCE), None)]
    assert ids == known, "no gap, no repeat"
    steps = kernel.value("sum(experiment.trials[0].checkpoints[-1].load().steps)")
    assert steps > 0
    assert read_runtime(laptop.home) is None, "no master runs here"


@pytest.mark.soak
def test_the_view_says_since_when_it_is_out_of_touch(laptop: Laptop, kernel: Kernel, gate: Gate) -> None:
    number = kernel.submit(create(stops="4", port=gate.port))
    visitor = gate.next()
    waiting = kernel.begin("experiment.wait(show='none')")
    with EventFeed(laptop.attach(number).source, number) as feed:
        assert feed.next(PATIENCE) is not None
    with laptop.machine.configured("DenyUsers *"):
        laptop.machine.cut()
        kernel.shows(waiting, "accepts none of your SSH keys")
    kernel.clear()
    visitor.go()
    experiment = laptop.attach(number)
    ended(experiment, ExperimentState.COMPLETED)
    assert_complete_rows(experiment, BATCHES)


@pytest.mark.long
def test_a_machine_that_is_away_for_a_while_is_waited_for(laptop: Laptop, kernel: Kernel, gate: Gate) -> None:
    number = kernel.submit(create(stops="4", port=gate.port))
    visitor = gate.next()
    waiting = kernel.begin("experiment.wait(show='none')")
    with laptop.machine.away():
        kernel.shows(waiting, f"Out of touch with {laptop.machine.address} since ")
        visitor.go()
    kernel.finish(waiting)
    experiment = laptop.attach(number)
    assert experiment.state is ExperimentState.COMPLETED
    assert_complete_rows(experiment, BATCHES)


@pytest.mark.long
def test_the_live_view_says_since_when_and_goes_on(laptop: Laptop, kernel: Kernel, gate: Gate) -> None:
    number = kernel.submit(create(stops="4", port=gate.port))
    visitor = gate.next()
    kernel.run(SHOWN)

    def until(expression: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not kernel.value(expression):
            assert time.monotonic() < deadline, kernel.value("view.lost")

    until("view.experiment is not None and view.lost == ''")
    with laptop.machine.away():
        until(f"'Out of touch with {laptop.machine.address} since ' in view.lost")
        visitor.go()
    until("view.lost == '' and view.experiment['state'] == 'COMPLETED'")
    assert kernel.value("view.trials[0]['batches']") == BATCHES
    batches = kernel.value("next(curve['batch'] for curve in view.curves if curve['kind'] == 'training')")
    assert batches == list(range(1, BATCHES + 1)), "no gap, no repeat"
    assert_complete_rows(laptop.attach(number), BATCHES)


@pytest.mark.soak
def test_the_connection_is_killed_at_drawn_moments(laptop: Laptop, kernel: Kernel) -> None:
    machine, chance = laptop.machine, random.Random(20)
    over = threading.Event()
    cuts: list[int] = []

    def cut_now_and_then() -> None:
        while not over.wait(chance.uniform(0.2, 2.0)):
            cuts.append(machine.cut())

    cutter = threading.Thread(target=cut_now_and_then)
    cutter.start()
    try:
        numbers: list[int] = []
        while len(numbers) < 3 or (not any(cuts) and len(numbers) < 20):  # a quick machine is through before a cut
            for attempt in range(20):
                # A cut may come between any two requests of a submit; what it says then, is to do it once more.
                text = kernel.run(SUBMIT_OR_SAY % create()).text
                if "NUMBER" in text:
                    break
                assert "ssh://" in text
                assert attempt < 19
            numbers.append(int(text.split("NUMBER")[1].split()[0]))
            kernel.run("experiment.wait(show='none')")
    finally:
        over.set()
        cutter.join()
    assert any(cuts)
    assert len(set(numbers)) == len(numbers) >= 3
    for number in numbers:
        experiment = laptop.attach(number)
        assert experiment.state is ExperimentState.COMPLETED
        assert_complete_rows(experiment, BATCHES)


@pytest.mark.long
def test_a_cut_in_mid_upload(laptop: Laptop, kernel: Kernel) -> None:
    machine = laptop.machine
    kernel.run("import os\nopen('large.bin', 'wb').write(os.urandom(60_000_000))\nblob = 'large.bin'")
    submitting = kernel.begin(
        "experiment = det.experimental.create(Counting, configuration(size=200_000), include=['large.bin'])"
    )
    cut_while_moving(machine)
    kernel.finish(submitting)
    kernel.run("experiment.wait(show='none')")
    assert kernel.value("len(experiment.trials[0].checkpoints[-1].load().steps)") > 200_000


@pytest.mark.soak
def test_a_cut_in_mid_download_goes_on_where_it_was(
    laptop: Laptop, kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = laptop.machine
    number = kernel.submit(create(size=10_000_000))
    experiment = laptop.attach(number)
    ended(experiment, ExperimentState.COMPLETED)
    begun: list[int] = []
    take = ArrivingFile.take

    def noted(arriving: ArrivingFile, chunks: Iterable[bytes]) -> None:
        if arriving.file.size > 10_000_000:
            begun.append(arriving.offset)
        take(arriving, chunks)

    monkeypatch.setattr(ArrivingFile, "take", noted)
    cutter = threading.Thread(target=cut_while_moving, args=(machine, 8_000_000))
    cutter.start()
    folder = experiment.trials[0].checkpoints[-1].download(tmp_path / "checkpoint")
    cutter.join()
    assert len(begun) == 2
    assert begun[1] > 0, "it goes on where it was"
    manifest = json.loads((folder / "manifest.json").read_text())
    for file in manifest["files"]:
        assert hashlib.sha256((folder / file["path"]).read_bytes()).hexdigest() == file["sha256"]
    assert not list(folder.rglob("*.part"))


@pytest.mark.long
def test_a_line_that_goes_silent_is_told_and_made_anew(laptop: Laptop, kernel: Kernel, gate: Gate) -> None:
    number = kernel.submit(create(stops="4", port=gate.port))
    visitor = gate.next()
    waiting = kernel.begin("experiment.wait(show='none')")
    with EventFeed(laptop.attach(number).source, number) as feed:
        assert feed.next(PATIENCE) is not None
    frozen = laptop.machine.serving()
    laptop.machine.freeze()
    laptop.machine.listen(signal.SIGSTOP)  # nor does anything answer: the line is there, and nobody at its end
    try:
        kernel.says(waiting, f"Out of touch with {laptop.machine.address} since ")
        laptop.machine.listen(signal.SIGCONT)
        kernel.says(waiting, "In touch again.")
        visitor.go()
        kernel.finish(waiting)
    finally:
        laptop.machine.listen(signal.SIGCONT)
        for process in frozen:  # they have never noticed
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    experiment = laptop.attach(number)
    assert experiment.state is ExperimentState.COMPLETED
    assert_complete_rows(experiment, BATCHES)


def cut_while_moving(machine: SshMachine, amount: int = 5_000_000) -> None:
    """Cut the connection once so many bytes have gone over it."""
    before: dict[int, int] = {}
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for process in machine.serving():
            with contextlib.suppress(psutil.Error):
                counters = process.io_counters()
                moved = counters.read_chars + counters.write_chars
                if moved - before.setdefault(process.pid, moved) > amount:
                    machine.cut()
                    return
        time.sleep(0.01)
    raise AssertionError("nothing was moved")
