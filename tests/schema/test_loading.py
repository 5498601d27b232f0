"""Reading a configuration from everything that users give, and completing it."""

from __future__ import annotations

import json
import sys
import tracemalloc
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import ArgumentError, ConfigurationError, Problem, UnsupportedFeatureError
from det_native.experimental.directories import changed
from det_native.frameworks import get_framework
from det_native.schema import yaml_text
from det_native.schema.lengths import UNTOLD
from det_native.schema.loading import ConfigurationWarning, load_config, refuse_unsupported
from det_native.schema.manifests import Framework
from det_native.schema.reading import read

YAML = """
description: from YAML
searcher:
  name: random
  max_trials: 2
  metric: val_loss
  max_length: {batches: 10}
hyperparameters:
  global_batch_size: 32
  lr: {type: double, minval: 1e-4, maxval: 1e-2}
"""
FIELDS: dict[str, Any] = {
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 10}},
    "hyperparameters": {"global_batch_size": 32},
}
FILLS = {
    "searcher.max_length": {"epochs": 5},
    "records_per_epoch": 1437,
    "hyperparameters.global_batch_size": 32,
    "searcher.metric": "val_loss",
}


@pytest.fixture(autouse=True)
def _no_unexpected_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def problem_of(config: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_config(config)
    return str(caught.value)


def test_dictionary_text_and_paths_give_the_same(tmp_path: Path) -> None:
    expected = load_config(YAML)
    as_yaml, as_json = tmp_path / "config.yaml", tmp_path / "config.JSON"
    as_yaml.write_text(YAML, encoding="utf-8-sig")
    as_json.write_text(json.dumps(expected.model_dump(mode="json"), indent="\t"))
    assert expected.description == "from YAML"
    for given_config in (expected.model_dump(mode="json"), as_yaml, str(as_yaml), as_json, str(as_json), expected):
        assert load_config(given_config) == expected


def test_path_from_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "config.yml").write_text(YAML)
    assert load_config("~/config.yml").description == "from YAML"


@pytest.mark.parametrize("number", ["1e-4", "1E-4", "1.e-4", ".1e-3", "+1e-4", "0.0001"])
def test_numbers_of_yaml_with_an_exponent_are_numbers(number: str) -> None:
    config = f"hyperparameters: {{lr: {{type: double, minval: {number}, maxval: 1}}}}"
    loaded = load_config(config, local=True, warn=False).model_dump()
    assert loaded["hyperparameters"]["lr"]["minval"] == pytest.approx(1e-4)


@pytest.mark.parametrize("empty", [None, {}, "", "# nothing\n"])
def test_nothing_is_an_empty_configuration(empty: Any) -> None:
    assert load_config(empty, local=True) == load_config({}, local=True)


def test_one_line_of_yaml_that_ends_like_a_path_is_yaml() -> None:
    assert load_config("description: see config.yaml", local=True).description == "see config.yaml"


def test_missing_file_is_named() -> None:
    assert "nowhere.yaml: there is no such file" in problem_of("nowhere.yaml")
    assert "nowhere.json: there is no such file" in problem_of(Path("nowhere.json"))


def test_folder_and_binary_file_are_refused(tmp_path: Path) -> None:
    assert "cannot be read" in problem_of(tmp_path)
    binary = tmp_path / "a.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in problem_of(binary)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [1", "line 1, column 6"),
        ("searcher:\n  name: single\n bad: 1", "line 3, column 2"),
        ("searcher:\n\tname: single", "line 2, column 1"),
    ],
)
def test_error_of_yaml_has_its_line(text: str, where: str) -> None:
    assert f"  - {where}: is not YAML" in problem_of(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: cannot be used: a is given twice"),
        ("a: !!python/object/apply:os.getcwd []", "line 1, column 4: cannot be used: could not determine"),
        ("a: 2026-13-01", "cannot be used: month must be in 1..12"),
    ],
)
def test_yaml_of_which_nothing_can_be_made_is_not_said_to_be_something_else(text: str, says: str) -> None:
    assert f"  - {says}" in problem_of(text)


BOMB = "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
MERGED = "a0: &a0 {x0: 1}\n" + "".join(
    f"a{n}: &a{n} {{'<<': [{', '.join([f'*a{n - 1}'] * 9)}], x{n}: 1}}\n" for n in range(1, 10)
)


