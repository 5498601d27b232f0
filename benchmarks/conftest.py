"""Paired timings: ours and the peer in turn, round by round, so that a drifting machine hits both alike."""

from __future__ import annotations

import itertools
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from notebook_kernel import Kernel, running_kernel
from pytest_benchmark.fixture import BenchmarkFixture

# What a training in this process reports is kept by the same class as in tests, in processes of the peers too.
_TESTS = str(Path(__file__).resolve().parents[1] / "tests")
sys.path.append(_TESTS)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), _TESTS]))
_DOCS = Path(__file__).resolve().parents[1] / "docs"
_HEAD = ["| what | ours | peer | ratio [lowest..highest] | rounds | goal | |", "|---|---|---|---|---|---|---|"]


@dataclass(frozen=True)
class Ratio:
    """A ratio of ours to the peer's, its spread over the rounds, and the goal."""

    what: str
    ours: float
    peer: float
    ratio: float
    lowest: float
    highest: float
    rounds: int
    goal: str
    met: bool


@dataclass(frozen=True)
class Figure:
    """A plain figure with its goal."""

    what: str
    value: str
    goal: str
    met: bool


_results: list[Ratio | Figure] = []
# The rows of earlier runs that stay unless they are measured anew.
_of_before: list[str] = []


def _keep(found: Ratio | Figure) -> None:
    """Keep a row, and write it: what comes after it may hang."""
    _results.append(found)
    _write()


class Paired:
    """Times two callables in turn and keeps the median of the rounds' ratios."""

    def __init__(self, benchmark: BenchmarkFixture) -> None:
        self._benchmark = benchmark

    def __call__(
        self,
        what: str,
        ours: Callable[[], Any],
        peer: Callable[[], Any],
        *,
        goal: float | None,
        rounds: int = 7,
        before: Callable[[], Any] | None = None,
        value: Callable[[Any, float], float] | None = None,
    ) -> Ratio:
        """Run `peer` and `ours` in turn, `rounds` times after one warm-up of each; without a `goal` just to know.

        `before` runs untimed before each of ours; `value` turns (result, seconds) into the figure compared, where the
        callable measures itself.
        """
        ours_times: list[float] = []
        peer_times: list[float] = []

        def timed(run: Callable[[], Any], times: list[float]) -> None:
            begin = time.perf_counter()
            result = run()
            seconds = time.perf_counter() - begin
            times.append(value(result, seconds) if value else seconds)

        def setup() -> None:
            timed(peer, peer_times)
            if before:
                before()

        self._benchmark.pedantic(timed, args=(ours, ours_times), setup=setup, rounds=rounds, warmup_rounds=1)
        ours_times, peer_times = ours_times[1:], peer_times[1:]
        ratios = [mine / other for mine, other in zip(ours_times, peer_times, strict=True)]
        ratio = statistics.median(ratios)
        found = Ratio(
            what,
            statistics.median(ours_times),
            statistics.median(peer_times),
            ratio,
            min(ratios),
            max(ratios),
            rounds,
            "none" if goal is None else f"≤ {goal:.3g}x",
            goal is None or ratio <= goal,
        )
        _keep(found)
        return found

    def of(self, what: str, pairs: Sequence[tuple[float, float]], *, goal: float | None) -> Ratio:
        """Keep the median of the ratios of what was timed by turns already: (ours, the peer's)."""
        mine, others = iter(pairs), iter(pairs)
        return self(
            what,
            lambda: next(mine)[0],
            lambda: next(others)[1],
            goal=goal,
            rounds=len(pairs) - 1,  # besides the warm-up
            value=lambda seconds, _: seconds,
        )


@pytest.fixture
def paired(benchmark: BenchmarkFixture) -> Paired:
    """Return what times two callables in turn."""
    return Paired(benchmark)


@pytest.fixture
def figure() -> Callable[[str, str, str, bool], None]:
    """Return what records a plain figure: what, value, goal, met."""

    def record(what: str, value: str, goal: str, met: bool) -> None:
        _keep(Figure(what, value, goal, met))

    return record


def pytest_configure(config: pytest.Config) -> None:
    """See whether all benchmarks run, or some: then the rows of the others stay in the table."""
    global _of_before
    some = config.option.keyword or any(".py" in argument for argument in config.args)
    _of_before = _rows_of(_path()) if some else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each row the limit of the tests, in a way in which the next one is measured all the same."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(method="signal"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Say in the table what has not been measured, and why."""
    yield
    if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
        why = call.excinfo.exconly(tryshort=True).strip().splitlines()
        _keep(Figure(item.nodeid.rpartition("/")[2], f"not measured: {why[0]:.120}", "none", False))


