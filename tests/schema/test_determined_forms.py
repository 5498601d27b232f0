"""Each form that a field of Determined 0.38.1 may have is taken, has no effect and says why, or is refused with why."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

from det_native.errors import ConfigurationError
from det_native.schema.config import ExperimentConfig
from det_native.schema.loading import load_config

BASE: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": 4},
    "searcher": {"name": "single", "metric": "v", "max_length": {"batches": 5}},
    "records_per_epoch": 100,
}
UUID = "6f1c0b5e-0000-4000-8000-000000000000"
BATCHES = {"batches": 100}
LAUNCHERS = (
    "python3 -m determined.launch.torch_distributed python3 train.py",
    "python3 -m determined.launch.horovod --autohorovod python3 train.py",
    "python3 -m determined.launch.deepspeed python3 train.py",
    "python3 -m determined.launch.tensorflow python3 train.py",
    "python3 -m determined.exec.harness model_def:T",
)


def searched(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "metric": "v", **fields}


#: Taken with their meaning.
TAKEN: list[tuple[str, Any]] = [
    ("checkpoint_policy", "best"),
    ("data", {"url": "x"}),
    ("data_layer", {"type": "shared_fs"}),
    ("description", "d"),
    ("labels", ["a"]),
    ("max_restarts", 2),
    ("min_checkpoint_period", {"batches": 5}),
    ("min_checkpoint_period", {"epochs": 1}),
    ("min_validation_period", {"batches": 5}),
    ("perform_initial_validation", True),
    ("project", "p"),
    ("records_per_epoch", 100),
    ("reproducibility", {"experiment_seed": 3}),
    ("retention_policy", {"log_retention_days": 3}),
    ("scheduling_unit", 5),
    ("internal", None),
    ("hyperparameters.h", 3),
    ("hyperparameters.h", "text"),
    ("hyperparameters.h", [1, 2]),
    ("hyperparameters.h", {"a": {"b": 1}}),
    ("hyperparameters.h", {"type": "const", "val": {"a": 1}}),
    ("searcher", searched("single", max_length={"batches": 5})),
    ("searcher", searched("single", max_length={"batches": 5}, smaller_is_better=False)),
    ("searcher", searched("single", max_length=5)),
    ("searcher", searched("single", max_length=5, smaller_is_better=False)),
    ("searcher", searched("single", max_length={"records": 500})),
    ("searcher", searched("single", max_length={"records": 500}, smaller_is_better=False)),
    ("searcher", searched("single", max_length={"epochs": 2})),
    ("searcher", searched("single", max_length={"epochs": 2}, smaller_is_better=False)),
    ("searcher", searched("random", max_length=BATCHES, max_trials=3, max_concurrent_trials=2)),
    ("searcher", searched("grid", max_length=BATCHES, max_concurrent_trials=2)),
    (
        "searcher",
        searched(
            "adaptive_asha",
            max_length=BATCHES,
            max_trials=4,
            max_rungs=3,
            divisor=4,
            mode="standard",
            bracket_rungs=[2],
            stop_once=True,
            max_concurrent_trials=16,
        ),
    ),
    ("searcher", searched("async_halving", max_length=BATCHES, num_rungs=2, max_trials=4, divisor=4, stop_once=False)),
    ("searcher", searched("sync_halving", max_length=BATCHES, num_rungs=2, budget={"batches": 400}, divisor=4)),
    ("searcher", searched("adaptive", max_length=BATCHES, budget={"batches": 400}, max_rungs=3)),
    ("searcher", searched("adaptive_simple", max_length=BATCHES, max_trials=4, mode="aggressive")),
    (
        "searcher",
        searched(
            "pbt",
            population_size=3,
            num_rounds=2,
            length_per_round={"batches": 5},
            replace_function={"truncate_fraction": 0.2},
            explore_function={"resample_probability": 0.2, "perturb_factor": 0.2},
        ),
    ),
    ("searcher.source_trial_id", 3),
    ("searcher.source_checkpoint_uuid", UUID),
    ("resources.slots_per_trial", 1),
    ("resources.slots_per_trial", 2),
    ("resources.max_slots", 2),
    ("resources.weight", 2),
    ("resources.priority", 10),
    ("resources.native_parallel", False),
    ("resources.is_single_node", True),
    ("environment.environment_variables", ["A=1"]),
    ("environment.environment_variables", {"cpu": ["A=1"], "cuda": ["B=2"]}),
    ("checkpoint_storage", {"type": "shared_fs", "host_path": "/ck", "storage_path": "a"}),
    ("checkpoint_storage", {"type": "directory", "container_path": "/ck"}),
    ("checkpoint_storage", {"type": "s3", "bucket": "b", "prefix": "p", "access_key": "a", "secret_key": "s"}),
    ("checkpoint_storage", {"type": "gcs", "bucket": "b", "prefix": "p"}),
    ("checkpoint_storage", {"type": "azure", "container": "c", "connection_string": "x"}),
    ("checkpoint_storage", {"type": "azure", "container": "c", "account_url": "https://a", "credential": "k"}),
    ("checkpoint_storage", {"save_experiment_best": 1, "save_trial_best": 2, "save_trial_latest": 3}),
    ("optimizations.aggregation_frequency", 2),
    ("optimizations.average_aggregated_gradients", True),
    ("optimizations.mixed_precision", "O1"),
    ("optimizations.tensor_fusion_cycle_time", 5),
    ("optimizations.tensor_fusion_threshold", 64),
]
#: Taken, and a range that this searcher does not search is said.
RANGES: list[Any] = [
    {"type": "int", "minval": 1, "maxval": 4, "count": 2},
    {"type": "double", "minval": 0.1, "maxval": 4, "count": 2},
    {"type": "log", "base": 10, "minval": -4, "maxval": -1, "count": 2},
    {"type": "categorical", "vals": [1, "a", None, [1], {"x": 1}]},
]
CONTAINERS = "not in containers"
MANAGERS = "no resource pools"
#: Taken, and why they have no effect is said.
SAID: list[tuple[str, Any, str]] = [
    ("bind_mounts", [{"host_path": "/data", "container_path": "/d", "read_only": True}], CONTAINERS),
    ("debug", True, "not for users"),
    ("log_policies", [{"pattern": ".*CUDA out of memory.*", "action": "cancel_retries"}], "logs are kept"),
    ("log_policies", [{"pattern": "x", "action": {"type": "exclude_node"}}], "logs are kept"),
    ("log_policies", [{"name": "n", "pattern": "x"}], "logs are kept"),
    ("preemption_timeout", 600, MANAGERS),
    (
        "profiling",
        {"enabled": True, "begin_on_batch": 0, "end_after_batch": 5, "sync_timings": False},
        "from its begin to its end",
    ),
    ("workspace", "w", "no workspaces"),
    ("tensorboard_storage", {"type": "shared_fs", "host_path": "/x"}, "not for users"),
    ("pbs", {"slots_per_node": 1, "pbsbatch_args": ["-x"]}, MANAGERS),
    ("slurm", {"slots_per_node": 1, "gpu_type": "v100", "sbatch_args": ["-x"]}, MANAGERS),
    ("security", {"kerberos": {"config_file": "x"}}, "not for users"),
    ("integrations", {"pachyderm": {"pachd": {"host": "h", "port": 1}}}, "there are none"),
    ("integrations", {"webhooks": {"webhook_id": [1]}}, "there are none"),
    ("integrations", {"webhooks": {"webhook_name": ["n"], "exclude": True}}, "there are none"),
    ("resources.slots", 1, "notebooks and shells"),
    ("resources.resource_pool", "gpu", MANAGERS),
    ("resources.agent_label", "x", MANAGERS),
    ("resources.shm_size", 1000, CONTAINERS),
    ("resources.shm_size", "4G", CONTAINERS),
    ("resources.devices", [{"host_path": "/dev/x", "container_path": "/dev/x", "mode": "mrw"}], CONTAINERS),
    ("environment.image", "a:b", CONTAINERS),
    ("environment.image", {"cpu": "a", "cuda": "b", "gpu": "c", "rocm": "d"}, CONTAINERS),
    ("environment.force_pull_image", True, CONTAINERS),
    ("environment.pod_spec", {"spec": {}}, CONTAINERS),
    ("environment.ports", {"tb": 6006}, CONTAINERS),
    ("environment.proxy_ports", [{"proxy_port": 8080, "proxy_tcp": True, "unauthenticated": False}], CONTAINERS),
    ("environment.registry_auth", {"username": "u", "password": "p"}, CONTAINERS),
    ("environment.add_capabilities", ["SYS_PTRACE"], CONTAINERS),
    ("environment.drop_capabilities", ["X"], CONTAINERS),
    ("checkpoint_storage", {"type": "shared_fs", "host_path": "/ck", "container_path": "/d"}, CONTAINERS),
    ("optimizations.auto_tune_tensor_fusion", True, "tunes Horovod"),
    ("optimizations.average_training_metrics", True, "one slot"),
    ("optimizations.grad_updates_size_file", "x", "sizes of gradients"),
    ("optimizations.gradient_compression", True, "one slot"),
]
#: Refused, with what is wrong and what would be right.
REFUSED: list[tuple[str, Any, str]] = [
    ("hooks", {"x": 1}, r"hooks: is not a field"),
    ("searcher", searched("single"), r"searcher\.max_length: is missing\. Say how long"),
    ("searcher", searched("single", smaller_is_better=False), r"searcher\.max_length: is missing\. Say how long"),
    (
        "searcher",
        searched("custom", unit="batches"),
        r"must be one of .*not 'custom'\. A search of your own is a script",
    ),
    (
        "searcher",
        searched("adaptive_asha", time_metric="of_mine", max_time=100, max_trials=4),
        r"searcher\.time_metric: must be one of batches, records, epochs, not 'of_mine'",
    ),
    ("environment.environment_variables", {"A": "1"}, r'Write variables as a list: \["NAME=VALUE"\]'),
    (
        "checkpoint_storage",
        {"type": "hdfs", "hdfs_url": "http://x", "hdfs_path": "/p", "user": "u"},
        r"hdfs_url must be 'hdfs://host:port'",
    ),
]


def read(path: str, value: Any, **options: Any) -> tuple[ExperimentConfig, str]:
    """Return a configuration with a field, and what was warned of."""
    written = copy.deepcopy(BASE)
    *sections, name = path.split(".")
    owner = written
    for section in sections:
        owner = owner.setdefault(section, {})
    owner[name] = value
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return load_config(written, **options), " ".join(str(warning.message) for warning in caught)


def shown(form: Any) -> str:
    return f"{form[0]}={form[1]}"[:60] if isinstance(form, tuple) else str(form)[:60]


@pytest.mark.parametrize("form", TAKEN, ids=shown)
def test_taken_with_its_meaning(form: tuple[str, Any]) -> None:
    assert read(*form)[1] == ""


@pytest.mark.parametrize("form", RANGES, ids=shown)
def test_ranges_are_taken(form: Any) -> None:
    config, said = read("hyperparameters.h", form)
    assert "hyperparameters.h" in said, "searcher single searches none"
    assert config.hyperparameters["h"] is not None
    assert "single" in said


@pytest.mark.parametrize("form", SAID, ids=shown)
def test_without_effect_and_said_why(form: tuple[str, Any, str]) -> None:
    path, value, why = form
    said = read(path, value)[1]
    assert "no effect here" in said
    assert path in said
    assert why in said


@pytest.mark.parametrize("form", REFUSED, ids=shown)
def test_refused_with_why(form: tuple[str, Any, str]) -> None:
    path, value, why = form
    with pytest.raises(ConfigurationError, match=why):
        read(path, value)


@pytest.mark.parametrize("entrypoint", ["model_def:T", "python3 train.py", ["python3", "train.py"], *LAUNCHERS])
def test_entrypoints_are_read(entrypoint: str | list[str]) -> None:
    config, said = read("entrypoint", entrypoint, trains=entrypoint)
    assert config.entrypoint == entrypoint
    assert said == ""


@pytest.mark.parametrize("searcher", ["adaptive_asha", "async_halving"])
@pytest.mark.parametrize("metric", ["batches", "epochs"])
def test_a_time_is_a_length_and_what_ends_ends_for_good(searcher: str, metric: str) -> None:
    rungs = {"num_rungs": 2} if searcher == "async_halving" else {}
    written = searched(searcher, time_metric=metric, max_time=100, max_trials=4, **rungs)
    config, said = read("searcher", written)
    assert (config.searcher.max_length.unit, config.searcher.max_length.units) == (metric, 100)
    assert (config.searcher.stop_once, said) == (True, "")  # type: ignore[union-attr]
    assert read("searcher", written | {"stop_once": False})[0].searcher.stop_once is False  # type: ignore[union-attr]
    for wrong, says in (({"max_length": 3}, "is another name of"), ({"max_time": None}, "whole number of at least 1")):
        with pytest.raises(ConfigurationError, match=rf"searcher\.max_time: .*{says}"):
            read("searcher", written | wrong)


@pytest.mark.parametrize("length", [{"epochs": 3}, {"records": 300}])
def test_what_counts_by_itself_needs_no_number_of_records(length: dict[str, int]) -> None:
    written = {"entrypoint": "python3 train.py", "searcher": searched("single", max_length=length)}
    loaded = load_config(written, framework="core", trains="python3 train.py")
    assert loaded.searcher.max_length.units == next(iter(length.values()))
    for entrypoint in ("model_def:T", "python3 -m determined.launch.torch_distributed --trial model_def:T"):
        with pytest.raises(ConfigurationError, match="global_batch_size: is missing"):
            load_config(written | {"entrypoint": entrypoint}, warn=False)


def test_a_launcher_of_the_class_that_is_trained_is_not_said_to_have_no_effect() -> None:
    launched = "python3 -m determined.launch.torch_distributed --trial model_def:T"
    assert read("entrypoint", launched, trains="model_def:T")[1] == ""
    assert "entrypoint" in read("entrypoint", launched, trains="model_def:Other")[1]
