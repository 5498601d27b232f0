"""What the store promises, on every kind of database."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from store_parts import OWNER, Fixture, metrics_report

from det_native.errors import FencedError, NotFoundError, RequestError
from det_native.master.store import (
    checkpoints,
    events,
    experiments,
    finding,
    logs,
    metrics,
    reports,
    runs,
    series,
    trials,
    unfinished,
)
from det_native.master.store.database import Database
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.states import ExperimentState, MetricKind, TrialState

T, V = MetricKind.TRAINING, MetricKind.VALIDATION


@pytest.fixture
def fixture(database: Database) -> Fixture:
    """Give an experiment with a trial."""
    return Fixture(database)


def shown(fixture: Fixture, kind: MetricKind = T, **options: int) -> list[tuple[int, dict[str, object]]]:
    with fixture.database.read() as connection:
        return [(row.batch, row.metrics) for row in metrics.rows(connection, fixture.trial_id, kind, **options)]


def test_reports_are_stored_in_order_and_once(fixture: Fixture) -> None:
    run = fixture.run()
    report = {"seq": 1, **metrics_report("training", [1, 2], loss=[0.5, 0.25])}
    assert run.say_raw(report).through == 1
    assert run.say_raw(report).through == 1
    assert run.say_raw(report, {"seq": 2, **metrics_report("training", [3], loss=[0.125])}).through == 2
    assert shown(fixture) == [(1, {"loss": 0.5}), (2, {"loss": 0.25}), (3, {"loss": 0.125})]


def test_a_gap_is_refused_and_changes_nothing(fixture: Fixture) -> None:
    run = fixture.run()
    with pytest.raises(RequestError, match=r"Report 2 .* is missing before report 3") as caught:
        run.say_raw(
            {"seq": 1, **metrics_report("training", [1], loss=[0.5])},
            {"seq": 3, **metrics_report("training", [2], loss=[0.5])},
        )
    assert caught.value.status == 400
    assert shown(fixture) == []
    assert run.say_raw({"seq": 1, **metrics_report("training", [1], loss=[0.5])}).through == 1


def test_an_earlier_run_is_fenced_off(fixture: Fixture) -> None:
    old = fixture.run()
    old.say(metrics_report("training", [1], loss=[0.5]))
    new = fixture.run(start_batch=1)
    with pytest.raises(FencedError, match="not the current attempt"):
        old.say(metrics_report("training", [2], loss=[0.5]))
    new.say(metrics_report("training", [2], loss=[0.75]))
    assert shown(fixture) == [(1, {"loss": 0.5}), (2, {"loss": 0.75})]


def test_an_ended_run_takes_repeats_only(fixture: Fixture) -> None:
    run = fixture.run()
    run.say(metrics_report("training", [1], loss=[0.5]))
    with fixture.database.write() as transaction:
        runs.end(transaction, run.run_id)
    assert run.say_raw({"seq": 1, **metrics_report("training", [1], loss=[0.5])}).through == 1
    with pytest.raises(FencedError, match="has ended"):
        run.say(metrics_report("training", [2], loss=[0.5]))


def test_a_restart_hides_what_lies_beyond_its_checkpoint(fixture: Fixture) -> None:
    first = fixture.run()
    first.say(metrics_report("training", [1, 2, 3, 4], loss=[4.0, 3.0, 2.0, 1.0]))
    first.say(metrics_report("validation", [2], loss=[0.9]), metrics_report("validation", [4], loss=[0.1]))
    second = fixture.run(start_batch=2)
    second.say({"type": "started", "batch": 2})
    assert [batch for batch, _ in shown(fixture)] == [1, 2]
    with fixture.database.read() as connection:
        assert trials.get(connection, fixture.trial_id).best_validation == 0.9
        assert experiments.get(connection, fixture.experiment_id).best_validation == 0.9
    second.say(metrics_report("training", [3, 4], loss=[2.5, 1.5]), metrics_report("validation", [4], loss=[0.2]))
    assert shown(fixture) == [(1, {"loss": 4.0}), (2, {"loss": 3.0}), (3, {"loss": 2.5}), (4, {"loss": 1.5})]
    assert shown(fixture, V) == [(2, {"loss": 0.9}), (4, {"loss": 0.2})]


def test_a_validation_repeated_at_the_checkpoint_counts_once(fixture: Fixture) -> None:
    fixture.run().say(metrics_report("validation", [0, 5], loss=[3.0, 2.0]))
    fixture.run(start_batch=5).say(metrics_report("validation", [5], loss=[2.5]))
    assert shown(fixture, V) == [(0, {"loss": 3.0}), (5, {"loss": 2.5})]
    fixture.run(start_batch=5)
    assert shown(fixture, V) == [(0, {"loss": 3.0}), (5, {"loss": 2.5})]
    fixture.run(start_batch=0).say(metrics_report("validation", [0], loss=[9.0]))
    assert shown(fixture, V) == [(0, {"loss": 9.0})]


def test_numbers_that_are_none_survive_and_absent_ones_are_absent(fixture: Fixture) -> None:
    run = fixture.run()
    run.say(metrics_report("training", [1, 2], **{"l'o\"ss %s": [math.nan, -math.inf], "accuracy": [None, 0.5]}))
    assert shown(fixture) == [(1, {"l'o\"ss %s": "NaN"}), (2, {"l'o\"ss %s": "-Infinity", "accuracy": 0.5})]


def test_what_is_no_number_is_in_the_row_and_at_the_checkpoint(fixture: Fixture) -> None:
    run = fixture.run()
    values = {"confusion": [[[1.0, "NaN"], [0, 2]]], "note": ["text with \u0000 and \U0001f600"], "gone": [None]}
    run.say({**metrics_report("validation", [4], loss=[0.5], f1=[math.inf]), "values": values})
    row = {"loss": 0.5, "f1": "Infinity", "confusion": [[1.0, "NaN"], [0, 2]], "note": values["note"][0]}
    assert shown(fixture, V) == [(4, row)]
    run.say(checkpoint_report(fixture, run.run_id, "0b2f61aa-0000-4000-8000-000000000000", 4))
    with fixture.database.read() as connection:
        [checkpoint] = checkpoints.of_trial(connection, fixture.trial_id)
        [event] = [each for each in events.after(connection, OWNER, 0) if each.type == "metrics"]
        names = {curve.name for curve in series.curves(connection, fixture.trial_id, [V], points=10, name=None)}
    assert checkpoint.metrics == event.data["metrics"] == row
    assert names == {"loss", "f1"}
    later = {"seq": 3, **metrics_report("validation", [5], loss=[0.25]), "values": {"f1": ["as text"]}}
    with pytest.raises(RequestError, match="'note' has 2 values for 1 batches"):
        run.say_raw(later, {"seq": 4, **metrics_report("validation", [6]), "values": {"note": ["a", "b"]}})
    run.say_raw(later)  # the open end of the series is read again
    assert shown(fixture, V)[-1] == (5, {"loss": 0.25, "f1": "as text"})


def test_rows_come_in_pages(fixture: Fixture) -> None:
    fixture.run().say(metrics_report("training", list(range(1, 8)), loss=[0.0] * 7))
    fixture.run(start_batch=5).say(metrics_report("training", [6, 7, 8], loss=[1.0] * 3))
    assert [batch for batch, _ in shown(fixture, limit=3)] == [1, 2, 3]
    assert [batch for batch, _ in shown(fixture, after_batch=4, limit=3)] == [5, 6, 7]
    assert [batch for batch, _ in shown(fixture, after_batch=7)] == [8]


@pytest.mark.parametrize(
    ("batches", "columns"),
    [([1, 2], {"loss": [0.5]}), ([2, 1], {"loss": [0.5, 0.5]}), ([1, 1], {"loss": [0.5, 0.5]}), ([-1], {})],
)
def test_rows_that_contradict_themselves_are_refused(
    fixture: Fixture, batches: list[int], columns: dict[str, list[float | None]]
) -> None:
    with pytest.raises(RequestError) as caught:
        fixture.run().say(metrics_report("training", batches, **columns))
    assert caught.value.status == 400


@pytest.mark.parametrize(("smaller_is_better", "best"), [(True, 0.2), (False, 0.7)])
def test_the_best_validation_is_kept(database: Database, smaller_is_better: bool, best: float) -> None:
    fixture = Fixture(database, smaller_is_better=smaller_is_better)
    run = fixture.run()
    for batch, value in enumerate([0.5, 0.2, math.nan, 0.7, math.inf, -math.inf]):
        run.say(metrics_report("validation", [batch], loss=[value], other=[0.0]))
    other = fixture.run(trial_id=fixture.add_trial(1))
    other.say(metrics_report("validation", [1], loss=[0.4]))
    with database.read() as connection:
        assert trials.get(connection, fixture.trial_id).best_validation == best
        assert reports.best(connection, other.run_id) == best


def test_a_checkpoint_belongs_to_the_run_that_reports_it(fixture: Fixture) -> None:
    run = fixture.run()
    report = checkpoint_report(fixture, run.run_id, "00000000-0000-4000-8000-000000000001", 3)
    run.say(metrics_report("validation", [3], loss=[0.5]), report)
    run.say(report)
    with fixture.database.read() as connection:
        (found,) = checkpoints.of_trial(connection, fixture.trial_id, OWNER)
        assert (found.batch, found.metrics, found.size) == (3, {"loss": 0.5}, 0)
        assert checkpoints.latest(connection, fixture.trial_id) == found
    forged = checkpoint_report(fixture, "someone-else", "00000000-0000-4000-8000-000000000002", 4)
    with pytest.raises(RequestError, match="says that it is of"):
        run.say(forged)
    run.seq -= 1
    with pytest.raises(RequestError, match="uuid"):
        run.say(checkpoint_report(fixture, run.run_id, "../../etc", 4))


def test_a_checkpoint_of_weights_that_were_changed_after_a_validation_has_its_own_metrics(fixture: Fixture) -> None:
    run = fixture.run()
    run.say(metrics_report("validation", [3], loss=[9.5]))
    for number, own in enumerate([{"loss": 0.5, "other": "NaN"}, {}, None], start=1):
        report = checkpoint_report(fixture, run.run_id, f"00000000-0000-4000-8000-00000000000{number}", 3)
        if own is not None:
            report["manifest"]["metadata"] = {CheckpointManifest.METRICS: own}  # type: ignore[index]
        run.say(report)
    with fixture.database.read() as connection:
        found = {one.uuid[-1]: one.metrics for one in checkpoints.of_trial(connection, fixture.trial_id, OWNER)}
    assert found == {"1": {"loss": 0.5, "other": "NaN"}, "2": {}, "3": {"loss": 9.5}}


def checkpoint_report(fixture: Fixture, run_id: str, uuid: str, batch: int) -> dict[str, object]:
    manifest = {
        "uuid": uuid,
        "framework": "torch",
        "framework_version": "2",
        "det_version": "0",
        "batch": batch,
        "experiment_id": fixture.experiment_id,
        "trial_id": fixture.trial_id,
        "run_id": run_id,
        "bundle_id": None,
        "hparams": {},
        "created": "2026-01-01T00:00:00Z",
    }
    return {"type": "checkpoint", "location": "x", "manifest": manifest}


def test_terminal_states_absorb(fixture: Fixture) -> None:
    with fixture.database.write() as transaction:
        trials.set_state(transaction, fixture.trial_id, TrialState.CANCELED)
        trials.set_state(transaction, fixture.trial_id, TrialState.RUNNING)
        experiments.set_state(transaction, fixture.experiment_id, ExperimentState.CANCELED)
        experiments.set_state(transaction, fixture.experiment_id, ExperimentState.ACTIVE)
    with fixture.database.read() as connection:
        assert trials.get(connection, fixture.trial_id).state is TrialState.CANCELED
        assert experiments.get(connection, fixture.experiment_id).state is ExperimentState.CANCELED
        assert unfinished.ids(connection) == []
        assert experiments.uncollected(connection) == [fixture.experiment_id]


def test_an_experiment_tells_how_many_of_its_trials_failed(fixture: Fixture) -> None:
    fixture.add_trial(2)
    third = fixture.add_trial(3)

    def counts() -> list[tuple[int, int]]:
        with fixture.database.read() as connection:
            listed = experiments.with_ids(connection, [fixture.experiment_id])
            one = experiments.get_detail(connection, fixture.experiment_id, OWNER)
        return [(found.trials, found.failed_trials) for found in (*listed, one)]

    assert counts() == [(3, 0), (3, 0)]
    with fixture.database.write() as transaction:
        trials.set_state(transaction, third, TrialState.ERROR)
    assert counts() == [(3, 1), (3, 1)]


def test_nobody_sees_what_belongs_to_another(fixture: Fixture) -> None:
    run = fixture.run()
    run.say(checkpoint_report(fixture, run.run_id, "00000000-0000-4000-8000-000000000001", 3))
    with fixture.database.read() as connection:
        assert finding.find(connection, "other", None, datetime.now(UTC), limit=10).total == 0
        assert trials.of_experiment(connection, fixture.experiment_id, "other") == []
        assert checkpoints.of_experiment(connection, fixture.experiment_id, "other") == []
        assert events.after(connection, "other", 0) == []
        for ask in (
            lambda: experiments.get(connection, fixture.experiment_id, "other"),
            lambda: trials.get(connection, fixture.trial_id, "other"),
            lambda: checkpoints.get(connection, "00000000-0000-4000-8000-000000000001", "other"),
            lambda: metrics.rows(connection, fixture.trial_id, T, owner="other"),
            lambda: logs.after(connection, fixture.trial_id, owner="other"),
        ):
            with pytest.raises(NotFoundError):
                ask()


def test_output_becomes_lines_and_is_stored_once(fixture: Fixture) -> None:
    run = fixture.run()
    with fixture.database.write() as transaction:
        logs.add_output(transaction, fixture.trial_id, run.run_id, "one\r\n10%\r20%\rdone\n\nnul \x00 \udc80\n", [40])
        logs.add(transaction, fixture.trial_id, run.run_id, "system", ["x" * 20_000])
    with fixture.database.read() as connection:
        lines = logs.after(connection, fixture.trial_id, owner=OWNER)
        assert [line.text for line in lines[:4]] == ["one", "done", "", "nul \ufffd ?"]
        assert lines[4].text.endswith("[... 3616 more characters]")
        assert [line.id for line in logs.after(connection, fixture.trial_id, line_id=lines[2].id)] == [
            line.id for line in lines[3:]
        ]
        stored = runs.get(connection, run.run_id)
    assert stored is not None
    assert stored.log_offsets == [40]
    assert {line.rank for line in lines} == {None}


def test_events_come_in_order_and_old_hints_go(fixture: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "KEPT_HINTS", 3)
    monkeypatch.setattr(events, "PRUNE_EVERY", 5)
    run = fixture.run()
    for batch in range(1, 21):
        run.say(metrics_report("training", [batch], loss=[0.5]))
    with fixture.database.read() as connection:
        found = events.after(connection, OWNER, 0)
        assert [event.id for event in found] == sorted(event.id for event in found)
        assert len(found) < 9
        assert found[-1].data == {"kind": "training", "batch": 20, "metrics": {"loss": 0.5}}
        assert events.after(connection, OWNER, found[-2].id) == [found[-1]]
        assert events.after(connection, OWNER, 0, experiment_id=fixture.experiment_id + 1) == []


def test_a_failed_transaction_leaves_nothing_behind(fixture: Fixture) -> None:
    run = fixture.run()
    run.say(metrics_report("training", list(range(1, 11)), loss=[0.0] * 10))
    told: list[object] = []
    fixture.database._on_commit = told.extend
    with pytest.raises(RequestError):
        run.say_raw(
            {"seq": 2, **metrics_report("training", list(range(11, 41)), loss=[9.0] * 30)},
            {"seq": 9, **metrics_report("training", [50], loss=[9.0])},
        )
    assert told == []
    run.say(metrics_report("training", list(range(11, 41)), loss=[1.0] * 30))
    assert len(told) == 1
    assert shown(fixture)[-1] == (40, {"loss": 1.0})
    with fixture.database.read() as connection:
        assert trials.get(connection, fixture.trial_id).batches == 40


def test_a_warning_is_the_trials_and_its_experiments(fixture: Fixture) -> None:
    run = fixture.run()
    run.say({"type": "warning", "text": "The loss became NaN at batch 4."})
    with fixture.database.read() as connection:
        assert trials.get(connection, fixture.trial_id).warning == "The loss became NaN at batch 4."
        assert experiments.get(connection, fixture.experiment_id).warning == "The loss became NaN at batch 4."
        told = events.after(connection, OWNER, 0)
    assert [event.type for event in told if event.data.get("warning")] == ["trial", "experiment"]


def test_the_metric_that_the_training_names_is_the_experiments(fixture: Fixture) -> None:
    run = fixture.run()
    run.say({"type": "comparison", "name": "d_loss"}, metrics_report("validation", [4], d_loss=[2.0], loss=[1.0]))
    run.say({"type": "comparison", "name": "another"})  # once something was compared, it stays
    with fixture.database.read() as connection:
        found = experiments.get(connection, fixture.experiment_id)
        told = events.after(connection, OWNER, 0)
    assert (found.metric, found.config["searcher"]["metric"], found.best_validation) == ("d_loss", "d_loss", 2.0)
    assert [event.data["metric"] for event in told if event.type == "experiment"][-1] == "d_loss"


def test_where_nothing_validates_that_is_told_once(fixture: Fixture) -> None:
    with fixture.database.read() as connection:
        assert experiments.get(connection, fixture.experiment_id).validates
    run = fixture.run()
    run.say({"type": "no_validation"}, metrics_report("validation", [4], loss=[1.0]))
    run.say({"type": "no_validation"})
    with fixture.database.read() as connection:
        found = experiments.get(connection, fixture.experiment_id)
        told = events.after(connection, OWNER, 0)
    assert not found.validates
    assert len([event for event in told if event.type == "experiment" and not event.data["validates"]]) == 1


def test_which_values_of_that_metric_are_better_is_the_experiments_too(fixture: Fixture) -> None:
    run = fixture.run()
    named = {"type": "comparison", "name": "accuracy", "smaller_is_better": False}
    run.say(named, metrics_report("validation", [4], accuracy=[0.5]), metrics_report("validation", [8], accuracy=[0.8]))
    run.say(metrics_report("validation", [12], accuracy=[0.6]))
    with fixture.database.read() as connection:
        found = experiments.get(connection, fixture.experiment_id)
        trial = trials.get(connection, fixture.trial_id)
    assert (found.smaller_is_better, found.config["searcher"]["smaller_is_better"]) == (False, False)
    assert (found.best_validation, trial.best_validation) == (0.8, 0.8)
