"""Every field of an experiment configuration: its default, what it accepts, what it refuses and how."""

from __future__ import annotations

import json
from typing import Any

import pytest
from configurations import MINIMAL, SHARED, configurations, load, with_field
from hypothesis import given

from det_native.errors import ConfigurationError
from det_native.schema.config import ExperimentConfig
from det_native.schema.lengths import Length
from det_native.schema.loading import load_config

ASHA = {"name": "adaptive_asha", "metric": "m", "max_length": 64, "max_trials": 16}
ADAPTIVE = {"name": "adaptive", "metric": "m", "max_length": 64, "budget": 640}
SIMPLE = {"name": "adaptive_simple", "metric": "m", "max_length": 64, "max_trials": 16}
ASYNC = {"name": "async_halving", "metric": "m", "max_length": 64, "max_trials": 16, "num_rungs": 3}
SYNC = {"name": "sync_halving", "metric": "m", "max_length": 64, "budget": 640, "num_rungs": 3}
RANDOM = {"name": "random", "metric": "m", "max_length": 64, "max_trials": 3}
GRID = {"name": "grid", "metric": "m", "max_length": 64}
PBT = {
    "name": "pbt",
    "metric": "m",
    "population_size": 4,
    "num_rounds": 3,
    "length_per_round": {"batches": 10},
    "replace_function": {"truncate_fraction": 0.2},
    "explore_function": {"resample_probability": 0.2, "perturb_factor": 0.2},
}


def dumped(config: ExperimentConfig, path: str) -> Any:
    value: Any = config.model_dump(mode="json")
    for name in path.split("."):
        value = value[name]
    return value


DEFAULTS = {
    "name": None,
    "description": None,
    "labels": [],
    "data": {},
    "entrypoint": None,
    "searcher.smaller_is_better": True,
    "searcher.source_trial_id": None,
    "searcher.source_checkpoint_uuid": None,
    "scheduling_unit": 100,
    "records_per_epoch": 0,
    "min_validation_period": {"batches": 0},
    "min_checkpoint_period": {"batches": 0},
    "perform_initial_validation": False,
    "checkpoint_policy": "best",
    "max_restarts": 5,
    "checkpoint_storage.save_experiment_best": 0,
    "checkpoint_storage.save_trial_best": 1,
    "checkpoint_storage.save_trial_latest": 1,
    "resources.slots_per_trial": 1,
    "resources.weight": 1.0,
    "resources.max_slots": None,
    "resources.native_parallel": False,
    "resources.allow_cpu": False,
    "resources.shm_size": None,
    "resources.priority": None,
    "optimizations.aggregation_frequency": 1,
    "optimizations.average_aggregated_gradients": True,
    "optimizations.average_training_metrics": False,
    "optimizations.gradient_compression": False,
    "optimizations.mixed_precision": "O0",
    "optimizations.tensor_fusion_threshold": 64,
    "optimizations.tensor_fusion_cycle_time": 5,
    "optimizations.auto_tune_tensor_fusion": False,
    "optimizations.torch_compile.enabled": False,
    "optimizations.torch_compile.backend": "inductor",
    "optimizations.torch_compile.mode": "default",
    "optimizations.torch_compile.dynamic": False,
    "optimizations.torch_compile.fullgraph": False,
    "distributed.backend": "torch",
    "distributed.strategy": "ddp",
    "distributed.fsdp_layers": [],
    "distributed.roles": {},
    "distributed.trusted_network": False,
    "distributed.interface": None,
    "bind_mounts": [],
    "environment.force_pull_image": False,
    "environment.environment_variables": {"cpu": [], "cuda": [], "rocm": []},
    "reproducibility.experiment_seed": None,
    "data_layer.type": "shared_fs",
    "profiling.enabled": True,
    "profiling.period": 5.0,
}


@pytest.mark.parametrize(("path", "default"), DEFAULTS.items())
def test_default(path: str, default: Any) -> None:
    assert dumped(load(MINIMAL), path) == default


@pytest.mark.parametrize("path", [path for path in DEFAULTS if not path.startswith("data_layer")])
def test_null_means_the_default(path: str) -> None:
    assert dumped(load(with_field(path, None)), path) == DEFAULTS[path]