@pytest.mark.parametrize("text", [BOMB, MERGED.replace("'<<'", "<<")])
def test_aliases_that_expand_to_too_much_are_refused_before_they_do(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bomb.yaml"
    file.write_text(text)
    tracemalloc.start()
    try:
        for bomb in (text, file):
            assert ": cannot be used: the aliases (*name) here expand to more than" in problem_of(bomb)
        with pytest.raises(ArgumentError, match=r"aliases .* expand to more than"):
            changed(file, [])
        file.write_text("searcher: {}")
        with pytest.raises(ArgumentError, match=r"aliases .* expand to more than"):
            changed(file, [f"searcher={{{text.replace(chr(10), ', ')}}}"])
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_aliases_in_reason_and_large_plain_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "ALIASED_LIMIT", 10_000)  # a tenth, for PyYAML takes seconds to read so much
    file = tmp_path / "large.yaml"
    base = "data:\n  base: &base {rate: 1e-4, units: 8}\n  other: {<<: *base, units: 4}\n"
    file.write_text(base + "  rows:\n" + "  - *base\n" * 200 + "  numbers: [" + "1, " * 15_000 + "1]\n")
    data = changed(file, ["data.learning_rate=1e-4"])["data"]
    assert data["other"] == {"rate": 1e-4, "units": 4}
    assert (len(data["rows"]), len(data["numbers"]), data["learning_rate"]) == (200, 15_001, 1e-4)


@pytest.mark.parametrize(("text", "said"), [("a: 2026-13-01", "month"), ("a: " + "1" * 5_000, "digits")])
def test_values_that_are_not_what_they_look_like_are_told(text: str, said: str, tmp_path: Path) -> None:
    assert said in problem_of(text)
    if said == "digits":
        file = tmp_path / "a.json"
        file.write_text(f'{{"a": {text[3:]}}}')
        assert said in problem_of(file)


def test_error_of_json_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{\n  "a": 1,\n}')
    # Python 3.13 points at the comma.
    assert ("line 3, column 1" if sys.version_info < (3, 13) else "line 2, column 9") in problem_of(path)
    path.write_text('{"a": 1, "a": 2}')
    assert "a: is given twice" in problem_of(path)
    path.write_text("[" * 200_000)
    assert "nested too deeply" in problem_of(path)


@pytest.mark.parametrize("other", ["const", "[1, 2]", 5, ["a"]])
def test_what_is_no_mapping_is_refused(other: Any) -> None:
    assert "fields with values" in problem_of(other)


def test_numpy_tuples_and_paths_become_plain(tmp_path: Path) -> None:
    config = {
        "records_per_epoch": np.int64(7),
        "data": {"shape": (1, np.float32(0.5)), "path": tmp_path},
    }
    loaded = load_config(config, local=True)
    assert loaded.data == {"shape": [1, 0.5], "path": str(tmp_path)}
    assert type(loaded.records_per_epoch) is int


def test_fills_complete_an_empty_configuration() -> None:
    loaded = load_config(None, fills=FILLS)
    assert loaded.model_dump(mode="json")["searcher"]["max_length"] == {"epochs": 5}
    assert (loaded.metric, loaded.records_per_epoch, loaded.searcher.name) == ("val_loss", 1437, "single")


def test_configuration_wins_over_fills_with_one_warning() -> None:
    config = {
        "searcher": {"name": "single", "metric": "val_accuracy", "max_length": {"epochs": 2}},
        "hyperparameters": {"global_batch_size": 64},
        "records_per_epoch": 1437,
    }
    with pytest.warns(ConfigurationWarning) as caught:
        loaded = load_config(config, fills=FILLS)
    assert [str(warning.message) for warning in caught] == [
        "The configuration wins where it and the call differ: "
        "searcher.max_length: 2 epochs in the configuration, 5 epochs in the call; "
        "hyperparameters.global_batch_size: 64 in the configuration, 32 in the call."
    ]
    assert caught[0].filename == __file__
    assert loaded.metric == "val_accuracy"
    assert loaded.model_dump(mode="json")["searcher"]["max_length"] == {"epochs": 2}


@pytest.mark.parametrize(
    ("config", "fills"),
    [
        ({"hyperparameters": {"global_batch_size": {"type": "const", "val": 32}}}, FILLS),
        ({"searcher": {"max_length": 224}}, FILLS),
        ({"searcher": {"max_length": 5}}, {**FILLS, "searcher.max_length": {"batches": 5}}),
        ({"searcher": {"max_steps": 2}}, {**FILLS, "searcher.max_length": {"batches": 200}}),
        ({}, {**FILLS, "min_validation_period": None}),
    ],
)
def test_agreement_is_silent(config: dict[str, Any], fills: dict[str, Any]) -> None:
    load_config(config, fills=fills)


