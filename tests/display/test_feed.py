"""What a live view is told: only what has changed, reduced, of the right trial's log."""

from __future__ import annotations

import json
import math

import pytest
from made_experiments import CREATED, MadeSource, make_experiment, source_of

from det_native.client.handles import Experiment
from det_native.display.fallback import reduced_curves
from det_native.display.feed import LOG_LINES, ViewReader, logged_trial
from det_native.schema import rest
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.states import CheckpointState, TrialState


def line(number: int, trial_id: int = 1) -> rest.LogLine:
    return rest.LogLine(id=number, trial_id=trial_id, run_id="r", time=CREATED, stream="stdout", text=f"line {number}")


class LoggingSource(MadeSource):
    """Remembers what was asked for."""

    asked_after: list[int]

    def logs(self, trial_id: int, after: int = 0) -> list[rest.LogLine]:
        self.asked_after = [*getattr(self, "asked_after", []), after]
        return super().logs(trial_id, after)


@pytest.fixture
def experiment() -> Experiment:
    return make_experiment(trials=2)


@pytest.fixture
def store(experiment: Experiment) -> MadeSource:
    return source_of(experiment)


def test_the_first_time_everything_is_told_and_then_only_changes(experiment: Experiment, store: MadeSource) -> None:
    reader = ViewReader(experiment.source, experiment.id)
    first = reader.changes()
    assert set(first) == {"experiment", "trials", "checkpoints", "curves", "logs", "system", "outputs"}
    assert first["experiment"]["name"] == "digits"
    assert [trial["id"] for trial in first["trials"]] == [1, 2]
    assert reader.changes() == {}
    assert first["system"] is None
    store.write_samples(2, [rest.SystemSample(time=5.0, metrics={"cpu_percent": 50.0})])
    sample = {"time": 5.0, "rank": 0, "metrics": {"cpu_percent": 50.0}}
    assert reader.changes() == {"system": {"trialId": 2, "samples": [sample]}}
    store.write_rows(2, "validation", [rest.MetricRow(batch=4, metrics={"val_loss": 0.125})])
    changed = reader.changes()
    assert set(changed) == {"curves"}
    assert [each["mean"] for each in changed["curves"] if (each["trial_id"], each["name"]) == (2, "val_loss")] == [
        [0.125]
    ]
    store.write(name="renamed")
    assert set(reader.changes()) == {"experiment"}
    assert reader.size > len("renamed")


def test_what_the_view_is_told_is_json_also_where_a_metric_is_no_finite_number(
    experiment: Experiment, store: MadeSource
) -> None:
    manifest = CheckpointManifest(
        uuid="00000000-0000-4000-8000-000000000001",
        run_id="r",
        bundle_id=None,
        experiment_id=None,
        trial_id=1,
        batch=4,
        framework="torch",
        framework_version="2",
        det_version="0",
        hparams={"lr": math.inf},
        created=CREATED,
    )
    metrics = {"loss": 0.5, "worst": math.nan, "parts": [1.0, -math.inf]}
    known = {"state": CheckpointState.COMPLETED, "location": "", "created": CREATED, "size": 0}
    facts = {"uuid": manifest.uuid, "trial_id": 1, "experiment_id": 1, "batch": 4, "manifest": manifest}
    store.write_checkpoints(1, [rest.Checkpoint(**known, **facts, metrics=metrics)])
    store.write_rows(1, "validation", [rest.MetricRow(batch=4, metrics={"loss": 0.5, "worst": math.nan})])
    told = ViewReader(experiment.source, experiment.id).changes()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    [checkpoint] = [each for each in told["checkpoints"] if each["uuid"] == manifest.uuid]
    assert checkpoint["metrics"] == {"loss": 0.5, "worst": "NaN", "parts": [1.0, "-Infinity"]}


def test_the_view_of_a_trial_has_nothing_of_others(experiment: Experiment) -> None:
    parts = ViewReader(experiment.source, experiment.id, trial_id=2).changes()
    assert [trial["id"] for trial in parts["trials"]] == [2]
    assert {curve["trial_id"] for curve in parts["curves"]} == {2}


def test_log_lines_are_asked_for_once_and_the_last_ones_kept(store: MadeSource) -> None:
    source = LoggingSource(store.detail)
    source.write_trial(store.trial(1))
    reader = ViewReader(source, 1, trial_id=1)
    source.lines = [line(number) for number in range(1, LOG_LINES + 11)]
    assert [each["id"] for each in reader.changes()["logs"]] == list(range(11, LOG_LINES + 11))
    source.lines.append(line(LOG_LINES + 11))
    assert reader.changes()["logs"][-1]["text"] == f"line {LOG_LINES + 11}"
    assert source.asked_after == [0, LOG_LINES + 10]


def test_the_log_is_that_of_the_trial_that_runs_else_of_one_that_failed(store: MadeSource) -> None:
    trials = store.trials()
    assert logged_trial([]) is None
    assert logged_trial(trials) == trials[-1]
    failed = trials[0].model_copy(update={"state": TrialState.ERROR})
    assert logged_trial([failed, trials[1]]) == failed
    running = trials[1].model_copy(update={"state": TrialState.RUNNING})
    assert logged_trial([running, failed]) == running

    store.lines = [line(1, trial_id=1), line(2, trial_id=2)]
    reader = ViewReader(store, 1)
    assert [each["id"] for each in reader.changes()["logs"]] == [2]
    store.write_trial(failed)
    assert [each["id"] for each in reader.changes()["logs"]] == [1], "another trial's log begins anew"


def test_not_a_number_is_a_gap_in_a_curve() -> None:
    experiment = make_experiment()
    store = source_of(experiment)
    [trial] = store.trials()
    values = [1.0, math.nan, math.inf, 1.0]
    rows = [rest.MetricRow(batch=batch, metrics={"norm": value}) for batch, value in enumerate(values, 1)]
    store.write_rows(trial.id, "training", rows)
    [drawn] = [line for line in reduced_curves(experiment).lines if line.name == "norm"]
    assert [math.isnan(value) for value in drawn.values] == [False, True, True, False]
