"""Loops in plain PyTorch that were moved to the cluster by four lines: the same values, whatever happens to them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from faults import Cluster, Gate, checkpoint_at
from loop_changes import TITLES
from moved_loops import RECORDED, Ended, Loop, experiments, plain_cells, run, while_running
from notebook_run import Kernels
from same_values import difference

#: Those of `make test`; some are killed, and trained on two slots, in `make lanes`. All others are in `make soak`.
FIRST = ("early_stopping",)
#: Those that are on two slots in `make lanes`.
TWO = ("early_stopping",)
KILLED = ("early_stopping",)
CHECKPOINTS = '{"min_checkpoint_period": {"epochs": 1}, "max_restarts": 2}'
TWO_SLOTS = '{"resources": {"slots_per_trial": 2}}'

pytestmark = pytest.mark.slow


def loops(first: Sequence[str], *marks: pytest.MarkDecorator) -> list[ParameterSet]:
    """Return all loops as parameters of a test; those that are not among the first are in `make soak`."""
    return [pytest.param(name, marks=marks if name in first else pytest.mark.soak) for name in TITLES]


Plain = Callable[[str], Ended]


@pytest.fixture(scope="session")
def plain(loop_kernels: Kernels, tmp_path_factory: pytest.TempPathFactory) -> Plain:
    """What a loop comes to without det_native; it is run once."""
    ends: dict[str, Ended] = {}

    def end_of(name: str) -> Ended:
        if name not in ends:
            loop = Loop.read(name)
            same = list(dict.fromkeys([*loop.written.same, *loop.history.values(), *loop.slots]))
            ends[name] = run(plain_cells(name), same, loop_kernels, tmp_path_factory.mktemp(name) / "plain")
        return ends[name]

    return end_of


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where a worker waits for the test."""
    made = Gate()
    yield made
    made.close()


@pytest.fixture
def home(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The cluster, which handles in this process find."""
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    return cluster


def unlike(ended: Ended, expected: Ended, names: list[str], within: float = 0.0) -> list[str]:
    """Return where values differ from those of the plain loop."""
    differences = {name: difference(expected.values[name], ended.values[name], within) for name in names}
    return [f"{name}: plain and moved differ at {place}" for name, place in differences.items() if place]


@pytest.mark.long
@pytest.mark.parametrize("name", loops(FIRST))
def test_a_moved_loop_comes_to_the_same_here_and_on_the_cluster(
    name: str, loop_kernels: Kernels, plain: Plain, tmp_path: Path
) -> None:
    loop, expected = Loop.read(name), plain(name)
    asked = [*loop.written.same, RECORDED]
    here = run([cell.locally() for cell in loop.cells()], asked, loop_kernels, tmp_path / "local")
    there = run(loop.cells(), asked, loop_kernels, tmp_path / "cluster")
    for ended in (here, there):
        assert unlike(ended, expected, loop.written.same) == []
        for metric, expression in loop.history.items():
            assert ended.values[RECORDED][metric] == expected.values[expression]


@pytest.mark.parametrize("name", loops(KILLED, pytest.mark.long))
def test_a_killed_worker_comes_to_the_same(
    name: str, loop_kernels: Kernels, plain: Plain, home: Cluster, gate: Gate, tmp_path: Path
) -> None:
    loop, before = Loop.read(name), experiments()

    def kill() -> None:
        visitor = gate.next()
        killed = home.attach(max(experiments() - before))
        checkpoint_at(killed, loop.after)
        visitor.die(signal.SIGKILL)
        again = gate.next()
        assert again.text == visitor.text, "it goes on in the epoch in which it was killed"
        again.go()

    cells = loop.cells(CHECKPOINTS, gate.port)
    ended = while_running(lambda: run(cells, loop.written.same, loop_kernels, tmp_path / "killed"), kill)
    assert unlike(ended, plain(name), loop.written.same) == []
    assert sum(home.attach(number).trials[0].detail().restarts for number in experiments() - before) == 1


@pytest.mark.parametrize("name", loops(TWO, pytest.mark.long))
def test_two_slots_come_to_nearly_the_same(name: str, loop_kernels: Kernels, plain: Plain, tmp_path: Path) -> None:
    loop = Loop.read(name)
    ended = run(loop.cells(TWO_SLOTS), [*loop.slots, RECORDED], loop_kernels, tmp_path / "two")
    assert unlike(ended, plain(name), loop.slots, loop.within) == []
    assert ended.values[RECORDED].keys() >= loop.history.keys()
