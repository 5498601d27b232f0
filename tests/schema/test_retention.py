"""Which checkpoints are kept when an experiment ends, here or on a master."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.schema.manifests import CheckpointManifest
from det_native.schema.rest import Checkpoint
from det_native.schema.retention import superfluous, superfluous_already
from det_native.schema.states import CheckpointState


def checkpoint(number: int, trial: int, batch: int, loss: float | str | None) -> Checkpoint:
    uuid = f"00000000-0000-4000-8000-{number:012d}"
    described = CheckpointManifest(
        uuid=uuid,
        framework="torch",
        framework_version="2",
        det_version="0",
        batch=batch,
        experiment_id=1,
        trial_id=trial,
        run_id="r",
        bundle_id=None,
        hparams={},
        created="",
    )
    return Checkpoint(
        uuid=uuid,
        trial_id=trial,
        experiment_id=1,
        batch=batch,
        state="COMPLETED",  # type: ignore[arg-type]
        size=0,
        metrics={} if loss is None else {"loss": loss},
        location="",
        created=f"{number:04d}",
        manifest=described,
    )


def doomed(found: list[Checkpoint], experiment: int, trial: int, latest: int, *, smaller: bool = True) -> set[int]:
    uuids = superfluous(
        found,
        metric="loss",
        smaller_is_better=smaller,
        experiment_best=experiment,
        trial_best=trial,
        trial_latest=latest,
    )
    return {int(uuid.rpartition("-")[2]) for uuid in uuids}


def test_best_and_latest_of_every_trial_stay() -> None:
    found = [
        checkpoint(1, 1, 10, 0.5),
        checkpoint(2, 1, 20, 0.1),
        checkpoint(3, 1, 30, 0.3),
        checkpoint(4, 1, 40, None),
    ]
    assert doomed(found, 0, 1, 1) == {1, 3}
    assert doomed(found, 0, 1, 0) == {1, 3, 4}
    assert doomed(found, 0, 0, 0) == {1, 2, 3, 4}
    assert doomed(found, 2, 0, 0) == {1, 4}
    assert doomed(found, 0, 1, 0, smaller=False) == {2, 3, 4}


def test_ties_stay_with_the_older_one_and_not_a_number_is_no_best() -> None:
    assert doomed([checkpoint(1, 1, 10, 0.5), checkpoint(2, 1, 20, 0.5)], 0, 1, 0) == {2}
    for none in ("NaN", "Infinity", "-Infinity"):
        assert doomed([checkpoint(1, 1, 10, none), checkpoint(2, 2, 20, 9.0)], 1, 0, 0) == {1}


losses = st.one_of(st.none(), st.floats(-5, 5), st.just("NaN"))


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), losses), max_size=25),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_the_rule_by_ranks(
    rows: list[tuple[int, int, float | str | None]], experiment: int, trial: int, latest: int
) -> None:
    found = [checkpoint(number, *row) for number, row in enumerate(rows)]
    scored = sorted(
        (one for one in found if isinstance(one.metrics.get("loss"), float)),
        key=lambda one: (one.metrics["loss"], one.trial_id, one.batch, one.created),
    )
    expected = set()
    for one in found:
        mine = [other for other in found if other.trial_id == one.trial_id]
        newer = [other for other in mine if (other.batch, other.created) > (one.batch, one.created)]
        best_of_experiment = one in scored and scored.index(one) < experiment
        of_trial = [other for other in scored if other.trial_id == one.trial_id]
        best_of_trial = one in of_trial and of_trial.index(one) < trial
        if len(newer) >= latest and not best_of_experiment and not best_of_trial:
            expected.add(int(one.uuid.rpartition("-")[2]))
    assert doomed(found, experiment, trial, latest) == expected


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), losses), max_size=15),
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), losses), max_size=15),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_what_goes_while_an_experiment_goes_on_would_go_at_its_end(
    rows: list[tuple[int, int, float | str | None]],
    later: list[tuple[int, int, float | str | None]],
    experiment: int,
    trial: int,
    latest: int,
) -> None:
    # The batches of a trial increase.
    further = [(trial_id, batch + 51, loss) for trial_id, batch, loss in later]
    everything = [checkpoint(number, *row) for number, row in enumerate([*rows, *further])]
    already = superfluous_already(
        everything[: len(rows)],
        metric="loss",
        smaller_is_better=True,
        experiment_best=experiment,
        trial_best=trial,
        trial_latest=latest,
        last=1,
    )
    assert {int(uuid.rpartition("-")[2]) for uuid in already} <= doomed(everything, experiment, trial, latest)


def doomed_already(found: list[Checkpoint], **how: Any) -> set[int]:
    """Return the numbers of those that can go while the experiment goes on; the configuration keeps none."""
    limits = {"experiment_best": 0, "trial_best": 0, "trial_latest": 0}
    uuids = superfluous_already(found, metric="loss", smaller_is_better=True, **(limits | how))
    return {int(uuid.rpartition("-")[2]) for uuid in uuids}


def of_trial(trial: int, *numbers: int, **changes: Any) -> list[Checkpoint]:
    """Return checkpoints of a trial, with one every 10 batches, created at the times of their numbers."""
    return [checkpoint(number, trial, 10 * number, 1.0).model_copy(update=changes) for number in numbers]


def test_a_deleted_one_neither_goes_nor_counts() -> None:
    found = [*of_trial(1, 1, 2), *of_trial(1, 3, 4, state=CheckpointState.DELETED)]
    assert doomed(found, 0, 0, 1) == {1}
    assert doomed_already(found) == set()


def test_the_last_two_of_each_trial_stay_while_it_goes_on_whatever_is_configured() -> None:
    found = [*of_trial(1, 1, 2, 3, 4), *of_trial(2, 5, 6, 7)]
    assert doomed_already(found) == {1, 2, 5}
    assert doomed_already(found, trial_latest=1) == {1, 2, 5}
    assert doomed_already(found, trial_latest=3) == {1}
    assert doomed_already(found, last=1) == {1, 2, 3, 5, 6}
    assert doomed_already(of_trial(1, 1, 2)) == set()


def test_the_last_of_a_run_stay_for_a_trial_that_may_continue_from_them() -> None:
    manifest = of_trial(1, 1)[0].manifest.model_copy(update={"run_id": "earlier"})
    found = [*of_trial(1, 1, 2, 3, manifest=manifest), *of_trial(1, 4, 5, 6)]
    assert doomed_already(found) == {1, 2, 3, 4}
    assert doomed_already(found, runs=["earlier"]) == {1, 4}
    assert doomed_already(found, runs=["earlier"], last=1) == {1, 2, 4, 5}
    assert doomed_already(found, runs=["unknown"]) == {1, 2, 3, 4}
    deleted = of_trial(1, 7, manifest=manifest, state=CheckpointState.DELETED)
    assert doomed_already([*found, *deleted], runs=["earlier"]) == {1, 4}


@pytest.mark.parametrize(
    ("backed_up", "gone"),
    [("0000", {1, 2, 3, 6, 7}), ("0002", {1, 3, 6, 7}), ("0006", {1, 2, 3, 7}), ("0009", {1, 2, 3, 6, 7})],
)
def test_the_last_of_each_trial_that_a_backup_knows_stays(backed_up: str, gone: set[int]) -> None:
    found = [*of_trial(1, 1, 2, 3, 4, 5), *of_trial(2, 6, 7, 8, 9)]
    assert doomed_already(found, backed_up=backed_up) == gone


def test_a_deleted_one_is_not_what_a_backup_needs() -> None:
    deleted = of_trial(1, 2, state=CheckpointState.DELETED)
    assert doomed_already([*of_trial(1, 1, 3, 4), *deleted], backed_up="0002") == set()


def test_one_that_was_validated_by_other_metrics_only_stays_until_the_end() -> None:
    other, both = of_trial(1, 1, metrics={"accuracy": 1.0}), of_trial(1, 2, metrics={"accuracy": 1.0, "loss": 1.0})
    found = [*other, *both, *of_trial(1, 3, metrics={}), *of_trial(1, 4, 5)]
    assert doomed_already(found) == {2, 3}
    assert doomed(found, 0, 0, 0) == {1, 2, 3, 4, 5}