def test_defaults_of_the_caller_never_warn_and_come_after_fills() -> None:
    loaded = load_config(
        {"records_per_epoch": 5},
        fills={"searcher.metric": "a", "searcher.max_length": 3},
        defaults={"records_per_epoch": 6, "searcher.max_length": 4, "hyperparameters.global_batch_size": 8},
    )
    assert loaded.records_per_epoch == 5
    assert loaded.searcher.max_length.units == 3
    assert loaded.model_dump()["hyperparameters"]["global_batch_size"]["val"] == 8


def test_bad_fill_is_a_problem_at_its_path() -> None:
    with pytest.raises(ConfigurationError, match=r"records_per_epoch: must be at least 0, not -1"):
        load_config(FIELDS, fills={"records_per_epoch": -1})


def test_the_callers_dictionaries_are_left_alone() -> None:
    config: dict[str, Any] = {"searcher": {"name": "single"}, "hyperparameters": {}}
    load_config(config, fills=FILLS)
    assert config == {"searcher": {"name": "single"}, "hyperparameters": {}}


def test_length_is_not_filled_into_a_searcher_without_one() -> None:
    pbt = {
        "name": "pbt",
        "population_size": 2,
        "num_rounds": 2,
        "length_per_round": 3,
        "replace_function": {"truncate_fraction": 0.5},
        "explore_function": {"resample_probability": 0, "perturb_factor": 0},
    }
    assert load_config({"searcher": pbt}, fills=FILLS).searcher.max_length.units == 6


SPACE = {
    "global_batch_size": 8,
    "lr": {"type": "log", "minval": -3, "maxval": -1},
    "net": {"units": {"type": "int", "minval": 4, "maxval": 64}, "act": {"type": "categorical", "vals": ["relu"]}},
}


@pytest.mark.parametrize(("local", "searcher"), [(False, {"name": "single"}), (True, {"name": "single"}), (True, {})])
def test_ranges_that_the_searcher_single_does_not_search_are_named(local: bool, searcher: dict[str, str]) -> None:
    config = {**FIELDS, "searcher": {**FIELDS["searcher"], **searcher}, "hyperparameters": SPACE}
    with pytest.warns(ConfigurationWarning) as caught:
        load_config(config, local=local)
    assert [str(one.message) for one in caught] == [
        "searcher.name is 'single', which searches nothing: hyperparameters.lr, hyperparameters.net.units get random "
        "values of their ranges. To search, set searcher.name: random and searcher.max_trials: 10. To train once, "
        "give each a value, such as lr: 0.001."
    ]
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("searcher", "space"),
    [
        ({"name": "random", "max_trials": 3}, SPACE),
        (
            {"name": "single"},
            {"global_batch_size": 8, "act": {"type": "categorical", "vals": ["relu"]}, "net": {"n": 1}},
        ),
    ],
)
def test_a_search_and_single_values_have_no_warning(searcher: dict[str, Any], space: dict[str, Any]) -> None:
    load_config({**FIELDS, "searcher": {**FIELDS["searcher"], **searcher}, "hyperparameters": space})


def test_fields_without_effect_are_listed_in_one_warning() -> None:
    config = {
        **FIELDS,
        "environment": {"image": "i", "pod_spec": {}, "environment_variables": ["A=1"], "force_pull_image": True},
        "bind_mounts": [{"host_path": "/a", "container_path": "b"}],
        "resources": {"shm_size": 5, "agent_label": "x", "weight": 2, "priority": 5, "native_parallel": True},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/a", "container_path": "/b"},
        "optimizations": {"average_training_metrics": True, "gradient_compression": True},
        "slurm": {"gpu_type": "tesla"},
        "workspace": "w",
        "entrypoint": "model:Trial",
        "profiling": {"enabled": False, "begin_on_batch": 5},
        "log_policies": [{"pattern": "x"}],
        "security": {},
    }
    with pytest.warns(ConfigurationWarning) as caught:
        load_config(config)
    assert len(caught) == 1
    text = str(caught[0].message)
    for path in (
        "environment.image",
        "environment.pod_spec",
        "environment.force_pull_image",
        "bind_mounts",
        "resources.shm_size",
        "resources.agent_label",
        "resources.native_parallel",
        "checkpoint_storage.container_path",
        "optimizations.average_training_metrics",
        "optimizations.gradient_compression",
        "slurm",
        "workspace",
        "entrypoint",
        "profiling.begin_on_batch",
        "log_policies",
        "security",
    ):
        assert path in text
    for path in ("environment_variables", "weight", "priority", "host_path", "profiling.enabled"):
        assert path not in text


