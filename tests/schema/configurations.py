"""Configurations: the smallest one, and Hypothesis strategies; shared by the tests of the schema and the searchers."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from det_native.schema.config import ExperimentConfig
from det_native.schema.loading import load_config

NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=6).filter(lambda name: name != "type")
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6), st.text(max_size=5))


@st.composite
def ranges(draw: st.DrawFn, *, counted: bool = False) -> dict[str, Any]:
    """Draw an int, double or log hyperparameter."""
    kind = draw(st.sampled_from(["int", "double", "log"]))
    if kind == "int":
        low = draw(st.integers(-(10**12), 10**12))
        written: dict[str, Any] = {"type": kind, "minval": low, "maxval": low + draw(st.integers(1, 10**12))}
    else:
        limit = 1e300 if kind == "double" else 20.0
        low, high = sorted(draw(st.lists(st.floats(-limit, limit), min_size=2, max_size=2, unique=True)))
        assume(kind == "double" or low <= 0 or high >= 1)  # which are refused: they can hardly be exponents
        written = {"type": kind, "minval": low, "maxval": high}
    if kind == "log" and draw(st.booleans()):
        written["base"] = draw(st.sampled_from([2, 10, 0.5, 2.718281828]))
    if counted:
        written["count"] = draw(st.integers(1, 4))
    return written


@st.composite
def spaces(draw: st.DrawFn, *, counted: bool = False, depth: int = 2, size: int = 4) -> dict[str, Any]:
    """Draw a hyperparameter space in written form, with groups."""
    entry: st.SearchStrategy[Any] = st.one_of(
        SCALARS,
        st.lists(SCALARS, max_size=2),
        st.builds(lambda value: {"type": "const", "val": value}, SCALARS),
        st.builds(lambda vals: {"type": "categorical", "vals": vals}, st.lists(SCALARS, min_size=1, max_size=3)),
        ranges(counted=counted),
    )
    if depth:
        entry = st.one_of(entry, entry, spaces(counted=counted, depth=depth - 1, size=2))
    return draw(st.dictionaries(NAMES, entry, max_size=size))


LENGTHS = st.builds(
    lambda unit, units: {unit: units}, st.sampled_from(["batches", "records", "epochs"]), st.integers(1, 10**9)
)


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


_SEARCHERS = st.one_of(
    st.fixed_dictionaries(
        {"metric": NAMES, "max_length": LENGTHS},
        optional={"name": st.just("single"), "smaller_is_better": st.booleans(), "source_trial_id": st.integers(1, 9)},
    ),
    st.fixed_dictionaries(
        {"name": st.just("random"), "metric": NAMES, "max_length": LENGTHS, "max_trials": st.integers(1, 50)},
        optional={"max_concurrent_trials": st.integers(0, 9)},
    ),
    st.fixed_dictionaries(
        {
            "name": st.just("adaptive_asha"),
            "metric": NAMES,
            "max_length": LENGTHS,
            "max_trials": st.integers(1, 50),
        },
        optional={"mode": st.sampled_from(["aggressive", "standard", "conservative"]), "divisor": st.floats(1.5, 8)},
    ),
    st.fixed_dictionaries(
        {
            "name": st.just("pbt"),
            "metric": NAMES,
            "population_size": st.integers(1, 9),
            "num_rounds": st.integers(1, 9),
            "length_per_round": LENGTHS,
            "replace_function": st.just({"truncate_fraction": 0.2}),
            "explore_function": st.just({"resample_probability": 0.2, "perturb_factor": 0.2}),
        }
    ),
)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid configuration in written form."""
    config: dict[str, Any] = draw(
        _optional(
            name=st.text(max_size=9),
            description=st.none() | st.text(max_size=9),
            labels=st.lists(NAMES, max_size=2),
            data=st.dictionaries(NAMES, SCALARS, max_size=2),
            scheduling_unit=st.integers(1, 10**6),
            min_validation_period=LENGTHS,
            min_checkpoint_period=LENGTHS | st.integers(0, 100),
            perform_initial_validation=st.booleans(),
            checkpoint_policy=st.sampled_from(["best", "all", "none"]),
            max_restarts=st.integers(0, 9),
            checkpoint_storage=st.sampled_from(
                [
                    {"save_trial_best": 3},
                    {"type": "shared_fs", "host_path": "/data", "storage_path": "a"},
                    {"type": "s3", "bucket": "b", "save_experiment_best": 2},
                ]
            ),
            resources=_optional(
                priority=st.integers(1, 99), weight=st.floats(0.1, 9), shm_size=st.sampled_from([0, "1.5G", None])
            ),
            optimizations=_optional(
                aggregation_frequency=st.integers(1, 9), mixed_precision=st.sampled_from(["O0", "O1"])
            ),
            environment=_optional(
                environment_variables=st.just(["A=1", "B=x=y"]) | st.just({"gpu": ["A=1"], "cpu": []}),
                image=st.just("image") | st.just({"gpu": "one", "cpu": "other"}),
            ),
            bind_mounts=st.just([{"host_path": "/a", "container_path": "b"}]),
            reproducibility=_optional(experiment_seed=st.integers(0, 2**31 - 1)),
            profiling=_optional(enabled=st.booleans()),
        )
    )
    config["searcher"] = draw(_SEARCHERS)
    config["records_per_epoch"] = draw(st.integers(1, 10**6))
    config["hyperparameters"] = {**draw(spaces()), "global_batch_size": draw(st.integers(1, 4096))}
    return config


MINIMAL: dict[str, Any] = {
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 1000}},
    "hyperparameters": {"global_batch_size": 32},
}
SHARED = {"type": "shared_fs", "host_path": "/data"}


def with_field(path: str, value: Any) -> dict[str, Any]:
    """Return the smallest valid configuration with one more field."""
    config = copy.deepcopy(MINIMAL)
    owner = config
    *sections, name = path.split(".")
    for section in sections:
        owner = owner.setdefault(section, {})
    owner[name] = value
    return config


def load(config: dict[str, Any]) -> ExperimentConfig:
    return load_config(config, warn=False)
