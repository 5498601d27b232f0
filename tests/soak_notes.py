"""A pytest plugin that notes how the tests of the soak have ended which count no tries of their own."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from figures import note

# Tests of this process that note their own tries.
counting: set[str] = set()


def counts_its_tries() -> None:
    """Say that the test that runs notes its tries itself."""
    counting.add(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note a test of the soak: its call, or whatever has failed around that."""
    report = yield
    passed = report.when == "call" and report.passed and item.nodeid not in counting
    if item.get_closest_marker("soak") and (report.failed or passed):
        lost = int(report.failed)
        name = f"tests in `{item.path.relative_to(item.config.rootpath)}`"
        note(name, tries=1, survived=1 - lost, lost=lost, end="failed" * lost)
    return report
