"""Data too large to travel: brought to the store of a machine behind SSH, and read there by the same line of code."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from faults import GATE_CELL, PATIENCE, Gate, Kernel, ended, running_kernel
from installed_toy import install_toy
from laptop import Laptop
from small_disks import small_disk
from ssh_machine import running_machine

from det_native.capture.files import BUNDLE_LIMIT
from det_native.client.connect import connect
from det_native.schema import routes
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

SIZE = BUNDLE_LIMIT + 5_000_000
CELL = """
import hashlib
import det_native as det
from toy_framework.trial import ToyTrial

configuration = {
    "hyperparameters": {"global_batch_size": 1, "port": 0},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 1}},
    "scheduling_unit": 1,
}
"""
READING = """
class Reading(ToyTrial):
    def train_batch(self, batch_idx):
        with open("data/large.bin", "rb") as stream:
            print("content", hashlib.file_digest(stream, "sha256").hexdigest())
        if self.context.get_hparam("port"):
            gate(self.context.get_hparam("port"), 1)
        return super().train_batch(batch_idx)
"""
CREATE = "experiment = det.experimental.create(Reading, configuration)"


@pytest.fixture(scope="module")
def shared_laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """The laptop and the machine."""
    packages = install_toy(tmp_path_factory.mktemp("toy"))
    with pytest.MonkeyPatch.context() as patch, running_machine(packages) as machine:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")]).rstrip(":"))
        yield Laptop(tmp_path_factory.mktemp("laptop"), machine)


@pytest.fixture(scope="module")
def kernel(shared_laptop: Laptop) -> Iterator[Kernel]:
    with running_kernel(shared_laptop, "notebook", GATE_CELL, CELL, READING) as opened:
        (opened.folder / "data").mkdir()
        (opened.folder / "data" / "large.bin").write_bytes(os.urandom(SIZE))
        yield opened


@pytest.fixture
def laptop(shared_laptop: Laptop, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    monkeypatch.setenv("DET_HOME", str(shared_laptop.home.path))
    with shared_laptop.machine.as_seen_here(monkeypatch):
        yield shared_laptop
    kernel.clear()


def det(laptop: Laptop, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as the laptop's user does."""
    return subprocess.run(
        [sys.executable, "-m", "det_native.client.command", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=laptop.environment,
    )


def test_it_is_named_brought_and_read_by_the_same_line(laptop: Laptop, kernel: Kernel, gate: Gate) -> None:
    text = kernel.run(CREATE, fails=True).error
    assert "data/large.bin: " in text
    assert "`det data put PATH`" in text
    data = kernel.folder / "data"
    assert "There are no data in the store" in det(laptop, "data", "list").stdout

    over = threading.Event()
    cuts: list[int] = []
    cutter = threading.Thread(target=_cut_twice, args=(laptop, over, cuts))
    cutter.start()
    try:
        done = det(laptop, "data", "put", str(data), "--name", "pictures")
    finally:
        over.set()
        cutter.join()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pictures: 1 file, 105.7 MB, are in the store of" in done.stdout
    assert cuts, "the connection was cut while it was sent"
    again = det(laptop, "data", "put", str(data))
    assert again.returncode == 0, again.stderr
    assert [line.split()[0] for line in det(laptop, "data", "list").stdout.splitlines()] == ["name", "data", "pictures"]

    kernel.run(f"configuration['hyperparameters']['port'] = {gate.port}")
    number = kernel.submit(CREATE)
    visitor = gate.next()
    refused = det(laptop, "data", "remove", "pictures")
    assert f"Experiment {number}, which goes on, reads the data 'pictures'" in refused.stderr
    visitor.go()
    experiment = laptop.attach(number)
    ended(experiment, ExperimentState.COMPLETED)
    log = "\n".join(str(line) for line in experiment.trials[0].logs())
    assert f"content {hashlib.sha256((data / 'large.bin').read_bytes()).hexdigest()}" in log
    [row] = [row for row in experiment.source.experiment(number).report if row.how == "stored data"]
    assert (row.what, row.status, row.size) == ("data/large.bin", "not sent", SIZE)
    assert kernel.value("experiment.trials[0].checkpoints[-1].load().count") > 0

    for name in ("pictures", "data"):
        assert f"{name} is removed" in det(laptop, "data", "remove", name).stdout
    assert not list((laptop.machine.home_there.path / "data" / "contents").glob("*/*"))
    assert "det data list" in det(laptop, "data", "remove", "data").stderr
    assert "data/large.bin: " in kernel.run(CREATE, fails=True).error, "it is asked for again"


def test_a_path_that_only_the_workers_have_is_looked_for_there_before_anything_is_queued(
    laptop: Laptop, kernel: Kernel
) -> None:
    there = laptop.machine.folder / "there" / "only_there.txt"
    there.write_text("7")
    there.chmod(0o644)
    kernel.run(
        f"""
class Elsewhere(ToyTrial):
    def train_batch(self, batch_idx):
        print("read", open("{there}").read())
        return super().train_batch(batch_idx)
"""
    )
    kernel.run("configuration['hyperparameters']['port'] = 0")
    create = "experiment = det.experimental.create(Elsewhere, configuration)"
    number = kernel.submit(create)
    ended(laptop.attach(number), ExperimentState.COMPLETED)
    before = len(connect(laptop.machine.address).call(routes.LIST_EXPERIMENTS))
    there.unlink()
    kernel.run(
        """
class Elsewhere(ToyTrial):
    def train_batch(self, batch_idx):
        print("read", open("/nowhere/at/all.txt").read())
        return super().train_batch(batch_idx)
"""
    )
    text = kernel.run(create, fails=True).error
    assert "line 4: reads '/nowhere/at/all.txt', which on the machine of the workers is not there" in text
    assert len(connect(laptop.machine.address).call(routes.LIST_EXPERIMENTS)) == before


OUTSIDE = """
import os
FOLDER = {folder!r}

class Outside(ToyTrial):
    def train_batch(self, batch_idx):
        with open({large!r}, "rb") as stream:
            print("large", hashlib.file_digest(stream, "sha256").hexdigest())
        print("small", open(os.path.join(FOLDER, "small.txt")).read())
        import reading
        print("module", reading.small())
        return super().train_batch(batch_idx)
"""
MODULE = """
from pathlib import Path

def small():
    return (Path({folder!r}) / "small.txt").read_text()
"""


@pytest.fixture
def private(laptop: Laptop) -> Iterator[Path]:
    """A folder of the laptop that its machine does not have: it is closed to the other user, and not of `/tmp`."""
    if not laptop.machine.other_user:
        pytest.skip("needs a second user")
    folder = Path(tempfile.mkdtemp(prefix="det-laptop-", dir=Path.home()))
    yield folder
    shutil.rmtree(folder)


def test_files_outside_of_the_notebooks_folder_are_named_brought_and_read_by_the_same_line(
    laptop: Laptop, kernel: Kernel, private: Path
) -> None:
    large, small = private / "large.bin", private / "small.txt"
    large.write_bytes(os.urandom(3_000_000))
    small.write_text("seven")
    (kernel.folder / "reading.py").write_text(MODULE.format(folder=str(private)))
    kernel.run("configuration['hyperparameters']['port'] = 0")
    kernel.run(OUTSIDE.format(folder=str(private), large=str(large)))
    create = "experiment = det.experimental.create(Outside, configuration)"
    before = len(connect(laptop.machine.address).call(routes.LIST_EXPERIMENTS))
    refused = kernel.run(create, fails=True)
    assert f"reads '{large}', which on the machine of the workers is not there" in refused.error
    assert f"`det data put {large}`" in refused.error
    assert "or name a path or URL that they see" in refused.error
    assert len(connect(laptop.machine.address).call(routes.LIST_EXPERIMENTS)) == before, (
        "it is not its first batch that says so"
    )

    assert det(laptop, "data", "put", str(large)).returncode == 0
    refused = kernel.run(create, fails=True)
    assert f"reads '{small}', which on the machine of the workers is not there" in refused.error, (
        "by a name of its folder"
    )
    assert f"`det data put {small}`" in refused.error

    assert det(laptop, "data", "put", str(small)).returncode == 0
    number = kernel.submit(create)
    experiment = laptop.attach(number)
    ended(experiment, ExperimentState.COMPLETED)
    log = "\n".join(str(line) for line in experiment.trials[0].logs())
    assert f"large {hashlib.sha256(large.read_bytes()).hexdigest()}" in log
    assert "small seven" in log
    assert "module seven" in log
    assert kernel.value("experiment.trials[0].checkpoints[-1].load().count") > 0, "here it reads the files themselves"
    large.write_bytes(os.urandom(3_000_000))
    assert "is not there" in kernel.run(create, fails=True).error, "what is there is another content"


SUBMITTING = """
import sys
import det_native as det
from det_native.errors import DetError
from toy_framework.trial import ToyTrial

class Reading(ToyTrial):
    def train_batch(self, batch_idx):
        open("large.bin").close()
        return super().train_batch(batch_idx)

configuration = {
    "hyperparameters": {"global_batch_size": 1},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 1}},
}
try:
    det.experimental.create(Reading, configuration, master_url=sys.argv[1])
except DetError as error:
    print("REFUSED", error)
"""


SCRIPT = """
import argparse
import det_native as det
from toy_framework.trial import ToyTrial

parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("labels")
given = parser.parse_args()

class Reading(ToyTrial):
    def train_batch(self, batch_idx):
        print("data", open(given.data).read(), "labels", open(given.labels).read())
        return super().train_batch(batch_idx)

configuration = {
    "hyperparameters": {"global_batch_size": 1},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 1}},
    "scheduling_unit": 1,
}
if __name__ == "__main__":
    print("NUMBER", det.experimental.create(Reading, configuration).id)
"""


def test_a_scripts_arguments_lead_to_the_store_too(laptop: Laptop, private: Path) -> None:
    data, labels = private / "data.txt", private / "labels.txt"
    data.write_text("eight")
    labels.write_text("nine")
    assert det(laptop, "data", "put", str(private), "--name", "both").returncode == 0
    (laptop.folder / "train.py").write_text(SCRIPT)
    text = laptop.command("train.py", f"--data={data}", str(labels))
    experiment = laptop.attach(int(text.split("NUMBER")[1].split()[0]))
    ended(experiment, ExperimentState.COMPLETED)
    assert "data eight labels nine" in "\n".join(str(line) for line in experiment.trials[0].logs())


def test_a_full_disk_there_is_told_with_its_place(laptop: Laptop) -> None:
    machine = laptop.machine
    (laptop.folder / "large.bin").write_bytes(os.urandom(30_000_000))
    with small_disk(machine.folder / "small", size="12m") as disk:
        os.chown(disk.path, machine.user.pw_uid, machine.user.pw_gid)
        address = machine.python_with("small-python", DET_HOME=str(disk.path))
        assert det(laptop, "-m", address, "up").returncode == 0
        try:
            put = det(laptop, "-m", address, "data", "put", str(laptop.folder / "large.bin"))
            assert f"is too full for this, at {disk.path}: 30.0 MB are to come" in put.stderr
            assert disk.free > 8_000_000, "nothing of it was sent"
            text = laptop.script(SUBMITTING, address)
            assert f"REFUSED The disk of the master is full, at {disk.path}." in text
            assert det(laptop, "-m", address, "status").returncode == 0
        finally:
            assert det(laptop, "-m", address, "down", "--kill").returncode == 0


def _cut_twice(laptop: Laptop, over: threading.Event, cuts: list[int]) -> None:
    """Cut the connection each time some megabytes more have gone over it, twice."""
    before: dict[int, int] = {}
    deadline = time.monotonic() + PATIENCE
    while len(cuts) < 2 and not over.is_set() and time.monotonic() < deadline:
        for process in laptop.machine.serving():
            with contextlib.suppress(psutil.Error):
                counters = process.io_counters()
                moved = counters.read_chars + counters.write_chars
                if moved - before.setdefault(process.pid, moved) > 10_000_000:
                    cuts.append(laptop.machine.cut())
                    break
        over.wait(0.01)
