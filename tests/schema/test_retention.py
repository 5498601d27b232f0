"""Which checkpoints are kept when an experiment ends, here or on a master."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from det_native.schema.manifests import CheckpointManifest
from det_native.schema.rest import Checkpoint
from det_native.schema.retention import superfluous, superfluous_already


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
