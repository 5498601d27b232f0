"""The words of the report under a cell, and of states: the same as the front end's."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from made_experiments import make_experiment, source_of

from det_native.capture.bundle_rows import rows_of
from det_native.client.short_forms import format_value, whole_percent
from det_native.display.fallback import last_state
from det_native.display.report import ReportView, ShownReport
from det_native.display.text import experiment_line, title_of, trial_state
from det_native.schema.manifests import Cell, Program
from det_native.schema.rest import CaptureRow
from det_native.schema.states import ExperimentState, TrialState

FORMAT_TESTS = Path(__file__).parents[2] / "jupyter_ext" / "tests" / "shared" / "format.test.ts"
if TYPE_CHECKING:
    from det_native.capture.model import Capture

TEXTS = Path(__file__).parents[2] / "jupyter_ext" / "src" / "shared" / "texts.ts"


def row(how: str, status: str) -> CaptureRow:
    return CaptureRow(what=f"what is {how}", how=how, size=0, cell="1", status=status, note="")


def test_a_cell_that_runs_again_is_not_called_new() -> None:
    rows = [row("runs again", "new"), row("source", "new"), row("left out", "not sent")]
    for sent, status in ((True, "new"), (False, "to send")):
        _, _, again, source, left = str(ReportView(rows, sent=sent)).splitlines()
        assert again.split("  ")[-1].strip() == "1", "nothing after its cell"
        assert status not in again
        assert source.endswith(status)
        assert left.endswith("not sent")


def test_the_table_as_text_is_no_wider_than_a_page() -> None:
    cells = tuple(Cell(number=number, cell_id=f"cell {number % 26}", source="x") for number in [*range(1, 28), 30])
    program = Program(kind="cells", framework="torch", cells=cells)
    [of_program] = rows_of(cast("Capture", SimpleNamespace(program=program, values=(), requirements=())), [], [], [])
    assert (of_program.what, of_program.cell, of_program.note) == ("26 cells", "[1]-[27], [30]", "that ran 28 times")
    note = "ran before the call; " * 12
    rows = [of_program, *(CaptureRow(what=f"cell {n}", how="runs again", size=0, cell=f"{n}", note=note) for n in "ab")]
    lines = str(ReportView(rows)).splitlines()
    assert max(map(len, lines)) <= 100
    assert "".join(lines).replace(" ", "").count("ranbeforethecall") == 24


def test_in_a_notebook_it_is_one_line_that_unfolds_and_warnings_stay_visible() -> None:
    rows = [row("source", "new").model_copy(update={"size": 48_000}), row("left out", "not sent")]
    report = ReportView(rows, ["Look <here>."], contents="5 of 9 cells, 2 files", said="Asking ...")
    html = report._repr_mimebundle_()["text/html"]
    folded, _, below = html.partition("</details>")
    assert "<details><summary" in folded, "folded at first"
    assert re.search(r"Sent 5 of 9 cells, 2 files, 48 kB: <span[^>]*>details</span> <span[^>]*>Asking", folded)
    assert "what is left out" in folded
    assert "Look &lt;here&gt;." in below
    assert report._repr_mimebundle_()["text/plain"].startswith("Sent 5 of 9 cells, 2 files, 48 kB\nAsking ...\n")
    assert ReportView(rows, sent=False, contents="1 cell").headline == "Sending 1 cell, 48 kB"
    assert ReportView(rows, contents="1 cell", failed=True).headline == "Not sent: 1 cell, 48 kB"


def test_elsewhere_than_in_a_notebook_each_word_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownReport([row("source", "new")], [], "1 of 2 cells")
    capsys.readouterr()
    shown.say("Sending ...")
    shown.say("It is submitted.")
    assert capsys.readouterr().out == "Sending ...\nIt is submitted.\n"


@pytest.mark.parametrize(
    ("name", "states"),
    [("EXPERIMENT_TEXTS", set(ExperimentState)), ("TRIAL_TEXTS", set(TrialState))],
)
def test_states_have_the_words_of_the_front_end(name: str, states: set[ExperimentState] | set[TrialState]) -> None:
    table = re.search(rf"const {name}.*?= \{{\n(.*?)\n\}};", TEXTS.read_text(encoding="utf-8"), re.DOTALL)
    assert table is not None
    theirs = dict(re.findall(r"(\w+): \{\s*word: '(\w+)'", table[1]))
    assert theirs == {state.name: state.value for state in states}


def test_a_name_moves_no_cursor() -> None:
    assert title_of(7, "\x1b[2Jred\x1b[31m\r\nnew") == "Experiment 7: [2Jred[31mnew"
    assert title_of(7, "\x1b") == "Experiment 7"


def test_a_search_of_which_trials_failed_says_so() -> None:
    detail = make_experiment(name="search", trials=3).detail()
    assert ": completed, 3 trials" in experiment_line(1, detail)
    failed = detail.model_copy(update={"trials": 8, "failed_trials": 2})
    assert ": completed, 2 of 8 trials failed, best" in experiment_line(1, failed)


def test_what_has_no_slots_yet_is_queued() -> None:
    detail = make_experiment().detail()
    for started, word in ((None, "queued"), ("2026-11-20T12:00:00Z", "running")):
        active = detail.model_copy(update={"state": ExperimentState.ACTIVE, "started": started})
        assert f": {word}, " in experiment_line(1, active)


def test_a_trial_of_a_paused_experiment_is_not_said_to_wait_for_slots() -> None:
    experiment = make_experiment(trials=2)
    store = source_of(experiment)
    store.write(state=ExperimentState.PAUSED, ended=None)
    for trial in store.trials():
        store.write_trial(trial.model_copy(update={"state": TrialState.QUEUED}))
    handle = experiment.trials[0]
    for shown, times in ((experiment, 3), (handle, 1)):
        for bundle in (shown._repr_mimebundle_(), last_state(shown, picture=False)):
            html = bundle["text/html"].partition("<img")[0]
            assert "queued" not in f"{bundle['text/plain']} {html}".lower()
            assert html.count("Paused") == times
    assert ": paused, " in str(handle)


def test_the_state_of_a_trial_tells_restarts_and_slots() -> None:
    trial = source_of(make_experiment()).trials()[0]
    assert trial_state(trial) == "Completed"
    failed = trial.model_copy(update={"state": TrialState.ERROR, "restarts": 1, "slots": ["a", "b"]})
    assert trial_state(failed) == "Failed, 1 restart"
    assert trial_state(failed.model_copy(update={"restarts": 2}), slots=True) == "Failed, on 2 slots, 2 restarts"


def test_numbers_are_written_as_in_the_front_end() -> None:
    tests = FORMAT_TESTS.read_text(encoding="utf-8")
    table = re.search(r"describe\('a value'.*?it\.each\(\[(.*?)\]\)", tests, re.DOTALL)
    assert table is not None
    found = re.findall(r"^ +\[(-?[0-9][0-9_.e-]*), '([^']+)'\]", table[1], re.MULTILINE)
    assert len(found) > 12
    for number, text in found:
        assert format_value(float(number)) == text
        assert format_value(-float(number)).lstrip("-") == text.lstrip("-")
    assert format_value(2_000_000) == "2e+6"
    assert format_value(True) == "True"


@pytest.mark.parametrize(
    ("fraction", "percent"), [(0, 0), (0.29, 29), (0.57, 57), (0.456, 45), (0.999, 99), (1, 100), (float("nan"), 0)]
)
def test_percent_are_rounded_as_in_the_front_end(fraction: float, percent: int) -> None:
    assert whole_percent(fraction) == percent
