"""Whatever order cells ran in, running the slice alone gives the values that the call saw in the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from histories import EXAMPLES, NAMES, QUICK, history, program, run, total
from hypothesis import given, settings
from hypothesis import strategies as st
from tries import Tries, counted

from det_native.capture.execution import Execution, Facts
from det_native.capture.slicer import slice_log
from det_native.capture.steps import steps_of
from det_native.capture.wider import wider_program


@pytest.fixture(scope="module")
def slices() -> Iterator[Tries]:
    with counted("programs cut to what a call needs, values looked at") as tries:
        yield tries


@pytest.fixture(scope="module")
def wider() -> Iterator[Tries]:
    with counted("programs of all that can run again, values looked at") as tries:
        yield tries


@settings(max_examples=EXAMPLES if EXAMPLES <= QUICK else max(300, EXAMPLES))  # they are cheap
@given(drawn=program)
def test_running_the_slice_gives_the_values_of_the_kernel(slices: Tries, drawn: tuple[list[str], list[int]]) -> None:
    slices.drawn += 1
    log, live = history(*drawn)
    found = slice_log(log, len(log) - 1, 1)
    unknown = {missing.name for missing, _ in found.missing if missing.certain}
    if found.problems or found.warnings or not live.keys() >= set(NAMES):
        return
    with slices.attempt():
        assert unknown <= {"total"}
        fresh: dict[str, Any] = {"__name__": "__main__", "total": total}
        for index in sorted(found.included)[:-1]:
            assert run(log[index].sent, fresh) is None, log[index].sent
        for wanted in NAMES:
            assert repr(fresh[wanted]) == repr(live[wanted]), wanted


@settings(max_examples=EXAMPLES if EXAMPLES <= QUICK else max(300, EXAMPLES))
@given(drawn=program, staying=st.sets(st.integers(1, 10), max_size=3))
def test_running_all_that_can_run_again_gives_the_values_of_the_kernel(
    wider: Tries, drawn: tuple[list[str], list[int]], staying: set[int]
) -> None:
    wider.drawn += 1
    log, live = history(*drawn)
    calling = len(log) - 1
    found = slice_log(log, calling, 1)
    if found.problems or found.warnings or not live.keys() >= set(NAMES):
        return
    with wider.attempt():
        known = Facts(fixed=frozenset({"total"}))
        log[0] = replace(log[0], effects=log[0].effects._replace(bound=log[0].effects.bound | {"total"}))
        taken = wider_program(steps_of(log, calling, 1, known), found.included, staying - found.included.keys(), {})
        assert set(found.included) <= set(taken)
        fresh: dict[str, Any] = {"__name__": "__main__", "total": total}
        for index in taken[:-1]:
            assert run(log[index].sent, fresh) is None, log[index].sent
        # What a statement had done before it failed is not done again; names that the call needs are problems by then.
        half_done = {name for index in taken if log[index].failed for name in _touched(log[index])}
        for wanted in set(NAMES) - half_done:
            assert repr(fresh[wanted]) == repr(live[wanted]), wanted


def _touched(execution: Execution) -> frozenset[str]:
    effects = execution.effects
    return (effects.bound | effects.changed) if effects is not None else frozenset()
