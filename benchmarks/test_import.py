"""Import of det_native over a bare interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from pytest_benchmark.fixture import BenchmarkFixture


def _seconds(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def test_import(benchmark: BenchmarkFixture, figure: Callable[[str, str, str, bool], None]) -> None:
    bare: list[float] = []
    ours: list[float] = []
    benchmark.pedantic(
        lambda: ours.append(_seconds("import det_native")), setup=lambda: bare.append(_seconds("pass")), rounds=15
    )
    extra = statistics.median(ours) - statistics.median(bare)
    figure("import det_native, over a bare interpreter", f"{extra * 1e3:.1f} ms", "≤ 100 ms", extra <= 0.1)
