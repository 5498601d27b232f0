"""What a live view is told: only what has changed, reduced, of the right trial's log."""

from __future__ import annotations

import json
import math

import pytest
from det_native.local.curves import BUCKETS, reduce_curve
from hypothesis import example, given
from hypothesis import strategies as st
from local_experiments import write_experiment

from det_native.client.handles import Experiment
from det_native.client.local_source import LocalSource
from det_native.display.fallback import reduced_curves
from det_native.display.feed import LOG_LINES, MAX_TRIALS, ViewReader, logged_trial, read_curves
from det_native.local.store import LocalStore, checkpoint_row, now, trial_row
from det_native.schema import rest
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.states import MetricKind, TrialState


def line(number: int, trial_id: int = 1) -> rest.LogLine:
    return rest.LogLine(id=number, trial_id=trial_id, run_id="r", time=now(), stream="stdout", text=f"line {number}")


class LoggingSource(LocalSource):
    """A local experiment that has a log, as those of a master have; remembers what was asked for."""

    def __init__(self, store: LocalStore) -> None:
        super().__init__(store)
        self.lines: list[rest.LogLine] = []
        self.asked_after: list[int] = []

    def logs(self, trial_id: int, after: int = 0) -> list[rest.LogLine]:
        self.asked_after.append(after)
        return [each for each in self.lines if each.trial_id == trial_id and each.id > after]


@pytest.fixture
def experiment() -> Experiment:
    return write_experiment(trials=2)


@pytest.fixture
def store(experiment: Experiment) -> LocalStore:
    return LocalStore.find(str(experiment.id))


def test_the_first_time_everything_is_told_and_then_only_changes(experiment: Experiment, store: LocalStore) -> None:
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
    store.write_experiment(store.experiment().model_copy(update={"name": "renamed"}))
    assert set(reader.changes()) == {"experiment"}
    assert reader.size > len("renamed")


def test_what_the_view_is_told_is_json_also_where_a_metric_is_no_finite_number(
    experiment: Experiment, store: LocalStore
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
        created=now(),
    )
    metrics = {"loss": 0.5, "worst": math.nan, "parts": [1.0, -math.inf]}
    store.write_checkpoints(1, [checkpoint_row(store.number, 1, "", manifest, metrics)])
    store.write_rows(1, "validation", [rest.MetricRow(batch=4, metrics={"loss": 0.5, "worst": math.nan})])
    told = ViewReader(experiment.source, experiment.id).changes()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    [checkpoint] = [each for each in told["checkpoints"] if each["uuid"] == manifest.uuid]
    assert checkpoint["metrics"] == {"loss": 0.5, "worst": "NaN", "parts": [1.0, "-Infinity"]}


def test_the_view_of_a_trial_has_nothing_of_others(experiment: Experiment) -> None:
    parts = ViewReader(experiment.source, experiment.id, trial_id=2).changes()
    assert [trial["id"] for trial in parts["trials"]] == [2]
    assert {curve["trial_id"] for curve in parts["curves"]} == {2}


def test_log_lines_are_asked_for_once_and_the_last_ones_kept(store: LocalStore) -> None:
    source = LoggingSource(store)
    reader = ViewReader(source, store.id, trial_id=1)
    source.lines = [line(number) for number in range(1, LOG_LINES + 11)]
    assert [each["id"] for each in reader.changes()["logs"]] == list(range(11, LOG_LINES + 11))
    source.lines.append(line(LOG_LINES + 11))
    assert reader.changes()["logs"][-1]["text"] == f"line {LOG_LINES + 11}"
    assert source.asked_after == [0, LOG_LINES + 10]


def test_the_log_is_that_of_the_trial_that_runs_else_of_one_that_failed(store: LocalStore) -> None:
    trials = store.trials()
    assert logged_trial([]) is None
    assert logged_trial(trials) == trials[-1]
    failed = trials[0].model_copy(update={"state": TrialState.ERROR})
    assert logged_trial([failed, trials[1]]) == failed
    running = trials[1].model_copy(update={"state": TrialState.RUNNING})
    assert logged_trial([running, failed]) == running

    source = LoggingSource(store)
    source.lines = [line(1, trial_id=1), line(2, trial_id=2)]
    reader = ViewReader(source, store.id)
    assert [each["id"] for each in reader.changes()["logs"]] == [2]
    store.write_trial(failed)
    assert [each["id"] for each in reader.changes()["logs"]] == [1], "another trial's log begins anew"


