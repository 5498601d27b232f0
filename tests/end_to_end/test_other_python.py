"""A kernel on this Python and a master on another one, 3.11 and 3.13: what may travel between them, and what not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Cluster, Kernel, ended, running_kernel
from installed_toy import install_toy
from tiny_wheels import make_wheel, unpack_wheel

from det_native.client.connect import connect
from det_native.client.home import read_token
from det_native.schema import routes
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
THERE = "3.11" if HERE != "3.11" else "3.13"
_ROOT = Path(__file__).parents[2]
OTHER = _ROOT / (".venv" if THERE == "3.11" else ".venv313") / "bin" / "python"

# A machine elsewhere has no file of the kernel's path; the one of this test has, and would run the workers with it.
CELL = """
import sys
sys.executable = "/opt/elsewhere/bin/python"
import numpy as np
import det_native as det
from toy_framework.trial import ToyTrial

class Telling(ToyTrial):
    def train_batch(self, batch_idx):
        print("trained on", sys.version_info[:2])
        return super().train_batch(batch_idx)

def configuration(**changes):
    return {
        "hyperparameters": {"global_batch_size": 1},
        "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 2}},
        "scheduling_unit": 1,
        "max_restarts": 0,
    } | changes
"""


class Machine(Cluster):
    """A master on the other Python."""

    @property
    def interpreter(self) -> str:
        return str(OTHER)


class Near(Cluster):
    """The side of the notebook, which reaches the machine by its address and token."""

    def __init__(self, folder: Path, machine: Machine, packages: Path) -> None:
        super().__init__(folder)
        self.machine, self.packages = machine, packages

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the kernel; a package that only it has is on its import path."""
        before = super().environment
        path = os.pathsep.join([str(self.packages), before["PYTHONPATH"]])
        told = {"DET_MASTER": self.machine.master.url, "DET_TOKEN": read_token(self.machine.home)}
        return before | told | {"PYTHONPATH": path}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if not os.access(OTHER, os.X_OK):
        pytest.skip(f"there is no Python {THERE} in {OTHER.parents[1].name}: `make setup python313` makes both")
    with pytest.MonkeyPatch.context() as patch:
        path = [str(install_toy(tmp_path_factory.mktemp("toy"))), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        made = Machine(tmp_path_factory.mktemp("machine"))
        try:
            made.start("toy")
            yield made
        finally:
            made.take_down()


@pytest.fixture(scope="module")
def kernel(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    packages = tmp_path_factory.mktemp("packages") / "site-packages"
    unpack_wheel(make_wheel(tmp_path_factory.mktemp("wheels"), "tiny_pack", "1.0"), packages)
    with running_kernel(Near(tmp_path_factory.mktemp("near"), machine, packages), "notebook", CELL) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _reached(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(machine.home.path))


VALUE = "import fractions\nheld = fractions.Fraction(1, 2)"
WITH_VALUE = """
class Holding(Telling):
    def train_batch(self, batch_idx):
        return held and super().train_batch(batch_idx)

det.experimental.create(Holding, configuration(), values=["held"])
"""


def test_pickled_values_are_refused_in_one_sentence_before_anything_is_sent(kernel: Kernel, machine: Machine) -> None:
    kernel.run(VALUE)
    text = kernel.run(WITH_VALUE, fails=True).error
    assert f"the notebook runs Python {HERE}, the workers of {machine.master.url} Python {THERE}" in text
    assert "pickled values are to be sent (held), which only the same one can load" in text
    assert connect(start=False).call(routes.LIST_EXPERIMENTS) == []
    assert not list((machine.home.path / "blobs").iterdir()), "nothing was sent"


def test_source_and_arrays_train_on_the_other_one(kernel: Kernel, machine: Machine) -> None:
    kernel.run("rows = np.arange(5.0)")
    source = """
class Reading(Telling):
    def train_batch(self, batch_idx):
        print("rows", rows.sum())
        return super().train_batch(batch_idx)

experiment = det.experimental.create(Reading, configuration(), values=["rows"])
"""
    cell = kernel.begin(source)
    kernel.shows(cell, f"have Python {THERE}, here it is {HERE}; only source is sent")
    kernel.finish(cell)
    experiment = machine.attach(kernel.value("experiment.id"))
    ended(experiment, ExperimentState.COMPLETED)
    log = "\n".join(str(line) for line in experiment.trials[0].logs())
    assert f"trained on ({THERE.replace('.', ', ')})" in log
    assert "rows 10.0" in log
    assert len(kernel.value("experiment.top_checkpoint().load().steps")) == 2


def test_what_the_workers_lack_is_told_before_and_by_the_worker(kernel: Kernel, machine: Machine) -> None:
    needed = "import tiny_pack\nexperiment = det.experimental.create(Telling, configuration())"
    text = kernel.run(needed, fails=True).error
    assert f"imports tiny_pack, which the workers of {machine.master.url} do not have" in text
    late = """
class Late(Telling):
    def train_batch(self, batch_idx):
        import tiny_pack
        return super().train_batch(batch_idx)

experiment = det.experimental.create(Late, configuration())
"""
    cell = kernel.begin(late)
    kernel.shows(cell, "do not have tiny_pack, which")
    kernel.finish(cell)
    trial = ended(machine.attach(kernel.value("experiment.id")), ExperimentState.ERROR)
    assert trial.error is not None
    assert "No module named 'tiny_pack'" in trial.error.message