def _seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.1f} us"
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def _table() -> list[str]:
    rows = list(_measured())
    fresh = {_key(row): row for row in rows}
    kept = [fresh.get(_key(row), row) for row in _of_before]
    earlier_keys = {_key(row) for row in _of_before}
    return [*_HEAD, *kept, *(row for row in rows if _key(row) not in earlier_keys)]


def _key(row: str) -> str:
    """Return what a row measures, without what differs from run to run: spread, load, date."""
    return re.sub(r"\s*\[[^]]*\]|;.*", "", row.split(" | ")[0])


def _rows_of(path: Path) -> list[str]:
    lines = path.read_text().splitlines() if path.exists() else []
    if _HEAD[1] not in lines:
        return []
    rest = lines[lines.index(_HEAD[1]) + 1 :]
    return list(itertools.takewhile(lambda line: line.startswith("|"), rest))


def _measured() -> Iterator[str]:
    date = f"; {datetime.now(UTC):%Y-%m-%d}" if _of_before else ""
    for found in _results:
        mark = "met" if found.met else "**not met**"
        mark = "-" if found.goal == "none" and found.met else mark
        if isinstance(found, Ratio):
            spread = f"{found.ratio:.2f} [{found.lowest:.2f}..{found.highest:.2f}]"
            ours, peer = _seconds(found.ours), _seconds(found.peer)
            yield f"| {found.what}{date} | {ours} | {peer} | {spread} | {found.rounds} | {found.goal} | {mark} |"
        else:
            yield f"| {found.what}{date} | {found.value} | - | - | - | {found.goal} | {mark} |"


def _versions() -> str:
    names = ["torch", "tensorflow-cpu", "numpy", "fastapi", "sqlalchemy", "zstandard"]
    installed = {found.name for found in metadata.distributions()}
    return ", ".join(f"{name} {metadata.version(name)}" for name in names if name in installed)


@cache
def _gpu() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def pytest_sessionfinish() -> None:
    """Print the rows."""
    if _results:
        print("\n" + "\n".join(_lines()))


def _write() -> None:
    """Write ``docs/performance.md``; on a machine with a GPU, ``docs/performance_gpu.md``."""
    path = _path()
    path.write_text("\n".join(_lines()) + _notes_below(path))


def _path() -> Path:
    return _DOCS / ("performance_gpu.md" if _gpu() else "performance.md")


def _lines() -> list[str]:
    gpu = _gpu()
    machine = f"Python {platform.python_version()}, {_versions()}" + (f", on an {gpu}" if gpu else "")
    return [
        f"# Performance{' on a GPU' if gpu else ''}",
        "",
        _written_line() or f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}, {machine}.",
        "",
        "Each row runs ours and its peer in turn, round by round; the ratio is the median of the rounds' ratios, its",
        "spread their lowest and highest. Only the ratios carry over to another machine. Under 1.5x, what touches the",
        "disk shows no difference.",
        "",
        *_table(),
        "",
    ]


def _written_line() -> str:
    """Return the line on the last whole run, where this one is of some rows."""
    lines = _path().read_text().splitlines() if _of_before else []
    return next((line for line in lines if line.startswith("Written by")), "")


def _notes_below(path: Path) -> str:
    """Return what somebody has written below the table: whoever measures again looks whether it still holds."""
    if not path.exists():
        return ""
    _, _, below = path.read_text().partition(f"{_HEAD[1]}\n")
    return "".join(itertools.dropwhile(lambda line: line.startswith("|"), below.splitlines(keepends=True)))


@pytest.fixture(scope="module")
def master_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A master's home of the module's own, so that its standbys serve nobody else; it is stopped at the end."""
    home = tmp_path_factory.mktemp("home")
    os.environ["DET_HOME"] = str(home)
    yield home
    subprocess.run([sys.executable, "-m", "det_native.client.command", "down", "--kill"], check=False)
    del os.environ["DET_HOME"]


@pytest.fixture(scope="module")
def kernel(master_home: Path) -> Iterator[Kernel]:
    """A kernel whose master is the module's own."""
    with running_kernel(master_home) as running:
        yield running
