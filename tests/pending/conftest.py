"""Notebooks for the tests of what waits for weights: shells for what is decided, real kernels for what is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path += [str(_TESTS / "capture"), str(_TESTS / "end_to_end"), str(_TESTS / "journeys")]

from faults import GATE_CELL, Cluster, Gate, Kernel, running_kernel  # noqa: E402 (a folder of tests is no package)
from in_process import ShellKernel  # noqa: E402
from torch_program import CONFIG, TORCH  # noqa: E402

#: What stands in for a training on the cluster, and tells what is decided of it. It lives outside the notebook.
STAND_IN = """
from dataclasses import dataclass, field
from typing import Any

import torch

from det_native.capture.calls import note_call
from det_native.client.handles import Experiment
from det_native.pending import cells, registry
from det_native.pending.following import is_read_later

decided = []


class Handle(Experiment):
    def __init__(self):
        pass


@dataclass(eq=False)
class Call:
    models: list
    optimizers: list = field(default_factory=list)

    @property
    def trained_parts(self):
        return [*self.models, *self.optimizers]


class Wrapped(torch.nn.Linear):
    def fit(self, *data, loop=False):
        note_call("fit")
        training = registry.add(Handle(), Call([self]))
        decided.append(is_read_later(training, loop=loop))
        return training.experiment


class Batches:
    _det_known_by_identity = True

    def __init__(self, model):
        self.model = model

    def __iter__(self):
        return self

    def __next__(self):
        self.model.fit(loop=True)
        raise StopIteration


def needs(source, namespace):
    return bool(cells.needed_by(source, namespace))


# The frames of these are ours, as those of the real calls are.
Wrapped.fit.__globals__["__name__"] = "det_native.stand_in"
"""


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShellKernel]:
    """IPython's shell, in processes that have PyTorch."""
    shared = tmp_path_factory.mktemp("shared")
    (shared / "pending_stand_in.py").write_text(STAND_IN)
    kernel = ShellKernel(tmp_path_factory.mktemp("notebook"), shared)
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def notebook(shell: ShellKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShellKernel]:
    """A notebook for all tests of a file."""
    shell.begin(tmp_path_factory.mktemp("cells"))
    shell.run("import torch\nfrom pending_stand_in import Batches, Wrapped, decided, needs\nmodel = Wrapped(2, 2)")
    yield shell
    shell.end()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.take_down()


@pytest.fixture(scope="session")
def torch_kernel(cluster: Cluster) -> Iterator[Kernel]:
    """A kernel with the program in PyTorch."""
    with running_kernel(cluster, "torch", GATE_CELL, TORCH) as kernel:
        yield kernel


@pytest.fixture
def kernel(torch_kernel: Kernel) -> Iterator[Kernel]:
    """The same, with the configuration as it was; it has nothing to do, and lives after the test, too."""
    torch_kernel.run(CONFIG)
    yield torch_kernel
    torch_kernel.clear()
    assert torch_kernel.run("1 + 1").text == "2"


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()
