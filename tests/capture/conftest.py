"""Notebooks for all tests of capture: one process that forks them, and one real kernel, each started once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from in_process import ShellKernel
from kernels import Found, Kernel, RealKernel, Worker, replay

SHELL, KERNEL = "shell", "kernel"
#: Tests that a real kernel runs in the quick lane too, and how many of their cases (the first ones): some of each kind
#: of rule, and what depends on what a front end sends. All others go through a real kernel in the long lane.
REAL = {
    "test_cells_run_out_of_order_and_again": 1,
    "test_inits_own_execution_is_always_sent": 1,
    "test_a_cell_that_adds_up_runs_as_often_as_it_ran": 1,
    "test_what_a_widget_changed_is_sent_by_value": 1,
    "test_a_file_that_a_magic_ran": 1,
    "test_what_an_interrupted_cell_changed_is_sent_by_value": 1,
    "test_a_loop_of_experiments_by_running_a_cell_again": 1,
    "test_calls_under_time_and_capture_magics_are_found_again": 1,
    "test_the_place_of_the_call_survives_the_transformation": 9,
    "test_display_cells_shell_lines_and_installs_are_not_needed": 1,
    "test_tags_leave_out_and_force_in": 1,
    "test_cells_that_ran_before_the_import_count_as_successful_and_say_so": 1,
    "test_what_the_history_gave_travels_and_is_not_there_itself": 1,
    "test_a_declared_array_is_sent_and_its_cell_does_not_run": 1,
    "test_locks_handles_and_generators_are_never_sent": 1,
    "test_a_magic_that_changes_the_folder_changes_what_paths_are_relative_to": 1,
}
#: Tests for which IPython's shell alone does not do: a widget has a front end only where there is a kernel, and
#: TensorFlow takes seconds to import, each time.
REAL_ONLY = {"test_what_a_slider_was_set_to_is_no_cells_doing"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let every test that executes cells do so in IPython's shell alone and in a real kernel."""
    if "kernel" in metafunc.fixturenames:
        kinds = [KERNEL] if metafunc.function.__name__ in REAL_ONLY else [SHELL, KERNEL]
        metafunc.parametrize("shared_kernel", kinds, indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the long lane what a real kernel need not run each time."""
    seen: dict[str, int] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and callspec.params.get("shared_kernel") == KERNEL:
            name = getattr(item, "originalname", item.name)
            seen[name] = seen.get(name, 0) + 1
            if name not in REAL_ONLY and seen[name] > REAL.get(name, 0):
                item.add_marker(pytest.mark.slow)
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def started_kernels() -> Iterator[dict[str, Kernel]]:
    """What has been started so far; a fixture with parameters would be started again by each file."""
    started: dict[str, Kernel] = {}
    yield started
    for kernel in started.values():
        kernel.close()


@pytest.fixture(scope="session")
def shared_kernel(
    request: pytest.FixtureRequest, started_kernels: dict[str, Kernel], tmp_path_factory: pytest.TempPathFactory
) -> Kernel:
    """What executes cells, started once."""
    if request.param not in started_kernels:
        # Modules under "site-packages" count as installed, which the stand-in for fit() has to be.
        shared = tmp_path_factory.mktemp("kernel") / "site-packages"
        shared.mkdir()
        kind = ShellKernel if request.param == SHELL else RealKernel
        started_kernels[request.param] = kind(tmp_path_factory.mktemp("start"), shared)
    return started_kernels[request.param]


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Where captured programs are run again."""
    process = Worker(tmp_path_factory.mktemp("worker"))
    yield process
    process.close()


@pytest.fixture
def kernel(shared_kernel: Kernel, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel as if it had just been started, in an empty folder; fit and Model are imported by cell 1."""
    folder = tmp_path / "notebook"
    folder.mkdir()
    shared_kernel.begin(folder)
    shared_kernel.run("from det_stand_in import Model, fit")
    yield shared_kernel
    shared_kernel.end()


@pytest.fixture
def replayed(kernel: Kernel, worker: Worker, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run what was captured in a fresh process and give the values of names there."""

    numbers = count(1)

    def run(found: Found, *show: str) -> dict[str, Any]:
        return replay(worker, found, kernel.shared, tmp_path / f"worker-{next(numbers)}", *show)

    return run
