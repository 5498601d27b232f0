"""One kernel for all tests of capture: starting one costs a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Found, Kernel, Worker, replay


@pytest.fixture(scope="session")
def shared_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """The kernel, started once."""
    # Modules under "site-packages" count as installed, which the stand-in for fit() has to be.
    shared = tmp_path_factory.mktemp("kernel") / "site-packages"
    shared.mkdir()
    kernel = Kernel(tmp_path_factory.mktemp("start"), shared)
    yield kernel
    kernel.close()


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    """Where captured programs are run again."""
    process = Worker()
    yield process
    process.close()


@pytest.fixture
def kernel(shared_kernel: Kernel, tmp_path: Path) -> Kernel:
    """The kernel as if it had just been started, in an empty folder; fit and Model are imported by cell 1."""
    folder = tmp_path / "notebook"
    folder.mkdir()
    shared_kernel.begin(folder)
    shared_kernel.run("from det_stand_in import Model, fit")
    return shared_kernel


@pytest.fixture
def replayed(kernel: Kernel, worker: Worker, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run what was captured in a fresh process and give the values of names there."""

    def run(found: Found, *show: str) -> dict[str, Any]:
        return replay(worker, found, kernel.shared, tmp_path / "worker", *show)

    return run
