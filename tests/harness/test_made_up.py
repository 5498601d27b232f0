"""Programs that make something of the result of a training call that does not train in this run."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from det_harness.program.calls import ProgramSource
from det_harness.program.made_up import MadeUpValues
from det_harness.program.null_handle import NullHandle
from det_harness.program.past_experiment import PastExperiment
from det_harness.program.user_errors import advised, describe
from harness_bundles import call_in, cell, make_bundle
from program_parts import TRAIN, RecordingHost, install_api, run

from det_native.errors import TrialDefinitionError
from det_native.past_history import PastHistory
from det_native.schema.manifests import CallSite
from det_native.storage.blobs import BlobStore

BEST = 'a = train("first")\nbest = a.trials[0].metrics()[-1]["loss"]'


@pytest.fixture(autouse=True)
def _api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_api(tmp_path, monkeypatch)


def run_cells(tmp_path: Path, *texts: str) -> RecordingHost:
    cells = [cell(2 * index, text) for index, text in enumerate((TRAIN, *texts), 1)]
    return run(tmp_path, cells, call_in(cells))[0]


@pytest.mark.parametrize(
    ("decision", "training", "names"),
    [
        ("scale = 10.0 if best > 0.5 else 0.1", "train(scale)  # <- call", ["scale"]),
        ("if best <= 0.5:\n    scale = 1.0\nelse:\n    scale = 0.1", "train(scale)  # <- call", ["scale"]),
        ("number = float(best)", "class Second:\n    scale = number\ntrain(Second)  # <- call", ["number"]),
        ("rates = []\nfor x in a.history:\n    rates.append(int(x))", "train(rates)  # <- call", ["rates"]),
        ("import numpy as np\nlast = np.asarray(a.history)", "double = last * 2\ntrain(double)  # <- call", ["last"]),
        ("settings = {}\nsettings['big'] = a.state == 'Completed'", "train(settings)  # <- call", ["settings"]),
        ("def pick(x):\n    return 1 if x else 2\nunits = pick(best)", "train(units)  # <- call", ["units"]),
    ],
)
def test_a_training_that_depends_on_a_made_up_value_is_not_begun(
    tmp_path: Path, decision: str, training: str, names: list[str]
) -> None:
    with pytest.raises(TrialDefinitionError) as caught:
        run_cells(tmp_path, f"{BEST}\n{decision}", training)
    message = str(caught.value)
    assert "training call in cell [4], line 1, which does not train in this run" in message
    for name in names:
        assert f"depends on `{name}`" in message
        assert f'values=["{name}"]' in message


@pytest.mark.parametrize(
    ("training", "advice"),
    [
        ("train(range(best))  # <- call", "Give what you take of that result a name in a cell of its own"),
        ("train([1.0].index(a.state))  # <- call", "values=["),
        ("raise ValueError(f'{best} is no number')", "values=["),
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
    info = advised(describe(caught.value, source), caught.value, RecordingHost.environment)
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


def test_a_loop_of_experiments_whose_next_depends_on_the_last_is_not_trained(tmp_path: Path) -> None:
    loop = "rate = 0.1\nfor _ in range(3):\n    h = train(rate)  # <- call\n    rate = 1.0 if h.best > 0.5 else 2.0"
    cells = [cell(1, f"{TRAIN}\n{loop}")]
    with pytest.raises(TrialDefinitionError, match="depends on `rate`"):
        run(tmp_path, cells, call_in(cells, occurrence=2))


def test_a_configuration_may_depend_on_it_as_it_was_submitted(tmp_path: Path) -> None:
    begin = "from det_native.experimental import create as begin"
    rate = "rate = 0.1 if best > 0.5 else 0.2\nconfig = {'rate': rate}"
    handed = "train(3) if True else begin(None, config)  # <- call"
    assert run_cells(tmp_path, f"{BEST}\n{begin}\n{rate}", handed).payload == 3
    with pytest.raises(TrialDefinitionError, match="depends on `rate`"):
        run_cells(tmp_path, f"{BEST}\n{begin}\n{rate}", handed.replace("None", "rate"))


def test_what_is_made_up_within_the_training_fails_it(tmp_path: Path) -> None:
    with pytest.raises(TrialDefinitionError, match=r"line 2: the comparison of `best` is False.*does not train"):
        run_cells(tmp_path, BEST, "def training():\n    return best > 0.5\ntrain(training)  # <- call")


def test_a_function_of_a_script_is_followed_too(tmp_path: Path) -> None:
    body = "a = train('first')\n    scale = 10 if a.best > 0.5 else 1\n    train(scale)"
    script = f"{TRAIN}\ndef main():\n    {body}\nmain()\n"
    call = CallSite(kind="create", file="train.py", line=5, column=4)
    with pytest.raises(TrialDefinitionError, match=r"^train.py, line 4: .* depends on `scale`.* hyperparameter"):
        run(tmp_path, [], call, files={"train.py": script}, command=["train.py"])


def test_an_error_that_the_program_catches_does_not_hide_it(tmp_path: Path) -> None:
    decision = f"{BEST}\ntry:\n    scale = 10 if best > 0.5 else 1\nexcept Exception:\n    scale = 5"
    with pytest.raises(TrialDefinitionError, match="depends on `scale`"):
        run_cells(tmp_path, decision, "train(scale)  # <- call")


def test_what_returns_a_pair_is_unpacked_where_it_does_not_train() -> None:
    handle = NullHandle("cell [4], line 1", parts=2)
    metrics, exports = handle
    assert len(handle) == 2
    assert "cell [4], line 1" in f"{metrics['loss']} {exports[0]}"
    past = PastExperiment(3, PastHistory({}, [], {}), "cell [4], line 1", MadeUpValues.__new__(MadeUpValues), 2)
    assert len([*past]) == 2
    assert len([*NullHandle("cell [4], line 1")]) == 1
