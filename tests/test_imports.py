"""Imports while the garbage collector waits, and what they leave behind."""

import gc
import json  # noqa: F401 (there before it is loaded)
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from det_native.imports import collector_waits, load


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    enabled = gc.isenabled()
    yield
    assert not gc.get_freeze_count()
    (gc.enable if enabled else gc.disable)()


class _Knot:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def test_nothing_is_collected_in_the_block() -> None:
    gc.enable()
    with collector_waits():
        before = _collections()
        knots = [[_Knot()] for _ in range(20_000)]
        assert not gc.isenabled()
        assert _collections() == before
    assert gc.isenabled()
    assert len(knots) == 20_000


def test_what_the_block_left_is_not_searched_at_once() -> None:
    gc.enable()
    with collector_waits():
        kept = [[_Knot()] for _ in range(20_000)]
    assert len(gc.get_objects(generation=0)) < 5_000
    assert len(gc.get_objects(generation=1)) < 5_000
    assert len(kept) == 20_000


def test_garbage_of_the_block_is_found_by_a_full_collection() -> None:
    gc.enable()
    with collector_waits():
        for _ in range(100):
            _Knot()
    assert gc.collect() >= 100


def _nested_and_wrong() -> None:
    with collector_waits():
        pass
    assert not gc.isenabled()
    raise ZeroDivisionError


def test_collector_is_back_after_an_error_and_a_nested_block_leaves_it_waiting() -> None:
    gc.enable()
    with pytest.raises(ZeroDivisionError), collector_waits():
        _nested_and_wrong()
    assert gc.isenabled()


def test_collector_that_the_user_turned_off_stays_off() -> None:
    gc.disable()
    with collector_waits():
        pass
    assert not gc.isenabled()


def test_frozen_objects_of_the_user_stay_frozen() -> None:
    gc.enable()
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collector_waits():
            pass
        assert gc.get_freeze_count() >= frozen - 100  # some of them have ended meanwhile
    finally:
        gc.unfreeze()


def test_a_module_is_loaded_while_the_collector_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "looks_at_the_collector.py").write_text("import gc\nenabled = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    gc.enable()
    try:
        assert load("looks_at_the_collector").enabled is False
    finally:
        del sys.modules["looks_at_the_collector"]


def test_a_module_that_is_there_leaves_the_collector_alone() -> None:
    gc.enable()
    before = _collections()
    young = [[_Knot()] for _ in range(100)]
    assert load("json") is sys.modules["json"]
    assert _collections() == before
    assert any(found is young for found in gc.get_objects(generation=0))