def test_curves_are_those_of_the_newest_trials() -> None:
    experiment = write_experiment(trials=MAX_TRIALS + 2)
    found = read_curves(experiment.source, experiment.id, experiment.source.trials(experiment.id))
    assert {curve.trial_id for curve in found} == set(range(3, MAX_TRIALS + 3))


def test_what_is_no_number_is_no_curve(store: LocalStore) -> None:
    trial = trial_row(store, 3, {}, 1, 2)
    store.write_trial(trial)
    rows = [rest.MetricRow(batch=1, metrics={"word": "x", "flag": True, "loss": 1.0})]
    store.write_rows(3, "training", rows)
    found = read_curves(LocalSource(store), store.id, [trial])
    assert [(curve.name, curve.kind) for curve in found] == [("loss", MetricKind.TRAINING)]


def test_not_a_number_is_a_gap_in_a_curve_that_was_read_from_its_file() -> None:
    experiment = write_experiment()
    store = LocalStore.find(str(experiment.id))
    [trial] = store.trials()
    values = [1.0, math.nan, math.inf, 1.0]
    rows = [rest.MetricRow(batch=batch, metrics={"norm": value}) for batch, value in enumerate(values, 1)]
    store.write_rows(trial.id, "training", rows)
    [training] = [curve for curve in read_curves(LocalSource(store), store.id, [trial]) if curve.name == "norm"]
    assert training.mean == [1.0, None, None, 1.0]
    [drawn] = [line for line in reduced_curves(experiment).lines if line.name == "norm"]
    assert [math.isnan(value) for value in drawn.values] == [False, True, True, False]


def test_where_nothing_validates_nothing_is_drawn_as_a_validation() -> None:
    experiment = write_experiment()
    store = LocalStore.find(str(experiment.id))
    store.write_rows(1, "logged", [rest.MetricRow(batch=2, metrics={"f1": 0.5})])
    kinds = {curve.kind for curve in read_curves(LocalSource(store), store.id, store.trials())}
    assert kinds == {MetricKind.TRAINING, MetricKind.VALIDATION, MetricKind.LOGGED}
    store.write_experiment(store.experiment().model_copy(update={"validates": False}))
    kinds = {curve.kind for curve in read_curves(LocalSource(store), store.id, store.trials())}
    assert kinds == {MetricKind.TRAINING, MetricKind.LOGGED}


@example([1.7e308, 1.7e308], 1)
@given(st.lists(st.floats() | st.floats(-1e6, 1e6), max_size=400), st.integers(1, 60))
def test_reducing_keeps_extremes_and_the_limit(values: list[float], buckets: int) -> None:
    batches = list(range(1, len(values) + 1))
    curve = reduce_curve(1, MetricKind.TRAINING, "loss", batches, values, buckets)
    assert len(curve.batch) <= buckets
    assert curve.batch == sorted(set(curve.batch))
    assert curve.batch == batches or len(batches) > buckets
    assert not batches or batches[0] <= curve.batch[0] <= curve.batch[-1] <= batches[-1]
    finite = [value for value in values if math.isfinite(value)]
    if finite:
        assert min(value for value in curve.minimum if value is not None) == min(finite)
        assert max(value for value in curve.maximum if value is not None) == max(finite)
    else:
        assert set(curve.mean) <= {None}
    for low, mean, high in zip(curve.minimum, curve.mean, curve.maximum, strict=True):
        assert (low is None) == (mean is None) == (high is None)


def test_a_peak_among_a_hundred_thousand_points_is_kept() -> None:
    values = [1.0] * 100_000
    values[54_321] = 1e9
    curve = reduce_curve(1, MetricKind.TRAINING, "loss", range(1, 100_001), values)
    assert len(curve.batch) <= BUCKETS
    assert max(value for value in curve.maximum if value is not None) == 1e9
    (bucket,) = [at for at, value in enumerate(curve.maximum) if value == 1e9]
    assert abs(curve.batch[bucket] - 54_322) <= 100_000 / BUCKETS / 2


def test_of_a_straight_line_the_reduced_one_lies_on_it() -> None:
    batches = range(1, 1001)
    curve = reduce_curve(1, MetricKind.TRAINING, "loss", batches, [-float(batch) for batch in batches], buckets=300)
    assert curve.mean == pytest.approx([-float(batch) for batch in curve.batch], abs=0.5)
