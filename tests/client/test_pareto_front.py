"""The trials of which no other is as good in every metric and better in one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from made_experiments import make_experiment, source_of

from det_native.client.handles import Experiment
from det_native.client.pareto import front
from det_native.display.text import experiment_facts
from det_native.schema import rest


def better(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


@given(st.lists(st.tuples(*[st.integers(0, 4).map(float)] * 3), max_size=12))
def test_nobody_outside_is_better_and_everybody_outside_is_worse(found: list[tuple[float, ...]]) -> None:
    values = dict(enumerate(found))
    kept = front(values, [True, True, True])
    for number, mine in values.items():
        beaten = any(better(other, mine) for other in found)
        assert (number in kept) == (not beaten)


def test_what_is_better_is_told_for_each_metric() -> None:
    values = {1: (0.5, 9.0), 2: (0.2, 3.0), 3: (0.6, 8.0), 4: (0.2, 3.0)}
    assert front(values, [True, False]) == [1, 2, 4]
    assert front(values, [True, True]) == [2, 4]


def test_a_handle_has_them_by_the_last_validation() -> None:
    experiment = make_experiment(metric="loss")
    store = source_of(experiment)
    [first] = store.trials()
    metrics = [{"name": "loss"}, {"name": "speed", "smaller_is_better": False}]
    config = {"searcher": {"name": "optuna", "metrics": metrics}}
    store.write(config=config)
    rows = {1: [(9, 9), (0.5, 2.0)], 2: [(0.4, 1.0)], 3: [(0.6, 1.0)], 4: []}
    for number, validations in rows.items():
        known = {"id": number, "best_validation": validations[-1][0] if validations else None}
        store.write_trial(first.model_copy(update=known))
        store.write_rows(
            number,
            "validation",
            [
                rest.MetricRow(batch=batch, metrics={"loss": loss, "speed": speed})
                for batch, (loss, speed) in enumerate(validations, 1)
            ],
        )
    experiment = Experiment(store, experiment.id)  # a handle keeps what has ended
    assert [trial.id for trial in experiment.best_trials] == [1, 2]
    assert experiment_facts(experiment.detail())["compared by"].startswith("loss and speed")
    assert {axis.get_title() for axis in experiment.plot("search").axes} >= {"speed"}
