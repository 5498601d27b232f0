"""What a saved notebook keeps of a live view: one line, HTML and a picture, whatever names and messages say."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from made_experiments import make_experiment, source_of

from det_native.client.handles import Experiment
from det_native.display.fallback import last_state, reduced_curves
from det_native.schema import rest
from det_native.schema.rest import UserErrorInfo
from det_native.schema.states import ExperimentState, MetricKind, TrialState

PNG = b"\x89PNG\r\n\x1a\n"
AS_OF = re.compile(r"as of \d{4}-\d\d-\d\d \d\d:\d\d")


@contextmanager
def going_on(experiment: Experiment, **changes: object) -> Iterator[Experiment]:
    """Have an experiment and its trials be such that they go on."""
    store = source_of(experiment)
    store.write(**{"state": ExperimentState.ACTIVE, "progress": 0.25, "ended": None, **changes})
    for trial in store.trials():
        store.write_trial(trial.model_copy(update={"state": TrialState.RUNNING, "batches": 1}))
    yield experiment


def test_what_has_ended_is_said_without_a_time() -> None:
    bundle = last_state(make_experiment(name="digits"))
    assert bundle["text/plain"] == "Experiment 1: digits: completed, best val_loss 1"
    assert base64.b64decode(bundle["image/png"]).startswith(PNG)
    assert bundle["image/png"] in bundle["text/html"]
    assert not AS_OF.search(bundle["text/html"])


def test_what_goes_on_is_said_with_the_time() -> None:
    with going_on(make_experiment(name="digits"), seconds_left=75.0) as experiment:
        trial = experiment.trials[0]
        for handle, words in ((experiment, "running, 25% done, about 1 min left"), (trial, "running, 1/4 batches")):
            bundle = last_state(handle)
            assert words in bundle["text/plain"]
            assert AS_OF.search(bundle["text/plain"])
            assert AS_OF.search(bundle["text/html"])
            assert "\n" not in bundle["text/plain"]


def test_a_search_is_one_line_with_a_picture_of_all_trials() -> None:
    bundle = last_state(make_experiment(name="search", trials=3))
    assert "3 trials" in bundle["text/plain"]
    assert len(bundle["text/plain"].splitlines()) == 1
    assert base64.b64decode(bundle["image/png"]).startswith(PNG)


def test_the_first_line_is_there_without_waiting_for_a_picture() -> None:
    with going_on(make_experiment()) as experiment:
        bundle = last_state(experiment, picture=False)
    assert set(bundle) == {"text/plain", "text/html"}
    assert "<img" not in bundle["text/html"]


def test_without_metrics_there_is_a_line_and_no_picture() -> None:
    experiment = make_experiment(rows=0, metric="nothing")
    source_of(experiment).write_rows(1, "validation", [])
    assert set(last_state(experiment)) == {"text/plain", "text/html"}


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "a\nb"])
def test_a_failure_names_cell_and_message_as_text(name: str) -> None:
    error = UserErrorInfo(type="ValueError", message=f"{name}\nmore", traceback=f"Traceback\n{name}", cell=3)
    experiment = make_experiment(name=name, error=error)
    bundle = last_state(experiment)
    assert "ValueError in cell [3]" in bundle["text/plain"]
    assert len(bundle["text/plain"].splitlines()) == 1
    for html in (bundle["text/html"], last_state(experiment.trials[0])["text/html"]):
        assert "<script" not in html
        assert not re.search(r"<img(?! alt=\"training curves\" src=\"data:image/png)", html)


def test_a_picture_of_many_points_is_small() -> None:
    bundle = last_state(make_experiment(rows=6_000))
    assert len(base64.b64decode(bundle["image/png"])) < 100_000


def test_a_peak_of_a_stretch_is_in_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = make_experiment()
    low, mean, high = [1.0, 1.0], [1.0, 2.0], [1.0, 900.0]
    facts = {"trial_id": 1, "kind": MetricKind.TRAINING, "name": "loss", "batch": [50, 150]}
    curve = rest.MetricCurve(**facts, minimum=low, maximum=high, mean=mean)
    monkeypatch.setattr(source_of(experiment), "curves", lambda *_: [curve])
    [line] = reduced_curves(experiment).lines
    assert (min(line.values), max(line.values)) == (1.0, 900.0)