@pytest.mark.parametrize(
    ("searcher", "defaults"),
    [
        (RANDOM, {"max_concurrent_trials": 0}),
        (GRID, {"max_concurrent_trials": 0}),
        (SYNC, {"divisor": 4.0, "train_stragglers": True}),
        (ASYNC, {"divisor": 4.0, "max_concurrent_trials": 0, "stop_once": False}),
        (ADAPTIVE, {"divisor": 4.0, "mode": "standard", "max_rungs": 5, "train_stragglers": True, "bracket_rungs": []}),
        (SIMPLE, {"divisor": 4.0, "mode": "standard", "max_rungs": 5}),
        (ASHA, {"divisor": 4.0, "mode": "standard", "max_rungs": 5, "max_concurrent_trials": 0}),
        (PBT, {"smaller_is_better": True}),
    ],
    ids=lambda value: value.get("name", "") if isinstance(value, dict) else "",
)
def test_defaults_of_searchers(searcher: dict[str, Any], defaults: dict[str, Any]) -> None:
    loaded = load({**MINIMAL, "searcher": searcher}).searcher
    assert {name: getattr(loaded, name) for name in defaults} == defaults
    assert loaded.name == searcher["name"]
    assert isinstance(loaded.max_length, Length)


def test_length_of_a_pbt_trial_is_that_of_all_rounds() -> None:
    assert load({**MINIMAL, "searcher": PBT}).searcher.max_length == Length.model_validate({"batches": 30})


