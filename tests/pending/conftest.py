"""Notebooks for the tests of what waits for weights: shells for what is decided, real kernels for what is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path += [str(_TESTS / "capture"), str(_TESTS / "end_to_end"), str(_TESTS / "journeys"), str(_TESTS / "notebooks")]

from faults import Cluster, Gate  # noqa: E402 (a folder of tests is no package)
from in_process import ShellKernel  # noqa: E402
from notebook_run import Kernels  # noqa: E402

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
def kernels(cluster: Cluster) -> Iterator[Kernels]:
    """Kernels that have Keras and PyTorch imported."""
    kernels = Kernels(cluster, "tensorflow", "keras", "torch.utils.data")
    yield kernels
    kernels.close()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()
