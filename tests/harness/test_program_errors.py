"""How a program fails, what is told of it, and what its host makes of the training's end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from det_harness.program.earlier import files_on_worker
from det_harness.program.host import WorkerHost
from det_harness.program.runner import ProgramRunner
from det_harness.program.user_errors import describe
from det_harness.trial.services import Outcome
from harness_bundles import call_in, cell, make_bundle, write_files
from program_parts import TRAIN, RecordingHost, install_api

from det_native.errors import TrialDefinitionError
from det_native.runtime import hosted
from det_native.schema.manifests import Cell
from det_native.storage.blobs import BlobStore


@pytest.fixture(autouse=True)
def _api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_api(tmp_path, monkeypatch)


class FailingServices:
    """Stands for the services of a controller that is never reached."""

    recorder = None


def error_of(tmp_path: Path, cells: Sequence[Cell], **contents: Any) -> Any:
    """Run a program that fails; returns the description of the error."""
    blobs = BlobStore(str(tmp_path / "blobs"))
    bundle = make_bundle(blobs, cells, call=None, **contents)
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    write_files(work, contents.get("files") or {})
    runner = ProgramRunner(bundle, blobs.read, work)
    host = RecordingHost(runner)
    with hosted(host), pytest.raises(BaseException) as caught:
        runner.run()
    return describe(caught.value, runner.source, batch=4)


def test_an_error_shows_the_users_frames_by_cell_and_line(tmp_path: Path) -> None:
    cells = [
        cell(3, "import json\n\ndef parse(text):\n    return json.loads(text)\n"),
        cell(7, "x = 1\n\nparse('{')"),
    ]
    info = error_of(tmp_path, cells)
    assert (info.type, info.cell, info.line, info.file, info.batch) == ("JSONDecodeError", 3, 4, None, 4)
    assert "  Cell [7], line 3\n    parse('{')\n" in info.traceback
    assert "  Cell [3], line 4, in parse\n    return json.loads(text)\n" in info.traceback
    assert "frames of json]" in info.traceback
    assert "decoder.py" not in info.traceback
    assert info.traceback.splitlines()[-1].startswith("json.decoder.JSONDecodeError: Expecting")


def test_a_chained_error_tells_both_in_order(tmp_path: Path) -> None:
    info = error_of(
        tmp_path, [cell(1, "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('b') from e")]
    )
    first, second = info.traceback.split("direct cause")
    assert "ZeroDivisionError" in first
    assert second.endswith("ValueError: b")


def test_a_long_message_keeps_the_frames_its_beginning_and_its_end(tmp_path: Path) -> None:
    info = error_of(tmp_path, [cell(3, "def fail():\n    raise ValueError('begin ' + 'x' * 100_000 + ' end')\nfail()")])
    lines = info.traceback.splitlines()
    assert lines[:2] == ["Traceback (most recent call last):", "  Cell [3], line 3"]
    assert any(line.startswith("ValueError: begin xxx") for line in lines)
    assert lines[-2] == "[95022 more characters]"
    assert lines[-1].endswith("xxx end")
    assert len(info.traceback) < 20_000
    assert info.message.startswith("begin xxx")


def test_a_long_traceback_is_cut_in_its_middle(tmp_path: Path) -> None:
    deep = "def down(n):\n    if n:\n        down(n - 1)\n    raise ValueError('begin ' + 'x' * 10_000)\ndown(600)"
    info = error_of(tmp_path, [cell(3, deep)])
    lines = info.traceback.splitlines()
    assert len(info.traceback) <= 20_000
    assert lines[:3] == ["Traceback (most recent call last):", "  Cell [3], line 5", "    down(600)"]
    [cut] = [index for index, line in enumerate(lines) if line.endswith("lines left out]")]
    assert lines[cut - 1] in ("  Cell [3], line 3, in down", "    down(n - 1)")
    shown = len(lines) - 1
    assert int(lines[cut].split()[0].strip("[")) + shown == 1 + 2 * 602 + 3
    assert any(line.startswith("ValueError: begin xxx") for line in lines[cut:])
    assert "  Cell [3], line 4, in down" in lines[cut:]


def test_where_the_harness_explains_an_error_the_place_is_that_of_the_error(tmp_path: Path) -> None:
    """The innermost frame of the user's in the explanation is the call that trains."""
    reduce = (
        "from det_harness.frameworks.torch import reduction as torch_reduction\n"
        "class Wrapped:\n"
        "    name, reducer = 'accuracy', average\n"
        "torch_reduction._call(Wrapped, 'reduce', average, [])"
    )
    info = error_of(tmp_path, [cell(1, "def average(values):\n    return sum(values) / len(values)"), cell(2, reduce)])
    assert (info.type, info.cell, info.line) == ("ReducerError", 1, 2)
    assert "failed in a call to reduce(): division by zero" in info.message


def test_a_syntax_error_names_cell_and_line(tmp_path: Path) -> None:
    info = error_of(tmp_path, [cell(8, "a = 1\nb = = 2")])
    assert (info.type, info.cell, info.line) == ("SyntaxError", 8, 2)
    assert "Cell [8], line 2" in info.traceback


def test_an_error_in_a_local_module_names_its_file(tmp_path: Path) -> None:
    info = error_of(
        tmp_path, [cell(1, "import broken_part\nbroken_part.f()")], files={"broken_part.py": "def f():\n    nope\n"}
    )
    sys.modules.pop("broken_part", None)
    assert (info.file, info.line, info.cell) == ("broken_part.py", 2, None)
    assert "File broken_part.py, line 2, in f" in info.traceback


def host_for(tmp_path: Path, source: str, controller: Any) -> tuple[WorkerHost, ProgramRunner]:
    cells = [cell(2, source)]
    blobs = BlobStore(str(tmp_path / "blobs"))
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    runner = ProgramRunner(make_bundle(blobs, cells, call=call_in(cells)), blobs.read, work)

    class Host(WorkerHost):
        def _prepare(self, payload: Any) -> None:
            """Nothing is compared, and no framework draws."""

        def _controller(self, payload: Any) -> Any:
            return controller

    services: Any = FailingServices()
    files = files_on_worker({})
    return Host(RecordingHost.environment, runner.calls, services, read_blob=blobs.read, files=files), runner


class Fails:
    def run(self) -> Outcome:
        raise ZeroDivisionError("in train_batch")


class Ends:
    def run(self) -> Outcome:
        return Outcome(batches=3)


def test_a_failed_training_stays_failed_even_if_the_cell_hides_it(tmp_path: Path) -> None:
    hiding = f"{TRAIN}\ntry:\n    train()  # <- call\nexcept Exception:\n    print('hidden')"
    host, runner = host_for(tmp_path, hiding, Fails())
    with pytest.raises(ZeroDivisionError, match="in train_batch"):
        host.run(runner.run)


def test_the_outcome_of_the_controller_is_returned(tmp_path: Path) -> None:
    host, runner = host_for(tmp_path, f"{TRAIN}\ntrain()  # <- call", Ends())
    assert host.run(runner.run) == Outcome(batches=3)


def test_a_second_call_after_the_training_is_the_swallowed_stop(tmp_path: Path) -> None:
    again = (
        f"{TRAIN}\nwhile True:\n    try:\n        train()  # <- call\n    except BaseException as e:\n"
        "        if type(e).__name__ != 'ProgramStop': raise"
    )
    host, runner = host_for(tmp_path, again, Ends())
    with pytest.raises(TrialDefinitionError, match="went on after its training call"):
        host.run(runner.run)