ACCEPTED = [
    ("name", "digits", "digits"),
    ("labels", {"a": True, "b": False}, ["a"]),
    ("data", {"url": "x", "deep": {"list": [1, None]}}, {"url": "x", "deep": {"list": [1, None]}}),
    ("entrypoint", "model:Trial", "model:Trial"),
    ("entrypoint", ["python", "train.py"], ["python", "train.py"]),
    ("searcher.max_length", 500, {"batches": 500}),
    ("searcher.max_length", {"records": 5}, {"records": 5}),
    ("min_validation_period", 10, {"batches": 10}),
    ("checkpoint_storage", SHARED, {**SHARED, "propagation": "rprivate"}),
    ("checkpoint_storage", {**SHARED, "storage_path": "/data/mine"}, {"storage_path": "/data/mine"}),
    ("checkpoint_storage", {"type": "s3", "bucket": "b", "access_key": "a", "secret_key": "s"}, {"bucket": "b"}),
    ("checkpoint_storage", {"type": "gcs", "bucket": "b", "prefix": "p"}, {"prefix": "p"}),
    ("checkpoint_storage", {"type": "hdfs", "hdfs_url": "u", "hdfs_path": "/p", "user": "me"}, {"user": "me"}),
    ("checkpoint_storage", {"type": "azure", "container": "c", "account_url": "u"}, {"container": "c"}),
    ("checkpoint_storage", {"type": "directory", "container_path": "/c"}, {"container_path": "/c"}),
    ("checkpoint_storage", {"save_trial_best": 4}, {"type": None, "save_trial_best": 4}),
    ("resources", {"slots_per_trial": 2, "max_slots": 2, "slots": 1}, {"slots_per_trial": 2, "slots": 1}),
    ("resources.shm_size", "1.5G", "1.5G"),
    ("resources.shm_size", 4294967296, 4294967296),
    ("resources.weight", 2, 2.0),
    ("resources.devices", ["/dev/a:/dev/b", {"host_path": "/dev/a"}], ["/dev/a:/dev/b", {"host_path": "/dev/a"}]),
    ("optimizations.mixed_precision", "O2", "O2"),
    ("optimizations.torch_compile", True, {"enabled": True, "mode": "default"}),
    ("optimizations.torch_compile", False, {"enabled": False}),
    ("optimizations.torch_compile", {"mode": "max-autotune"}, {"enabled": True, "mode": "max-autotune"}),
    ("optimizations.torch_compile", {"enabled": False, "dynamic": True}, {"enabled": False, "dynamic": True}),
    ("optimizations.torch_compile", {"options": {"epilogue_fusion": True}}, {"options": {"epilogue_fusion": True}}),
    (
        "distributed",
        {"strategy": "fsdp", "fsdp_layers": ["Block"]},
        {
            "backend": "torch",
            "strategy": "fsdp",
            "fsdp_layers": ["Block"],
            "roles": {},
            "trusted_network": False,
            "interface": None,
        },
    ),
    (
        "distributed",
        {"backend": "horovod"},
        {
            "backend": "horovod",
            "strategy": "ddp",
            "fsdp_layers": [],
            "roles": {},
            "trusted_network": False,
            "interface": None,
        },
    ),
    ("distributed.interface", "enp3s0f1", "enp3s0f1"),
    ("environment.image", "name", {"cpu": "name", "cuda": "name", "rocm": "name"}),
    ("environment.image", {"cpu": "c", "gpu": "g"}, {"cpu": "c", "cuda": "g", "rocm": None}),
    ("environment.environment_variables", ["A=1"], {"cpu": ["A=1"], "cuda": ["A=1"], "rocm": ["A=1"]}),
    ("environment.environment_variables", {"gpu": ["A=1"]}, {"cpu": [], "cuda": ["A=1"], "rocm": []}),
    ("environment.registry_auth", {"username": "u", "password": "p"}, {"username": "u", "password": "p"}),
    ("environment.pod_spec", {"spec": {"containers": [None]}}, {"spec": {"containers": [None]}}),
    ("environment.ports", {"web": 80}, {"web": 80}),
    ("environment.add_capabilities", ["SYS_PTRACE"], ["SYS_PTRACE"]),
    ("bind_mounts", [{"host_path": "/a", "container_path": "b"}], None),
    ("reproducibility.experiment_seed", 2**31 - 1, 2**31 - 1),
    ("data_layer", {"type": "s3", "bucket": "b", "bucket_directory_path": "p"}, {"bucket": "b"}),
    ("data_layer", {"type": "gcs", "bucket": "b", "bucket_directory_path": "p"}, {"bucket": "b"}),
    ("data_layer", {"host_storage_path": "/a", "container_storage_path": "/b"}, {"type": "shared_fs"}),
    ("profiling", {"enabled": True, "begin_on_batch": 1, "end_after_batch": 1}, {"enabled": True}),
    ("log_policies", [{"pattern": ".*memory.*", "action": {"type": "cancel_retries"}}], None),
    ("log_policies", [{"name": "n", "pattern": "x", "action": "exclude_node"}], None),
    ("log_retention_days", -1, -1),
    ("retention_policy", {"log_retention_days": 5}, {"log_retention_days": 5}),
    ("integrations", {"webhooks": {"exclude": True}}, {"webhooks": {"exclude": True}}),
    ("preemption_timeout", 60, 60),
    ("slurm", {"sbatch_args": ["-x"], "slots_per_node": 2}, {"slots_per_node": 2}),
    ("pbs", {"pbsbatch_args": ["-x"]}, {"pbsbatch_args": ["-x"]}),
    ("debug", True, True),
    ("internal", {"native": {"command": ["a.py"]}}, {"native": {"command": ["a.py"]}}),
    ("security", {"kerberos": {"config_file": "f"}}, {"kerberos": {"config_file": "f"}}),
]


@pytest.mark.parametrize(("path", "value", "normal"), ACCEPTED)
def test_accepted(path: str, value: Any, normal: Any) -> None:
    found = dumped(load(with_field(path, value)), path)
    if isinstance(normal, dict) and isinstance(found, dict):
        assert {name: found.get(name) for name in normal} == normal
    elif normal is not None:
        assert found == normal


def test_a_project_needs_no_workspace() -> None:
    loaded = load({**MINIMAL, "project": "vision/digits"})
    assert (loaded.workspace, loaded.project) == (None, "vision/digits")


