"""What is saved of a search says why its trials failed, as the live view does."""

from __future__ import annotations

import re

from made_experiments import make_experiment, source_of

from det_native.client.handles import Experiment
from det_native.display.failures import MAX_FAILURES, Failure, failures_of, headlines
from det_native.display.fallback import last_state
from det_native.schema.rest import UserErrorInfo
from det_native.schema.states import ExperimentState, TrialState


def failure(message: str, **place: object) -> UserErrorInfo:
    return UserErrorInfo(type="ValueError", message=message, traceback=f"Traceback of {message}").model_copy(
        update=place
    )


def search(*errors: UserErrorInfo | None) -> Experiment:
    """Write a search that goes on without the trials that have an error."""
    experiment = make_experiment(name="search", trials=len(errors))
    store = source_of(experiment)
    for trial, error in zip(store.trials(), errors, strict=True):
        if error is not None:
            store.write_trial(trial.model_copy(update={"state": TrialState.ERROR, "error": error}))
    failed = sum(error is not None for error in errors)
    store.write(failed_trials=failed)
    return experiment


def test_a_trial_that_diverged_is_one_line_and_a_warning_no_failure() -> None:
    error = UserErrorInfo(type="DivergedError", message="The loss became NaN. Be slower.", traceback="", batch=7)
    experiment = search(None, error, error.model_copy(update={"batch": 9}))
    store = source_of(experiment)
    store.write_trial(store.trials()[0].model_copy(update={"warning": "The loss became NaN at batch 4."}))
    text = experiment._repr_mimebundle_()["text/plain"]
    first = "Trial 2 failed at batch 7; so did trial 3: DivergedError: The loss became NaN. Be slower."
    assert text.endswith(f"\n{first}\nTrial 1: The loss became NaN at batch 4.")
    assert "<pre" not in experiment._repr_mimebundle_()["text/html"]


def test_a_search_says_which_trials_failed_where_and_why() -> None:
    bad = failure("bad <shape>", batch=30, cell=4, line=2)
    experiment = search(None, bad, failure("other"), bad, bad)
    first = "Trial 2 failed at batch 30, in cell [4], line 2; so did trials 4 and 5: ValueError: bad <shape>"
    second = "Trial 3 failed before its first batch: ValueError: other"
    for bundle in (experiment._repr_mimebundle_(), last_state(experiment)):
        html = bundle["text/html"]
        assert first.replace("<shape>", "&lt;shape&gt;") in html
        assert second in html
        assert re.findall(r"<pre[^>]*>(.*?)</pre>", html) == ["Traceback of bad &lt;shape&gt;"]
    text = experiment._repr_mimebundle_()["text/plain"]
    assert text.endswith(f"\n{first}\nTraceback of bad <shape>\n{second}")
    line = last_state(experiment)["text/plain"]
    assert line.endswith(f", {first[0].lower()}{first[1:]}")
    assert "\n" not in line


def test_trials_that_refused_their_hyperparameters_have_not_failed() -> None:
    experiment = search(None, failure("too big", type="InvalidHP"))
    store = source_of(experiment)
    refused = store.trials()[1].model_copy(update={"state": TrialState.CANCELED})
    assert failures_of([store.trials()[0], refused]) == []
    ended = store.experiment().model_copy(update={"state": ExperimentState.ERROR, "error": refused.error})
    [told] = failures_of([refused], ended)
    assert told.headline == "The experiment failed before its first batch: InvalidHP: too big"


def test_long_messages_and_many_failures_are_cut() -> None:
    experiment = search(*(failure(f"{number} " + "x" * 900) for number in range(MAX_FAILURES + 3)))
    lines = headlines(failures_of(experiment.source.trials(experiment.id)))
    assert len(lines) == MAX_FAILURES + 1
    assert lines[-1] == "... and 3 more failures"
    assert all(line.endswith("x…") and len(line) < 300 for line in lines[:-1])


def test_what_was_tried_again_with_success_is_no_failure() -> None:
    done = source_of(search(failure("bad"))).trials()[0].model_copy(update={"restarts": 1})
    assert not failures_of([done.model_copy(update={"state": TrialState.COMPLETED})])
    (again,) = failures_of([done.model_copy(update={"state": TrialState.RUNNING})])
    assert "; it is tried again: ValueError: bad" in again.headline


def test_why_an_experiment_failed_is_said_once() -> None:
    store = source_of(search(failure("bad")))
    trials, detail = store.trials(), store.experiment()
    assert len(failures_of(trials, detail.model_copy(update={"error": failure("bad")}))) == 1
    away = detail.model_copy(update={"error": failure("away"), "state": ExperimentState.ERROR})
    assert failures_of(trials, away)[1].headline.startswith("The experiment failed before its first batch")


def test_what_was_stopped_with_its_kernel_has_not_failed() -> None:
    detail = search(failure("bad")).detail()
    reason = UserErrorInfo(type="Stopped", message="its kernel was restarted.", traceback="")
    stopped = detail.model_copy(update={"error": reason, "state": ExperimentState.CANCELED})
    assert failures_of([], stopped) == [Failure("Stopped: its kernel was restarted.", "")]


def test_the_best_trial_of_a_search_is_marked() -> None:
    bundle = make_experiment(trials=3)._repr_mimebundle_()
    assert "trial 3 (best): Completed" in bundle["text/plain"]
    (bold,) = (row for row in bundle["text/html"].split("<tr>") if "font-weight:bold" in row)
    assert ">3 (best)<" in bold
    assert bundle["text/plain"].count("(best)") == 1
