"""What is said of a file that the code missed on its worker, or found there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from det_native.client import waiting
from det_native.client.source import Source
from det_native.client.travel_hints import travel_hint
from det_native.errors import NotFoundError, UserCodeError
from det_native.schema import rest
from det_native.schema.states import ExperimentState


def missing(path: str, kind: str = "FileNotFoundError") -> rest.UserErrorInfo:
    message = f"[Errno 2] No such file or directory: {path!r}"
    return rest.UserErrorInfo(type=kind, message=message, traceback=f"  cell [3], line 2\n{kind}: {message}", cell=3)


def source_of(*sent: str, in_kernel: bool = False) -> Any:
    source = Mock(spec=Source)
    source.experiment.return_value = Mock(in_kernel=in_kernel)
    source.bundle.return_value = Mock(files=[Mock(path=path) for path in sent])
    return source


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_that_exists_here_and_was_not_sent_is_named_with_the_way_to_send_it(folder: Path) -> None:
    assert travel_hint(source_of("data/b.csv"), 1, missing("data/a.csv")) == (
        f"\n'data/a.csv' exists here, in {folder}, but was not sent with the experiment: "
        "init(..., include=['data/a.csv']) sends it, or a context_dir that holds it."
    )


def test_nothing_is_said_of_other_files_and_errors(folder: Path) -> None:
    assert travel_hint(source_of("data/a.csv"), 1, missing("data/a.csv")) == ""
    assert travel_hint(source_of(), 1, missing("data/none.csv")) == ""
    assert travel_hint(source_of(), 1, missing(str(folder / "data" / "a.csv"))) == ""
    assert travel_hint(source_of(), 1, missing("data/a.csv", "OSError")) == ""
    assert travel_hint(source_of(in_kernel=True), 1, missing("data/a.csv")) == ""
    unknown = source_of()
    unknown.bundle.side_effect = NotFoundError("no such bundle")
    assert travel_hint(unknown, 1, missing("data/a.csv")) == ""


def exists(path: str) -> rest.UserErrorInfo:
    message = f"[Errno 17] File exists: {path!r}"
    return rest.UserErrorInfo(type="FileExistsError", message=message, traceback=message, cell=3)


def test_what_was_sent_and_is_made_again_is_said_to_be_there() -> None:
    sent = source_of("data/a.csv")
    assert travel_hint(sent, 1, exists("data")) == (
        "\n'data' was sent with the experiment, so it is there before any cell runs: "
        "os.makedirs('data', exist_ok=True) takes it as it is."
    )
    assert travel_hint(sent, 1, exists("data/a.csv")).endswith("let the code look first.")
    assert travel_hint(source_of("other.csv"), 1, exists("data")) == "", "the code has made it twice"


def test_the_failure_that_is_raised_says_so() -> None:
    detail = Mock(state=ExperimentState.ERROR, error=missing("data/a.csv"))
    with pytest.raises(UserCodeError, match=r"include=\['data/a.csv'\]"):
        waiting.raise_failure(source_of(), 1, detail)
    with pytest.raises(UserCodeError, match=r"the traceback is above\)$"):
        waiting.raise_failure(source_of(), 1, detail, {detail.error.traceback})


def test_the_error_that_is_shown_while_waiting_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class OneEvent:
        def __init__(self, *given: object) -> None:
            pass

        def __enter__(self) -> OneEvent:
            return self

        def __exit__(self, *error: object) -> None:
            pass

    def until(*given: object) -> Iterator[rest.Event]:
        data = missing("data/a.csv").model_dump(mode="json")
        for number in (1, 2):
            yield rest.Event(id=number, type="error", experiment_id=1, trial_id=1, data=data)

    class Progress:
        ended, fraction, text = False, 0.0, ""

        def __init__(self, *given: object) -> None:
            pass

        def update_trials(self, trials: object) -> None:
            pass

        def new_warnings(self) -> list[str]:
            return []

        def number_of(self, trial_id: int | None) -> int | None:
            return trial_id

        def apply(self, event: rest.Event) -> rest.UserErrorInfo:
            return rest.UserErrorInfo.model_validate(event.data)

    monkeypatch.setattr(waiting, "EventFeed", OneEvent)
    monkeypatch.setattr(waiting, "ExperimentProgress", Progress)
    monkeypatch.setattr(waiting, "_until", until)
    view = Mock()
    waiting.wait(source_of(), 1, view)
    first, second = (call.args[0] for call in view.message.call_args_list)
    assert first.endswith("init(..., include=['data/a.csv']) sends it, or a context_dir that holds it.")
    assert second.endswith("in the same way.")