REFUSED = [
    ("name", 5, "name", "must be text, not 5"),
    ("labels", "a", "labels", "must be a list"),
    ("data", [], "data", "must be fields with values"),
    ("entrypoint", 5, "entrypoint", "must be text or a list, not 5"),
    ("scheduling_unit", 0, "scheduling_unit", "must be at least 1, not 0"),
    ("scheduling_unit", "100", "scheduling_unit", "Write 100 without quotes"),
    ("scheduling_unit", 2.5, "scheduling_unit", "must be a whole number, not 2.5"),
    ("scheduling_unit", True, "scheduling_unit", "must be a whole number, not true"),
    ("records_per_epoch", -1, "records_per_epoch", "must be at least 0"),
    ("min_validation_period", {"batches": 1, "epochs": 1}, "min_validation_period", "is not a length"),
    ("min_validation_period", {"epoch": 1}, "min_validation_period.epoch", "Did you mean epochs?"),
    ("min_validation_period", {"batches": "5"}, "min_validation_period.batches", "must be a whole number"),
    ("min_checkpoint_period", "often", "min_checkpoint_period", "is not a length"),
    ("min_checkpoint_period", -1, "min_checkpoint_period", "at least 0, not -1"),
    ("perform_initial_validation", "yes", "perform_initial_validation", "must be true or false"),
    ("checkpoint_policy", "bst", "checkpoint_policy", "Did you mean best?"),
    ("checkpoint_policy", "never", "checkpoint_policy", "must be one of best, all, none"),
    ("max_restarts", -1, "max_restarts", "must be at least 0"),
    ("checkpoint_storage.save_trial_best", -1, "checkpoint_storage.save_trial_best", "must be at least 0"),
    ("checkpoint_storage", {"type": "ftp"}, "checkpoint_storage.type", "must be one of url, shared_fs, directory, s3"),
    ("checkpoint_storage", {"type": "shared_fs"}, "checkpoint_storage.host_path", "is missing"),
    ("checkpoint_storage", {"host_path": "/a"}, "checkpoint_storage.host_path", "type shared_fs"),
    ("checkpoint_storage", {**SHARED, "host_path": "a/b"}, "checkpoint_storage.host_path", "must be an absolute path"),
    ("checkpoint_storage", {**SHARED, "host_path": "~/a"}, "checkpoint_storage.host_path", "another place for each"),
    ("checkpoint_storage", {**SHARED, "host_path": ""}, "checkpoint_storage.host_path", "must not be empty"),
    ("checkpoint_storage", {**SHARED, "storage_path": "../x"}, "checkpoint_storage", "must lie within host_path"),
    ("checkpoint_storage", {**SHARED, "storage_path": "/other"}, "checkpoint_storage", "must lie within host_path"),
    ("checkpoint_storage", {"type": "s3"}, "checkpoint_storage.bucket", "is missing"),
    ("checkpoint_storage", {"type": "hdfs", "hdfs_url": "u", "hdfs_path": "p"}, "checkpoint_storage.hdfs_path", "abs"),
    ("checkpoint_storage", {"type": "azure", "container": "c"}, "checkpoint_storage", "exactly one of"),
    ("resources.slots_per_trial", -1, "resources.slots_per_trial", "must be at least 0"),
    ("resources.weight", 0, "resources.weight", "must be above 0"),
    ("resources", {"slots_per_trial": 4, "max_slots": 2}, "resources", "max_slots (2) must be at least"),
    ("resources.shm_size", -1, "resources.shm_size", "at least 0"),
    ("resources.shm_size", "big", "resources.shm_size", "number of bytes"),
    ("resources.priority", 100, "resources.priority", "must be at most 99"),
    ("resources.priority", 0, "resources.priority", "must be at least 1"),
    ("optimizations.aggregation_frequency", 0, "optimizations.aggregation_frequency", "must be at least 1"),
    ("optimizations.mixed_precision", "o1", "optimizations.mixed_precision", "must be one of O0, O1, O2, O3, mixed_f"),
    ("optimizations.tensor_fusion_threshold", -1, "optimizations.tensor_fusion_threshold", "at least 0"),
    ("optimizations.torch_compile", "yes", "optimizations.torch_compile", "must be true, false, or arguments"),
    ("optimizations.torch_compile", {"mode": "fast"}, "optimizations.torch_compile.mode", "must be one of default"),
    ("optimizations.torch_compile", {"modes": 1}, "optimizations.torch_compile.modes", "is not a field"),
    (
        "optimizations.torch_compile",
        {"mode": "max-autotune", "options": {"a": 1}},
        "optimizations.torch_compile",
        "either mode or options",
    ),
    ("distributed.backend", "horvod", "distributed.backend", "Did you mean horovod?"),
    ("distributed.strategy", "fdsp", "distributed.strategy", "Did you mean fsdp?"),
    ("distributed.fsdp_layers", "Block", "distributed.fsdp_layers", "must be a list"),
    ("distributed.fsdp_layers", ["Block"], "distributed.fsdp_layers", "distributed.strategy is not fsdp"),
    ("distributed.interface", "eth0,eth1", "distributed.interface", "name of one network interface"),
    ("distributed.interface", "", "distributed.interface", "name of one network interface"),
    ("bind_mounts", [{"host_path": "a", "container_path": "b"}], "bind_mounts[0].host_path", "absolute"),
    ("bind_mounts", [{"host_path": "/a", "container_path": "./"}], "bind_mounts[0]", "container_path must not be"),
    ("bind_mounts", [{"host_path": "/a"}], "bind_mounts[0].container_path", "is missing"),
    ("environment.environment_variables", ["A"], "environment.environment_variables", '"NAME=VALUE"'),
    ("environment.environment_variables", {"A": "1"}, "environment.environment_variables.A", "NAME=VALUE"),
    ("environment.environment_variables", {"cpu": ["=x"]}, "environment.environment_variables.cpu", "NAME=VALUE"),
    ("environment.image", 5, "environment.image", "must be the name of an image"),
    ("reproducibility.experiment_seed", 2**31, "reproducibility.experiment_seed", "must be below 2147483648"),
    ("reproducibility.experiment_seed", -1, "reproducibility.experiment_seed", "must be at least 0"),
    ("data_layer", {"type": "s3", "bucket": "b"}, "data_layer.bucket_directory_path", "is missing"),
    ("data_layer", {"host_storage_path": "a"}, "data_layer.host_storage_path", "absolute"),
    ("profiling.period", 0, "profiling.period", "0.1"),
    ("profiling", {"begin_on_batch": 3, "end_after_batch": 2}, "profiling", "must not be above"),
    ("log_policies", [{"pattern": "("}], "log_policies[0].pattern", "must be a regular expression"),
    ("log_retention_days", 40000, "log_retention_days", "must be at most 32767"),
    ("searcher", "single", "searcher", "must be fields with values"),
    ("searcher.name", "singel", "searcher.name", "Did you mean single?"),
    ("searcher.metric", "", "searcher.metric", "must not be empty"),
    ("searcher.metric", None, "searcher.metric", "is missing"),
    ("searcher.max_length", None, "searcher.max_length", "is missing"),
    ("searcher.max_length", 0, "searcher.max_length", "must be at least 1, not 0"),
    ("searcher.max_length", {"epochs": 0}, "searcher.max_length.epochs", "must be at least 1, not 0"),
    ("searcher.max_length", {"epochs": 5}, "records_per_epoch", "searcher.max_length is in epochs"),
    ("min_validation_period", {"epochs": 5}, "records_per_epoch", "min_validation_period is in epochs"),
    ("searcher.smaller_is_better", "no", "searcher.smaller_is_better", "must be true or false"),
    ("searcher.max_trials", 5, "searcher.max_trials", "random"),
    ("searcher", {**RANDOM, "max_trials": 0}, "searcher.max_trials", "must be at least 1"),
    ("searcher", {**RANDOM, "max_trials": None}, "searcher.max_trials", "is missing"),
    ("searcher", {**RANDOM, "source_trial_id": 1, "source_checkpoint_uuid": "u"}, "searcher", "exclude each other"),
    ("searcher", {**ASHA, "mode": "bold"}, "searcher.mode", "aggressive, standard, conservative"),
    ("searcher", {**ASHA, "divisor": 1}, "searcher.divisor", "must be above 1"),
    ("searcher", {**ASHA, "max_rungs": 0}, "searcher.max_rungs", "must be at least 1"),
    ("searcher", {**ASHA, "max_length": None}, "searcher.max_length", "is missing"),
    ("searcher", {**SIMPLE, "max_trials": 2001}, "searcher.max_trials", "must be at most 2000"),
    ("searcher", {**ADAPTIVE, "budget": 64}, "searcher", "must be above max_length"),
    ("searcher", {**ADAPTIVE, "budget": {"records": 999}}, "searcher", "same unit"),
    ("searcher", {**SYNC, "budget": {"records": 999}}, "searcher", "same unit"),
    ("searcher", {**SYNC, "num_rungs": 1000}, "searcher.num_rungs", "must be at most 100"),
    ("searcher", {**ADAPTIVE, "bracket_rungs": [1000]}, "searcher.bracket_rungs[0]", "must be at most 100"),
    ("searcher", {**ASYNC, "divisor": 1e300}, "searcher.divisor", "must be at most 1000"),
    ("searcher", {**SYNC, "num_rungs": None}, "searcher.num_rungs", "is missing"),
    ("searcher", {**ASYNC, "num_rungs": 0}, "searcher.num_rungs", "must be at least 1"),
    ("searcher", {**PBT, "replace_function": {"truncate_fraction": 0.6}}, "searcher.replace_function.truncate", "0.5"),
    ("searcher", {**PBT, "explore_function": {"perturb_factor": 1}}, "searcher.explore_function.resample", "missing"),
    ("searcher", {**PBT, "population_size": None}, "searcher.population_size", "is missing"),
    ("hyperparameters", None, "hyperparameters.global_batch_size", "is missing"),
    ("hyperparameters", [], "hyperparameters", "must be fields with values"),
    ("hyperparameters.global_batch_size", "big", "hyperparameters.global_batch_size", "must be a number"),
    ("hyperparameters.global_batch_size", {"a": 1}, "hyperparameters.global_batch_size", "must be a number"),
    ("hyperparameters.global_batch_size", 0, "hyperparameters.global_batch_size", "must be at least 1 record"),
    (
        "hyperparameters.global_batch_size",
        {"type": "categorical", "vals": [8, "x"]},
        "hyperparameters.global_batch_size",
        "must be a number",
    ),
    ("hyperparameters.a", {"type": "int", "minval": 3, "maxval": 3}, "hyperparameters.a", "must be above minval"),
    ("hyperparameters.a", {"type": "int", "minval": 1.5, "maxval": 3}, "hyperparameters.a.minval", "whole number"),
    ("hyperparameters.a", {"type": "int", "minval": 1}, "hyperparameters.a.maxval", "is missing"),
    ("hyperparameters.a", {"type": "double", "minval": "1", "maxval": 3}, "hyperparameters.a.minval", "without quotes"),
    ("hyperparameters.a", {"type": "log", "minval": 1, "maxval": 400}, "hyperparameters.a", "too large"),
    ("hyperparameters.a", {"type": "log", "minval": 1, "maxval": 2, "base": -1}, "hyperparameters.a.base", "above 0"),
    ("hyperparameters.a", {"type": "double", "minval": 0, "maxval": 1, "count": 0}, "hyperparameters.a.count", "1"),
    ("hyperparameters.a", {"type": "categorical", "vals": []}, "hyperparameters.a.vals", "at least one value"),
    ("hyperparameters.a", {"type": "const"}, "hyperparameters.a.val", "is missing"),
    ("hyperparameters.a", {"type": "integer", "minval": 1, "maxval": 2}, "hyperparameters.a.type", "Did you mean int?"),
    ("hyperparameters.g", {"a": {"type": "int", "minval": 5, "maxval": 1}}, "hyperparameters.g.a", "above minval"),
    ("hyperparameters.a", {"type": "int", "minval": 1, "maxval": 2, "steps": 1}, "hyperparameters.a.steps", "Known"),
]


