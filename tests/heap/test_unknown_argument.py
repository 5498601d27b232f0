"""What is said of an argument that a library's function does not take."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch

from det_native.heap.unknown_argument import argument_advice


def advice(source: str, **names: Any) -> str | None:
    """Run code as a notebook's, and return what is said of its error."""
    linecache.cache["/a/cell"] = (len(source), None, source.splitlines(keepends=True), "/a/cell")
    try:
        exec(compile(source, "/a/cell", "exec"), {"__name__": "__main__", "torch": torch, **names})  # noqa: S102
    except Exception as error:  # noqa: BLE001 (whatever it raises)
        return argument_advice(error)
    raise AssertionError("no error")


PLATEAU = (
    f"ReduceLROnPlateau() of torch {torch.__version__} does not take verbose, which other versions may: leave it out, "
    "or use what it takes (optimizer, mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps)."
)


@pytest.mark.parametrize(
    "source",
    [
        "torch.optim.lr_scheduler.ReduceLROnPlateau(None, verbose=True)",
        "from torch.optim.lr_scheduler import ReduceLROnPlateau as P\nx = [P(None,\n  verbose=True)]",
        "import torch.optim as o\ndef f(kind): return kind(None, verbose=1)\n'é', f(o.lr_scheduler.ReduceLROnPlateau)",
    ],
)
def test_what_a_library_has_removed_is_named_with_what_it_takes(source: str) -> None:
    assert advice(source) == PLATEAU


def test_a_long_list_is_cut_and_a_method_is_found_by_its_object() -> None:
    said = advice("frame.to_csv('x', line_terminator='')", frame=pytest.importorskip("pandas").DataFrame())
    assert said is not None
    assert "to_csv() of pandas" in said
    assert said.endswith(", ...).")


@pytest.mark.parametrize(
    "source",
    [
        "def own(a): pass\nown(b=1)",
        "class Own:\n  def __init__(self): pass\nOwn(b=1)",
        "raise TypeError('f() got an unexpected keyword argument \\'b\\'')",
        "torch.nn.Linear(1)",
        "class Loud:\n  def __getattr__(self, name): raise SystemExit\n  def go(self): pass\nLoud().go(b=1)",
    ],
)
def test_nothing_is_said_of_other_errors(source: str) -> None:
    assert advice(source) is None


def test_an_error_within_a_library_is_not_the_users() -> None:
    call: Callable[[], None] = lambda: torch.nn.Linear(1, 1, what=2)  # type: ignore[call-arg]  # noqa: E731
    with pytest.raises(TypeError) as caught:
        call()
    assert argument_advice(caught.value) is not None
    call.__globals__["__name__"], before = "torch.nn", call.__globals__["__name__"]
    try:
        assert argument_advice(caught.value) is None
    finally:
        call.__globals__["__name__"] = before
