"""What the cells import, compared with what a machine behind SSH has before anything is queued; made equal there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from faults import Kernel, ended, running_kernel
from installed_toy import install_toy
from laptop import Laptop
from ssh_machine import running_machine
from tiny_wheels import make_wheel, unpack_wheel

from det_native.client.connect import connect
from det_native.schema import routes
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

CELL = """
import det_native as det
from toy_framework.trial import ToyTrial
import tiny_pack

class Telling(ToyTrial):
    def train_batch(self, batch_idx):
        print("tiny_pack is", tiny_pack.VERSION)
        return super().train_batch(batch_idx)

def configuration(**environment):
    return {
        "hyperparameters": {"global_batch_size": 1},
        "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 2}},
        "scheduling_unit": 1,
        "environment": environment,
    }
"""


@pytest.fixture(scope="module")
def shared_laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A laptop with tiny_pack 1.0, and a machine whose pip finds 1.0 and 2.0; it has neither."""
    toy, here = install_toy(tmp_path_factory.mktemp("toy")), tmp_path_factory.mktemp("here") / "site-packages"
    with pytest.MonkeyPatch.context() as patch, running_machine(toy) as machine:
        wheels = machine.folder / "wheels"
        for version in ("1.0", "2.0"):
            make_wheel(wheels, "tiny_pack", version)
        unpack_wheel(wheels / "tiny_pack-1.0-py3-none-any.whl", here)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(here), str(toy), os.environ.get("PYTHONPATH", "")]).rstrip(":"))
        with machine.configured(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels)):
            yield Laptop(tmp_path_factory.mktemp("laptop"), machine)


@pytest.fixture(scope="module")
def kernel(shared_laptop: Laptop) -> Iterator[Kernel]:
    with running_kernel(shared_laptop, "notebook", CELL) as opened:
        yield opened


@pytest.fixture
def laptop(shared_laptop: Laptop, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    monkeypatch.setenv("DET_HOME", str(shared_laptop.home.path))
    with shared_laptop.machine.as_seen_here(monkeypatch):
        yield shared_laptop
    kernel.clear()
    for path in (shared_laptop.machine.folder / "packages").glob("tiny_pack*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def create(environment: str = "") -> str:
    return f"experiment = det.experimental.create(Telling, configuration({environment}))"


def said(laptop: Laptop, number: int) -> str:
    """Return the log of the one trial, which has trained."""
    experiment = laptop.attach(number)
    ended(experiment, ExperimentState.COMPLETED)
    return "\n".join(str(line) for line in experiment.trials[0].logs())


def test_a_package_that_is_missing_is_told_before_anything_is_queued(laptop: Laptop, kernel: Kernel) -> None:
    text = str(kernel.run(create(), fails=True).error)
    assert f"imports tiny_pack, which the workers of {laptop.machine.address} do not have" in text
    assert "packages: auto" in text
    session = connect(laptop.machine.address)
    assert session.call(routes.LIST_EXPERIMENTS) == []
    assert not list((laptop.machine.home_there.path / "blobs").iterdir()), "nothing was sent"


def test_auto_brings_the_version_of_here(laptop: Laptop, kernel: Kernel) -> None:
    number = kernel.submit(create("packages='auto'"))
    log = said(laptop, number)
    assert "Makes an environment with tiny-pack==1.0" in log
    assert "tiny_pack is 1.0" in log
    [row] = [row for row in laptop.attach(number).source.experiment(number).report if row.how == "package"]
    assert (row.what, row.note) == ("tiny-pack", "here 1.0, on the workers missing")


def test_another_version_is_a_warning_with_both(laptop: Laptop, kernel: Kernel) -> None:
    machine = laptop.machine
    unpack_wheel(machine.folder / "wheels" / "tiny_pack-2.0-py3-none-any.whl", machine.folder / "packages")
    executed = kernel.begin(create())
    kernel.shows(executed, "have tiny-pack 2.0, here it is 1.0")
    kernel.finish(executed)
    number = kernel.value("experiment.id")
    log = said(laptop, number)
    assert "tiny_pack is 2.0" in log
    listed = kernel.submit(create("packages=['tiny-pack==1.0']"))
    assert "tiny_pack is 1.0" in said(laptop, listed)


def test_pips_reason_is_told(laptop: Laptop, kernel: Kernel) -> None:
    number = kernel.submit(create("packages=['tiny-pack==9']"))
    trial = ended(laptop.attach(number), ExperimentState.ERROR)
    assert trial.error is not None
    assert "from versions: 1.0, 2.0" in trial.error.message
    assert trial.restarts == 0
