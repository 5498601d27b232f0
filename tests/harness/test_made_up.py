"""Programs that make something of the result of a training call that does not train in this run."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from det_harness.program.calls import ProgramSource
from det_harness.program.earlier import PastExperiment
from det_harness.program.made_up import MadeUpValues
from det_harness.program.null_handle import NullHandle
from det_harness.program.user_errors import advised, describe
from harness_bundles import call_in, cell, make_bundle
from program_parts import TRAIN, RecordingHost, install_api, run

from det_native.errors import TrialDefinitionError
from det_native.past_history import PastHistory
from det_native.storage.blobs import BlobStore

BEST = 'a = train("first")\nbest = a.trials[0].metrics()[-1]["loss"]'


@pytest.fixture(autouse=True)
def _api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_api(tmp_path, monkeypatch)


def run_cells(tmp_path: Path, *texts: str, is_compared: bool = True) -> RecordingHost:
    cells = [cell(2 * index, text) for index, text in enumerate((TRAIN, *texts), 1)]
    return run(tmp_path, cells, call_in(cells), is_compared=is_compared)[0]


@pytest.mark.parametrize(
    ("training", "advice"),
    [
        ("train(range(best))  # <- call", "Give what you take of that result a name in a cell of its own"),
        ("train([1.0].index(a.state))  # <- call", "values=["),
        ("raise ValueError(f'{best} is no number')", "values=["),
        ("import textwrap\ntextwrap.dedent('x', width=3)", "or use what it takes (text)."),
        ("raise ValueError('other')", None),
    ],
)
def test_an_error_that_a_result_of_another_call_has_caused_says_how_to_send_its_value(
    tmp_path: Path, training: str, advice: str | None
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        run_cells(tmp_path, BEST, f"{training}\ntrain()  # <- call")
    cells = [cell(2 * index, text) for index, text in enumerate((TRAIN, BEST, training), 1)]
    source = ProgramSource(make_bundle(BlobStore(str(tmp_path / "blobs")), cells).program, tmp_path / "work")
    info = advised(describe(caught.value, source), caught.value, RecordingHost.environment, source)
    assert info.message.startswith(str(caught.value).rstrip("."))
    assert advice in info.message if advice else "values=" not in info.message


@pytest.mark.parametrize(
    "use",
    [
        "if best > 0.5:\n    print('good')",
        "print(max(1.0, best))",
        "good = best > 0.5\nprint(good)",
        "scale = 2 if best > 0.5 else 1\nscale = 3",
        "while a.state != 'Completed':\n    break",
        "settings = {}; settings['big'] = a.state == 'Completed'",
    ],
)
def test_what_the_training_does_not_depend_on_is_told_once(
    tmp_path: Path, use: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "det_harness"):
        host = run_cells(
            tmp_path,
            f"for again in range(2):\n    {BEST.replace(chr(10), chr(10) + '    ')}\n{use}\nscale = 3",
            "train(scale)  # <- call",
        )
    assert host.payload == 3
    [record] = caplog.records
    assert record.getMessage().startswith("Cell [4], line 4: ")
    assert "training call in cell [4], line 2" in record.getMessage()


@pytest.mark.parametrize(
    "use",
    [
        "print(a, f'{best:.3f}', best)",
        "chain = a.top_checkpoint().metrics['x'] * 2 - 1\nfor row in a.trials: print(row)",
        "if a is not None and a: print('there')",
        "import numpy as np\nprint(np.mean(a.history['loss']))",
    ],
)
def test_showing_a_result_is_nothing_to_tell(tmp_path: Path, use: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "det_harness"):
        host = run_cells(tmp_path, f"{BEST}\n{use}", "train(3)  # <- call")
    assert host.payload == 3
    assert not caplog.records


def test_what_is_made_up_within_the_training_fails_it(tmp_path: Path) -> None:
    with pytest.raises(TrialDefinitionError, match=r"line 2: the comparison of `best` is False.*does not train"):
        run_cells(tmp_path, BEST, "def training():\n    return best > 0.5\ntrain(training)  # <- call")


@pytest.mark.parametrize(
    "use",
    [
        "scale = 2 if best > 0.5 else 1",
        "try:\n    scale = int(best)\nexcept Exception:\n    scale = 1",
        "scale = len(best)",
        "scale = [1 for each in best]",
        "scale = f'{best:.3f}'",
        "scale = str(best)",
        "scale = isinstance(best, float)",
        "import copy\nscale = copy.deepcopy(best)",
        "scales = []\nscales.append(len(best))",
    ],
)
def test_where_nothing_is_compared_a_made_up_value_is_an_error(tmp_path: Path, use: str) -> None:
    with pytest.raises(TrialDefinitionError, match=r"line \d: the .* of `best` is .*does not train"):
        run_cells(tmp_path, f"{BEST}\nprint(best)\n{use}", "train(scale)  # <- call", is_compared=False)


def test_what_returns_a_pair_is_unpacked_where_it_does_not_train() -> None:
    handle = NullHandle("cell [4], line 1", parts=2)
    metrics, exports = handle
    assert len(handle) == 2
    assert "cell [4], line 1" in f"{metrics['loss']} {exports[0]}"
    past = PastExperiment(3, PastHistory({}, [], {}), "cell [4], line 1", MadeUpValues.__new__(MadeUpValues), 2)
    assert len([*past]) == 2
    assert len([*NullHandle("cell [4], line 1")]) == 1
