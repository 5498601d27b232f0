"""What the rest of the program asks a configuration for."""

from __future__ import annotations

import pytest
from configurations import MINIMAL, SHARED, load, with_field

from det_native.errors import ConfigurationError
from det_native.schema.loading import load_config


def test_conveniences() -> None:
    loaded = load({**MINIMAL, "description": "d", "searcher": {**MINIMAL["searcher"], "smaller_is_better": False}})
    assert (loaded.metric, loaded.smaller_is_better, loaded.title) == ("val_loss", False, "d")
    assert load({**MINIMAL, "name": " \n", "description": " d "}).title == "d", "nobody sees a name of spaces"
    assert load_config(None, local=True).metric == ""
    seeded = loaded.with_seed(7)
    assert (seeded.reproducibility.experiment_seed, loaded.reproducibility.experiment_seed) == (7, None)
    assert seeded.with_some_seed() == seeded
    drawn = {loaded.with_some_seed().reproducibility.experiment_seed for _ in range(3)}
    assert None not in drawn
    assert len(drawn) == 3
    with pytest.raises(ValueError):
        loaded.with_seed(-1)


def test_variables_of_a_device() -> None:
    written = {"cpu": ["A=1", "A=2", "B=x=y"], "gpu": ["C="]}
    variables = load(with_field("environment.environment_variables", written)).environment.environment_variables
    assert variables.for_device("cpu") == {"A": "2", "B": "x=y"}
    assert variables.for_device("cuda") == {"C": ""}


def test_storage_directory() -> None:
    def directory(**fields: str) -> str:
        storage = load(with_field("checkpoint_storage", {**SHARED, **fields})).checkpoint_storage
        return str(getattr(storage, "directory"))  # noqa: B009 (one member of a union has it)

    assert directory() == "/data"
    assert directory(storage_path="a/b") == "/data/a/b"
    assert directory(storage_path="/data/c") == "/data/c"


def test_secrets_are_not_shown() -> None:
    storage = {"type": "s3", "bucket": "b", "access_key": "AKIA-PLANTED", "secret_key": "s3cr3t"}
    assert "s3cr3t" not in repr(load(with_field("checkpoint_storage", storage)))
    with pytest.raises(ConfigurationError) as caught:
        load(with_field("checkpoint_storage", {**storage, "secret_key": ["s3cr3t"], "access_key": 77777}))
    assert "s3cr3t" not in str(caught.value)
    assert "77777" not in str(caught.value)