@pytest.mark.parametrize(("path", "value", "where", "text"), REFUSED)
def test_refused(path: str, value: Any, where: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(with_field(path, value))
    problems = [problem for problem in caught.value.problems if problem.where.startswith(where)]
    assert problems, caught.value
    assert any(text in str(problem) for problem in problems), caught.value
    assert len(caught.value.problems) == 1, caught.value


@pytest.mark.parametrize(
    "path",
    [
        "unheard_of",
        "searcher.unheard_of",
        "resources.unheard_of",
        "environment.unheard_of",
        "optimizations.unheard_of",
        "checkpoint_storage.unheard_of",
        "data_layer.unheard_of",
        "reproducibility.unheard_of",
        "profiling.unheard_of",
        "slurm.unheard_of",
        "distributed.unheard_of",
        "optimizations.torch_compile.unheard_of",
    ],
)
def test_unknown_field_is_refused_everywhere(path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(with_field(path, 1))
    assert [problem.where for problem in caught.value.problems] == [path]
    assert "is not a field" in caught.value.problems[0].what


def test_batch_smaller_than_the_slots_is_refused() -> None:
    config = {**MINIMAL, "hyperparameters": {"global_batch_size": 2}, "resources": {"slots_per_trial": 4}}
    with pytest.raises(
        ConfigurationError, match=r"global_batch_size: \(2\) must be at least resources.slots_per_trial"
    ):
        load(config)


@pytest.mark.parametrize(
    ("other", "where", "text"),
    [
        ({"optimizations": {"torch_compile": True}}, "optimizations.torch_compile", "Leave one out"),
        ({"optimizations": {"torch_compile": {"dynamic": True}}}, "optimizations.torch_compile", "Leave one out"),
        ({"resources": {"native_parallel": True, "slots_per_trial": 2}}, "distributed.strategy", "makes one process"),
    ],
)
def test_what_does_not_go_with_sharded_models_is_refused(other: dict[str, Any], where: str, text: str) -> None:
    config = {**MINIMAL, "distributed": {"strategy": "fsdp"}, **other}
    with pytest.raises(ConfigurationError) as caught:
        load(config)
    assert [problem.where for problem in caught.value.problems] == [where]
    assert text in str(caught.value)
    load({**config, "distributed": None})


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"distributed": {"backend": "horovod", "strategy": "fsdp"}}, "torch itself exchanges the gradients"),
        ({"resources": {"native_parallel": True, "slots_per_trial": 2}}, "has nobody to exchange gradients with"),
    ],
)
def test_what_does_not_go_with_horovod_is_refused(other: dict[str, Any], text: str) -> None:
    config = {**MINIMAL, "distributed": {"backend": "horovod"}, **other}
    with pytest.raises(ConfigurationError) as caught:
        load(config)
    assert [problem.where for problem in caught.value.problems] == ["distributed.backend"]
    assert text in str(caught.value)
    load({**config, "distributed": None})


def test_grid_without_counts_is_refused_with_the_names() -> None:
    space = {"global_batch_size": 32, "g": {"a": {"type": "int", "minval": 1, "maxval": 2}}, "b": {"type": "double"}}
    space["b"] = {"type": "double", "minval": 0, "maxval": 1}
    with pytest.raises(ConfigurationError, match=r"no count, which a grid search needs: b, g\.a\."):
        load({**MINIMAL, "searcher": GRID, "hyperparameters": space})


@given(configurations())
def test_round_trip(written: dict[str, Any]) -> None:
    loaded = load(written)
    travelled = json.loads(json.dumps(loaded.model_dump(mode="json"), allow_nan=False))
    assert ExperimentConfig.model_validate(travelled) == loaded
    assert load(travelled) == loaded
    assert load_config(loaded, warn=False) == loaded


def test_variables_that_go_with_an_experiment_unless_it_sets_them() -> None:
    written = ExperimentConfig.model_validate({"environment": {"environment_variables": {"cpu": ["A=own"], "gpu": []}}})
    found = written.with_variables({"A": "here"}).environment.environment_variables
    assert (found.for_device("cpu"), found.for_device("cuda")) == ({"A": "own"}, {"A": "here"})
    assert written.with_variables({}) is written
