"""What is kept of a local run that failed: where in the user's code it was, and at which batch."""

from __future__ import annotations

from contextlib import contextmanager
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from det_native.errors import TrialDefinitionError
from det_native.experimental.local import failures
from det_native.experimental.local.failures import describe
from det_native.storage.room import lacks_room


def _of_users() -> None:
    raise ValueError("bad shape")


def _raised(function: Any, *arguments: Any) -> BaseException:
    with pytest.raises(BaseException) as caught:
        function(*arguments)
    return caught.value


class _Raises:
    """What a function of the package looks at, which raises in its midst."""

    def __getattribute__(self, name: str) -> Any:
        _of_users()


def test_frames_of_the_package_are_left_out() -> None:
    info = describe(_raised(lacks_room, _Raises()), batch=7)
    assert "room.py" not in info.traceback
    assert info.traceback.endswith("ValueError: bad shape\n")
    assert (info.type, info.message, info.batch, info.cell) == ("ValueError", "bad shape", 7, None)


def test_an_error_of_ours_without_a_line_of_the_user_is_its_message() -> None:
    error = TrialDefinitionError("searcher.metric is 'a'.")
    error.__context__ = ValueError("not to be shown")
    info = describe(error)
    assert (info.message, info.traceback) == ("searcher.metric is 'a'.", "")


def test_cells_are_named_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = compile("def evaluate(x):\n    return int(x)\n\n\nevaluate('no')", "/tmp/ipykernel_1/22.py", "exec")
    log = SimpleNamespace(owner_of=lambda file: SimpleNamespace(number=3) if file.endswith("22.py") else None)
    monkeypatch.setattr(failures, "current_log", lambda: log)
    info = describe(_raised(exec, cell, {}))
    assert (info.cell, info.line) == (3, 2)
    assert "  Cell [3], line 2, in evaluate\n" in info.traceback
    assert "ipykernel" not in info.traceback


def test_what_with_statements_of_ours_go_through_is_left_out() -> None:
    @contextmanager
    def entered() -> Any:
        _of_users()
        yield

    def goes() -> None:
        with entered_here():  # type: ignore[name-defined] # noqa: F821
            pass

    ours = FunctionType(goes.__code__, {"entered_here": entered, "__name__": "det_native.somewhere"})
    traceback = describe(_raised(ours)).traceback
    assert "contextlib" not in traceback
    assert "in _of_users" in traceback