def test_fields_without_effect_for_one_framework_are_listed_there_and_say_so() -> None:
    config = {
        **FIELDS,
        "optimizations": {"aggregation_frequency": 4, "torch_compile": True},
        "slurm": {"gpu_type": "tesla"},
    }
    with pytest.warns(ConfigurationWarning) as caught:
        load_config(config, framework="keras")
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "optimizations.torch_compile (for Keras: " in text
    assert "aggregation" not in text
    assert "slurm" in text
    load_config({**config, "slurm": None}, framework="torch")


def test_what_tunes_horovod_has_an_effect_only_where_it_is_used() -> None:
    tuned = {"tensor_fusion_threshold": 8, "tensor_fusion_cycle_time": 1}
    horovod = {"distributed": {"backend": "horovod"}}
    two = {"resources": {"slots_per_trial": 2}}

    def warned(*parts: dict[str, Any]) -> str:
        config = {**FIELDS, "optimizations": tuned}
        for part in parts:
            config |= part
        with pytest.warns(ConfigurationWarning) as caught:
            load_config(config, framework="torch")
        (text,) = [str(each.message) for each in caught]
        return text

    both = "optimizations.tensor_fusion_threshold, optimizations.tensor_fusion_cycle_time"
    assert f"{both} (it tunes Horovod, which distributed.backend: horovod uses on several slots)" in warned(two)
    alone = warned(horovod)
    assert f"{both} (it tunes Horovod" in alone
    assert "distributed.backend (a trial on one slot exchanges no gradients)" in alone
    automatic = {"optimizations": {**tuned, "auto_tune_tensor_fusion": True}}
    text = warned(horovod, two, automatic)
    assert f"here: {both} (optimizations.auto_tune_tensor_fusion finds it out)." in text
    for optimizations in (tuned, {"auto_tune_tensor_fusion": True}):
        load_config({**FIELDS, **horovod, **two, "optimizations": optimizations}, framework="torch")


def test_fields_without_effect_in_a_local_run_are_listed_there_and_say_so() -> None:
    config = {
        **FIELDS,
        "environment": {"environment_variables": ["A=1"]},
        "resources": {"priority": 5, "weight": 2, "max_slots": 3},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/a"},
        "max_restarts": 0,
    }
    load_config(config, framework="torch")
    with pytest.warns(ConfigurationWarning) as caught:
        load_config(config, framework="torch", local=True)
    (text,) = [str(each.message) for each in caught]
    assert "resources.max_slots, resources.priority, resources.weight (a local run trains in this process" in text
    assert "max_restarts (a local run trains in this process, and cannot begin again)" in text
    assert "checkpoint_storage" not in text
    assert "environment.environment_variables (a local run has the environment of this process)" in text


def test_fields_at_their_default_are_not_listed() -> None:
    load_config({**FIELDS, "bind_mounts": [], "environment": {"force_pull_image": False}, "internal": None})


def test_warnings_can_be_left_out() -> None:
    load_config({**FIELDS, "slurm": {"gpu_type": "x"}}, fills={"searcher.max_length": 1}, warn=False)


def test_local_run_has_one_slot() -> None:
    with pytest.warns(ConfigurationWarning, match="a local run has one slot"):
        loaded = load_config({**FIELDS, "resources": {"slots_per_trial": 4}}, local=True)
    assert loaded.resources.slots_per_trial == 1
    assert load_config({**FIELDS, "resources": {"slots_per_trial": 4}}).resources.slots_per_trial == 4


# Keras 3 does, on other backends than TensorFlow.
KERAS_ON_ONE_SLOT = bool(get_framework("keras").one_slot)
REFUSED = [
    ({"data_layer": {"type": "gcs", "bucket": "b", "bucket_directory_path": "p"}}, "data_layer: gcs"),
]


