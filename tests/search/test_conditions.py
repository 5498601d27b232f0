"""Hyperparameters that exist only where another one has a value: drawn, in a grid, by Optuna, changed by ``pbt``."""

from __future__ import annotations

from typing import Any

import pytest

import det_native as det
from det_native.errors import ConfigurationError
from det_native.schema.loading import load_config
from det_native.schema.sampling import explore_hyperparameters, grid_points, sample_hyperparameters
from det_native.search import CreateTrial, Started, TrialCompleted, make_searcher

SGD = {"optimizer": "sgd"}
SPACE: dict[str, Any] = {
    "global_batch_size": 32,
    "optimizer": det.Categorical(["sgd", "adam", "rmsprop"]),
    "adam": {"beta": det.Double(0.8, 0.99, count=3, when={"optimizer": "adam"})},
    "momentum": det.Double(0, 1, count=2, when={"optimizer": ["sgd", "rmsprop"]}),
    "kind": det.Categorical(["plain", "nesterov"], when=SGD),
    "decay": det.Log(-4, -2, count=2, when={"kind": "nesterov"}),
    "lr": det.Constant(0.1),
}


def names(hparams: dict[str, Any]) -> set[str]:
    return set(hparams) - {"global_batch_size", "optimizer", "lr"}


def check(hparams: dict[str, Any]) -> None:
    """Assert that what is there is what the conditions say."""
    expected = {"adam": {"adam"}, "rmsprop": {"momentum"}, "sgd": {"momentum", "kind"}}[hparams["optimizer"]]
    if hparams.get("kind") == "nesterov":
        expected = expected | {"decay"}
    assert names(hparams) == expected, hparams


def test_values_are_drawn_where_the_conditions_hold() -> None:
    drawn = [sample_hyperparameters(SPACE, seed) for seed in range(200)]
    for hparams in drawn:
        check(hparams)
    assert {hparams["optimizer"] for hparams in drawn} == {"sgd", "adam", "rmsprop"}
    assert any("decay" in hparams for hparams in drawn)


def test_a_condition_changes_no_value_of_the_others() -> None:
    space = {name: leaf for name, leaf in SPACE.items() if name != "adam"}
    free = {name: {**leaf, "when": None} if isinstance(leaf, dict) else leaf for name, leaf in space.items()}
    for seed in range(20):
        with_conditions, without = sample_hyperparameters(space, seed), sample_hyperparameters(free, seed)
        assert with_conditions == {name: without[name] for name in with_conditions}


def test_a_grid_has_each_point_once() -> None:
    points = grid_points(SPACE)
    for hparams in points:
        check(hparams)
    assert len({str(point) for point in points}) == len(points)
    counts = {name: sum(point["optimizer"] == name for point in points) for name in ("sgd", "adam", "rmsprop")}
    assert counts == {"sgd": 2 * (1 + 2), "adam": 3, "rmsprop": 2}
    assert det.preview_search({"searcher": {"name": "grid", "metric": "m"}, "hyperparameters": SPACE}).trials == [
        [100]
    ] * len(points)


def test_too_many_points_are_told() -> None:
    large = {"x": det.Categorical(["a", "b"]), "y": det.Integer(1, 5000, count=5000, when={"x": "a"})}
    with pytest.raises(ConfigurationError, match="more than the 2,000 trials"):
        load_config({"searcher": {"name": "grid"}, "hyperparameters": large}, local=True)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", {"name": "tpe", "multivariate": True, "group": True}, "nsga2", "random"])
def test_optuna_asks_for_what_exists(sampler: Any) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    searcher = {"name": "optuna", "metric": "m", "max_length": 5, "max_trials": 40, "sampler": sampler}
    config = load_config({"searcher": searcher, "hyperparameters": SPACE}).with_seed(1)
    search = make_searcher(config)
    waiting, made = search.handle(Started()), 0
    while waiting:
        action = waiting.pop(0)
        if isinstance(action, CreateTrial):
            made += 1
            check(action.hparams)
            waiting += search.handle(TrialCompleted(action.request, action.hparams.get("momentum", 1.0)))
    assert made == 40


def test_a_copy_gets_what_exists_with_its_values() -> None:
    parent = sample_hyperparameters(SPACE, 3)
    for seed in range(100):
        copied = explore_hyperparameters(SPACE, parent, seed, resample_probability=0.4, perturb_factor=0.2)
        check(copied)
        parent = copied


@pytest.mark.parametrize(
    ("changed", "where", "what"),
    [
        ({"m": det.Double(0, 1, when={"optimiser": "sgd"})}, "m.when.optimiser", "Did you mean optimizer?"),
        ({"m": det.Double(0, 1, when={"optimizer": "sdg"})}, "m.when.optimizer", "never has that value"),
        ({"m": det.Double(0, 1, when={"lr": 0.1})}, "m.when.lr", "only a categorical has values"),
        ({"m": {**det.Double(0, 1), "when": {}}}, "m.when", "must name another hyperparameter"),
        ({"global_batch_size": det.Constant(8, when=SGD)}, "global_batch_size.when", "every trial needs a batch size"),
        (
            {
                "a": det.Categorical([1, 2], when={"b": 1}),
                "b": det.Categorical([1, 2], when={"a": 1}),
            },
            "a.when",
            "goes round in a circle by b",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(changed: dict[str, Any], where: str, what: str) -> None:
    space = {"global_batch_size": 8, "optimizer": det.Categorical(["sgd", "adam"]), "lr": det.Double(0, 1)} | changed
    with pytest.raises(ConfigurationError) as caught:
        load_config({"searcher": {"metric": "m", "max_length": 5}, "hyperparameters": space})
    told = {problem.where: str(problem) for problem in caught.value.problems}
    assert what in told[f"hyperparameters.{where}"]


def test_the_configuration_is_written_as_it_was() -> None:
    loaded = load_config({"searcher": {"metric": "m", "max_length": 5}, "hyperparameters": SPACE})
    written = loaded.model_dump(mode="json")["hyperparameters"]
    assert written["momentum"]["when"] == {"optimizer": ["sgd", "rmsprop"]}
    assert "when" not in written["optimizer"]
    assert load_config({"searcher": {"metric": "m", "max_length": 5}, "hyperparameters": written}) == loaded
