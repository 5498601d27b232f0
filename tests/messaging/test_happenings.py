"""Which events are worth a message, and what it says."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from det_native.messaging.happenings import event_of_state, first_nan, plateau_begin
from det_native.messaging.texts import body_of, subject_of
from det_native.schema.loading import load_config
from det_native.schema.notify import EVENTS, Notify, Plateau
from det_native.schema.states import ExperimentState

VALUES = st.floats(-1e6, 1e6, allow_nan=False)
MASTER = {"host": "laptop", "address": "unix:/home/det"}


@given(st.sampled_from(ExperimentState), st.sets(st.sampled_from(EVENTS)))
def test_an_end_is_told_once_as_a_failure_or_as_an_end(state: ExperimentState, wanted: set[Any]) -> None:
    event = event_of_state(state, wanted)
    if event is not None:
        assert state.terminal
        assert event in wanted
    if state is ExperimentState.ERROR and "failure" in wanted:
        assert event == "failure"
    if state.terminal and "end" in wanted:
        assert event is not None


@given(st.lists(VALUES, min_size=1), st.integers(1, 10), st.booleans())
def test_a_plateau_lasts_while_the_last_values_are_no_better(values: list[float], count: int, smaller: bool) -> None:
    rows = [(10 * (number + 1), value) for number, value in enumerate(values)]
    found = plateau_begin(rows, Plateau(validations=count), smaller)
    best = (min if smaller else max)(values)
    since = len(values) - 1 - values.index(best)
    assert (found is not None) == (since >= count)
    if found is not None:
        assert found == (10 * (values.index(best) + 1), best)
    # The same by batches, where a validation comes every ten.
    assert plateau_begin(rows, Plateau(batches=10 * count), smaller) == found
    assert plateau_begin(rows, Plateau(epochs=count), smaller, 10) == found


@given(st.lists(VALUES, min_size=2), st.floats(0, 100))
def test_a_larger_delta_finds_every_plateau_of_a_smaller_one(values: list[float], delta: float) -> None:
    rows = list(enumerate(values, 1))
    if plateau_begin(rows, Plateau(validations=1), True) is not None:
        assert plateau_begin(rows, Plateau(validations=1, min_delta=delta), True) is not None


def test_a_value_that_is_not_a_number_is_no_better() -> None:
    rows = [(1, 0.5), (2, math.nan), (3, math.inf), (4, math.nan)]
    assert plateau_begin(rows, Plateau(validations=3), True) == (1, 0.5)
    assert plateau_begin([(1, math.nan)], Plateau(validations=1), True) is None


def test_a_metric_that_is_not_a_number_is_found_by_name() -> None:
    assert first_nan({"loss": 0.5, "note": "cat"}) is None
    assert first_nan({"loss": 0.5, "accuracy": "NaN"}) == "accuracy"
    assert first_nan({"loss": math.nan, "size": "Infinity"}) == "loss"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"on": ["finish"], "email": "a@b.org"}, "'end', 'failure', 'nan', 'plateau' or 'best'"),
        ({}, "needs one of webhook, email and desktop"),
        ({"on": ["plateau"], "email": "a@b.org"}, "plateau: for example"),
        ({"webhook": "ftp://example.org/x"}, "http or https"),
        ({"webhook": "example.org/x"}, "http or https"),
        ({"webhook": "http://169.254.169.254/latest"}, "gives out credentials"),
        ({"webhook": "http://[fe80::1]/x"}, "link-local"),
        ({"webhook": "http://[::ffff:169.254.1.1]/x"}, "link-local"),
        ({"webhook": "http://[64:ff9b::a9fe:a9fe]/x"}, "gives out credentials"),
        ({"webhook": "http://[64:ff9b:1::169.254.169.254]/x"}, "gives out credentials"),
        ({"webhook": "http://[2002:a9fe:a9fe::1]/x"}, "gives out credentials"),
        ({"webhook": "http://[2001:0:4136:e378:8000:63bf:5601:5601]/x"}, "gives out credentials"),
        ({"webhook": "http://[::169.254.1.1]/x"}, "link-local"),
        ({"webhook": "http://metadata.google.internal/x"}, "gives out credentials"),
        ({"webhook": "http://0.0.0.0/x"}, "no single machine"),
        ({"email": "nobody"}, "must be an e-mail address"),
        ({"email": "a@b.org\nBcc: c@d.org"}, "must be an e-mail address"),
        ({"email": "a@b.org", "secret": "x"}, "no webhook"),
        ({"on": ["plateau"], "email": "a@b.org", "plateau": {"epochs": 1, "batches": 1}}, "needs one of batches"),
    ],
)
def test_an_entry_that_is_wrong_is_refused_with_what_is_wrong(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said.replace("(", r"\(")):
        Notify.model_validate(entry)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080/x",
        "http://192.168.1.5/x",
        "http://[::1]/x",
        "http://[64:ff9b::c0a8:105]/x",
        "https://hooks.slack.com/T/B/x",
    ],
)
def test_a_laptops_own_server_may_be_told(url: str) -> None:
    assert Notify.model_validate({"webhook": url}).webhook == url
    assert url not in repr(Notify.model_validate({"webhook": url}))


def experiment(**changes: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "name": "digits",
        "state": "COMPLETED",
        "metric": "loss",
        "best_validation": 0.25,
        "error": None,
    } | changes


def test_messages_say_what_happened_in_a_sentence() -> None:
    def text(event: Any, shown: dict[str, Any], **more: Any) -> str:
        return str(body_of(event, shown, time="t", master=MASTER, **more)["text"])

    trial = {"id": 30, "number": 2, "state": "ERROR", "error": {"type": "ValueError", "message": "bad\nshape"}}
    assert text("end", experiment()) == "Experiment 7 (digits) has completed, best loss 0.25."
    assert text("end", experiment(state="CANCELED", best_validation=None)) == "Experiment 7 (digits) was stopped."
    failed = text("failure", experiment(state="ERROR"), trial=trial)
    assert failed == "Experiment 7 (digits), trial 2, has failed: ValueError: bad shape"
    metric = {"name": "loss", "value": 0.125, "batch": 40}
    assert text("nan", experiment(), trial=trial, metric=metric).endswith("not a number: loss, at batch 40.")
    assert text("best", experiment(), metric=metric) == "Experiment 7 (digits) has a new best loss = 0.125."
    assert text("plateau", experiment(), metric=metric).endswith("since batch 40: loss = 0.125.")


@given(st.text())
def test_the_subject_of_a_mail_is_one_line(name: str) -> None:
    subject = subject_of(body_of("end", experiment(name=name), time="t", master=MASTER))
    assert len(subject.splitlines()) == 1
    assert len(subject) < 200


def test_on_of_yaml_is_text_whoever_reads_it() -> None:
    text = """
        searcher: {metric: loss, max_length: {batches: 10}}
        hyperparameters: {global_batch_size: 4}
        notify: [{on: [end], email: a@b.org}]
    """
    assert load_config(text).notify[0].on == ["end"]
    assert load_config(yaml.safe_load(text)).notify[0].on == ["end"]