@pytest.mark.parametrize(("fields", "text"), REFUSED)
def test_what_comes_later_is_refused_by_name(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        refuse_unsupported(load_config({**FIELDS, **fields}), "keras")
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"searcher": {"name": "random", "metric": "m", "max_length": 5, "max_trials": 2}},
        {"searcher": {"name": "grid", "metric": "m", "max_length": 5}},
        {"optimizations": {"aggregation_frequency": 4}},
        {"checkpoint_storage": {"type": "shared_fs", "host_path": "/data"}},
        {"resources": {"slots_per_trial": 2}},
    ],
)
@pytest.mark.parametrize("framework", ["torch", "keras", None])
def test_what_runs_now_is_not_refused(fields: dict[str, Any], framework: Framework | None) -> None:
    if "resources" in fields and framework == "keras" and KERAS_ON_ONE_SLOT:
        with pytest.raises(UnsupportedFeatureError, match=r"slots_per_trial: 2 is refused: Keras 3 on .* on one slot"):
            refuse_unsupported(load_config({**FIELDS, **fields}), framework)
        return
    refuse_unsupported(load_config({**FIELDS, **fields}), framework)


def test_a_search_in_parts_needs_a_length_also_where_the_code_has_its_own() -> None:
    halving = {"name": "async_halving", "metric": "m", "num_rungs": 2, "max_trials": 2}
    for searcher, refused in ((halving, True), ({"name": "single", "metric": "m"}, False)):
        config = load_config(
            {"searcher": searcher},
            framework="tf_estimator",
            defaults={"searcher.max_length": {"batches": UNTOLD.units}},
        )
        with pytest.raises(UnsupportedFeatureError, match=r"searcher\.max_length") if refused else nullcontext():
            refuse_unsupported(config, "tf_estimator")


def test_what_one_framework_only_runs_is_refused_for_the_others() -> None:
    precision = load_config({**FIELDS, "optimizations": {"mixed_precision": "O1"}})
    refuse_unsupported(precision, "keras")
    with pytest.raises(UnsupportedFeatureError, match=r"optimizations\.mixed_precision: O1 is refused"):
        refuse_unsupported(precision, "torch")
    sharded = load_config({**FIELDS, "distributed": {"strategy": "fsdp"}, "resources": {"slots_per_trial": 2}})
    refuse_unsupported(sharded, "torch")
    with pytest.raises(UnsupportedFeatureError, match=r"distributed\.strategy: fsdp is refused: .* not of keras"):
        refuse_unsupported(sharded, "keras")
    for framework in ("torch", "estimator") if KERAS_ON_ONE_SLOT else ("torch", "keras", "estimator"):
        refuse_unsupported(load_config({**FIELDS, "resources": {"slots_per_trial": 2}}), framework)


def problems_found(config: Any, **arguments: Any) -> Sequence[Problem]:
    try:
        load_config(config, warn=False, **arguments)
    except ConfigurationError as error:
        return error.problems
    return ()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELD_NAMES = st.sampled_from(
    ["searcher", "hyperparameters", "resources", "environment", "min_validation_period", "checkpoint_storage",
     "data_layer", "log_policies", "bind_mounts", "entrypoint", "labels", "batches_per_step", "optimizations", "slurm"]
)  # fmt: skip
_INNER_NAMES = st.sampled_from(
    ["name", "type", "metric", "max_length", "max_steps", "max_trials", "image", "environment_variables", "epochs",
     "slots_per_trial", "lr", "global_batch_size", "minval", "maxval", "vals", "host_path", "batches"]
)  # fmt: skip
_VALUES = st.one_of(
    _JSON,
    st.dictionaries(_INNER_NAMES, _JSON | st.sampled_from(["single", "grid", "pbt", "int", "s3"]), max_size=4),
    st.dictionaries(_INNER_NAMES, st.dictionaries(_INNER_NAMES, _JSON | st.sampled_from(["int", "log"]), max_size=3)),
    st.lists(st.dictionaries(_INNER_NAMES, _JSON, max_size=2), max_size=2),
)


@given(st.dictionaries(_FIELD_NAMES | st.text(max_size=5), _VALUES, max_size=4), st.booleans())
def test_anything_is_either_loaded_or_refused_with_paths(config: dict[str, Any], local: bool) -> None:
    for problem in problems_found(config, local=local, fills=FILLS):
        assert problem.where
        assert "Value error" not in problem.what
        assert "Input" not in problem.what
        assert "is not valid" not in problem.what


@given(st.text(max_size=60))
def test_any_text_is_either_loaded_or_refused(text: str) -> None:
    assert all(problem.what for problem in problems_found(text, local=True))


def test_what_was_read_once_is_a_copy_that_still_reports_everything() -> None:
    data = {"deep": [1], "f": print}
    config = {"data": data, "scheduling_unit": 0}
    copied = read(config).raw
    data["deep"].append(2)  # type: ignore[attr-defined]
    assert copied["data"]["deep"] == [1]
    assert {problem.where for problem in problems_found(copied, local=True)} == {"data.f", "scheduling_unit"}
