"""One error lists everything that is wrong, each with its path."""

from __future__ import annotations

import pytest

from det_native.errors import ConfigurationError
from det_native.schema.loading import load_config


def problems_of(config: object, **arguments: object) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        load_config(config, **arguments)  # type: ignore[arg-type]
    return {problem.where: f"{problem.what} {problem.remedy}" for problem in caught.value.problems}


def test_five_mistakes_of_five_kinds_are_listed_with_their_paths() -> None:
    config = """
        serching: {}
        scheduling_unit: "100"
        searcher:
          name: single
          max_length: {epochs: 2.5}
        hyperparameters:
          global_batch_size: 32
          lr: {type: log, minval: -1, maxval: -4}
        records_per_epoch: 1000
    """
    with pytest.raises(ConfigurationError) as caught:
        load_config(config)
    lines = str(caught.value).splitlines()
    assert lines[0] == "The experiment configuration is not valid:"
    assert sorted(line.split(": ")[0].strip(" -") for line in lines[1:]) == [
        "hyperparameters.lr",
        "scheduling_unit",
        "searcher.max_length.epochs",
        "searcher.metric",
        "serching",
    ]
    text = str(caught.value)
    assert "serching: is not a field of the configuration. Did you mean searcher?" in text
    assert "scheduling_unit: must be a whole number, not the text '100'. Write 100 without quotes." in text
    assert "searcher.max_length.epochs: must be a whole number of at least 0, not 2.5." in text
    assert "hyperparameters.lr: maxval (-4.0) must be above minval (-1.0)." in text
    assert "searcher.metric: is missing. Name the validation metric" in text


def test_field_of_another_section_is_found() -> None:
    found = problems_of(
        {"max_length": 5, "max_steps": 5, "slots_per_trial": 2, "environment_variables": []}, local=True
    )
    assert "Did you mean searcher.max_length?" in found["max_length"]
    assert "Did you mean searcher.max_steps?" in found["max_steps"]
    assert "Did you mean resources.slots_per_trial?" in found["slots_per_trial"]
    assert "Did you mean environment.environment_variables?" in found["environment_variables"]


def test_field_that_resembles_none_gets_the_list() -> None:
    found = problems_of({"resources": {"zzz": 1}}, local=True)
    assert "Known fields of resources: accelerator, agent_label, allow_cpu, devices" in found["resources.zzz"]


def test_rules_between_fields_are_listed_beside_broken_fields_of_the_same_section() -> None:
    found = problems_of({"resources": {"priority": 100, "slots_per_trial": 4, "max_slots": 2}}, local=True)
    assert set(found) == {"resources.priority", "resources"}


def test_fields_of_a_searcher_of_unknown_name_are_still_checked() -> None:
    found = problems_of({"searcher": {"name": "randm", "metric": 5, "max_length": {"epochs": "1"}}}, local=True)
    assert {"searcher.name", "searcher.metric", "searcher.max_length.epochs"} <= set(found)


def test_rule_about_a_broken_field_says_nothing() -> None:
    storage = {"type": "azure", "container": "c", "connection_string": 5}
    assert set(problems_of({"checkpoint_storage": storage}, local=True)) == {"checkpoint_storage.connection_string"}


def test_hyperparameter_named_like_its_kind() -> None:
    found = problems_of({"hyperparameters": {"int": {"type": "int", "minval": 1, "maxval": "x"}}}, local=True)
    assert set(found) == {"hyperparameters.int.maxval"}


def test_field_named_type_of_a_users_own_is_explained() -> None:
    found = problems_of({"hyperparameters": {"optimizer": {"type": "adam", "lr": 1}}}, local=True)
    assert '{"type": "const", "val": {...}}' in found["hyperparameters.optimizer.type"]


def test_what_only_a_cluster_needs_is_not_asked_of_a_local_run() -> None:
    assert set(problems_of({})) == {"searcher.metric", "searcher.max_length", "hyperparameters.global_batch_size"}
    loaded = load_config({}, local=True)
    assert loaded.searcher.max_length.model_dump() == {"batches": 100}


def test_local_length_in_records_needs_a_batch_size() -> None:
    found = problems_of({"searcher": {"max_length": {"records": 50}}}, local=True)
    assert set(found) == {"hyperparameters.global_batch_size"}
    assert "searcher.max_length cannot be counted in batches" in found["hyperparameters.global_batch_size"]


def test_values_that_json_cannot_hold() -> None:
    import datetime

    found = problems_of(
        {"data": {"f": print, "day": datetime.date(2020, 1, 1), "n": float("inf"), "deep": [{"s": {1}}]}}, local=True
    )
    assert set(found) == {"data.f", "data.day", "data.n", "data.deep[0].s"}
    assert "put it in quotes" in found["data.day"]


def test_name_that_is_not_text() -> None:
    assert 'Write it in quotes: "1"' in problems_of({"data": {1: 2}}, local=True)["data"]


def test_configuration_that_contains_itself() -> None:
    data: dict[str, object] = {}
    data["a"] = data["b"] = data
    assert {"data.a", "data.b"} == set(problems_of({"data": data}, local=True))
    assert "contains itself" in problems_of({"data": data}, local=True)["data.a"]


def test_configuration_nested_beyond_reason() -> None:
    data: dict[str, object] = {}
    for _ in range(5_000):
        data = {"a": data}
    (text,) = problems_of({"data": data}, local=True).values()
    assert "nested more than" in text


def test_values_that_json_cannot_hold_are_listed_beside_other_problems() -> None:
    config = {
        "searcher": {"metric": print, "max_length": 5},
        "scheduling_unit": 0,
        "hyperparameters": {"a": float("nan")},
    }
    assert set(problems_of(config)) == {
        "searcher.metric",
        "scheduling_unit",
        "hyperparameters.a",
        "hyperparameters.global_batch_size",
    }


@pytest.mark.parametrize(
    ("searcher", "expected"),
    [
        (
            {"name": "singel", "max_lenght": {"batches": 4}, "metric": "loss"},
            {"searcher.name", "searcher.max_lenght", "searcher.max_length"},
        ),
        (
            {"name": "randm", "metrik": "loss", "smaller_is_better": "yes", "max_length": {"batches": 4}},
            {"searcher.name", "searcher.metrik", "searcher.metric", "searcher.smaller_is_better"},
        ),
        # What another kind of searcher takes may be right, once the name is.
        (
            {"name": "randm", "metric": "loss", "max_length": {"batches": 4}, "max_trials": 4},
            {"searcher.name"},
        ),
    ],
)
def test_a_misspelled_kind_hides_no_other_mistake(searcher: dict[str, object], expected: set[str]) -> None:
    config = {"searcher": searcher, "hyperparameters": {"global_batch_size": 4}}
    assert set(problems_of(config)) == expected
