"""Arguments of ``init()`` and ``create()`` that are wrong are said so at once."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from det_native.errors import ArgumentError, ConfigurationError, DetError, UnsupportedFeatureError
from det_native.experimental.settings import Settings, check_before_fit, check_settings


def settings(config: Any = None, **arguments: Any) -> Settings:
    defaults: dict[str, Any] = {
        "mode": None,
        "local": None,
        "test": None,
        "context_dir": "",
        "command": None,
        "master_url": None,
        "values": (),
        "include": (),
    }
    return check_settings(config, **(defaults | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"context_dir": "no/such/folder"}, "context_dir='no/such/folder'.*does not exist"),
        ({"context_dir": __file__}, "is a file, not a folder"),
        ({"context_dir": 3}, "context_dir must be"),
        ({"command": "train.py"}, "command must be a list"),
        ({"command": ["no_such.py"]}, "'no_such.py', but there is no such file"),
        ({"command": []}, "command names no script"),
        ({"command": ["python3"]}, "command names no script"),
        ({"values": "x_train"}, r"values=\['x_train'\]"),
        ({"values": ["x train"]}, "names of variables.*'x train'"),
        ({"values": [[1, 2]]}, "not a list"),
        ({"include": "data.csv"}, r"include=\['data.csv'\]"),
        ({"include": ["no_such.csv"]}, "there is no .*no_such.csv"),
        ({"master_url": 8080}, "master_url"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        settings(**arguments)


def test_paths_become_absolute_and_names_unique(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").touch()
    (tmp_path / "data.csv").touch()
    found = settings(context_dir="code", command=["train.py", "-x"], values=["a", "b", "a"], include=["data.csv"])
    assert found.context_dir == (tmp_path / "code").resolve()
    assert found.command == (str((tmp_path / "code/train.py").resolve()), "-x")
    assert settings(command=["python", "code/train.py"]).command == found.command[:1]
    assert found.values == ("a", "b")
    assert found.include == (tmp_path / "data.csv",)


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("config", [None, {}, {"searcher": {"name": "single"}}, "max_restarts: 2"])
def test_what_the_call_will_fill_in_may_be_silent(config: Any, local: bool) -> None:
    complete = check_before_fit(settings(config, local=local))
    assert complete["searcher"]["metric"] is None
    assert complete["searcher"]["max_length"] == {"batches": 100}
    assert complete["records_per_epoch"] == 0
    assert "global_batch_size" not in complete["hyperparameters"]


def test_what_the_user_wrote_stays() -> None:
    written = {
        "searcher": {"name": "single", "metric": "val_accuracy", "max_length": {"epochs": 3}},
        "hyperparameters": {"global_batch_size": 16, "units": {"type": "int", "minval": 1, "maxval": 8}},
    }
    complete = check_before_fit(settings(written))
    assert complete["searcher"]["metric"] == "val_accuracy"
    assert complete["searcher"]["max_length"] == {"epochs": 3}
    assert complete["hyperparameters"]["global_batch_size"] == {"type": "const", "val": 16}
    assert complete["records_per_epoch"] == 0


def test_a_wrong_configuration_lists_everything_before_fit() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_before_fit(settings({"sercher": {}, "max_restarts": "two"}))
    assert {problem.where for problem in caught.value.problems} == {"sercher", "max_restarts"}


POPULATION: dict[str, Any] = {
    "name": "pbt",
    "metric": "val_loss",
    "population_size": 2,
    "num_rounds": 2,
    "length_per_round": 50,
    "replace_function": {"truncate_fraction": 0.5},
    "explore_function": {"resample_probability": 0.1, "perturb_factor": 0.1},
}


def test_storage_and_searchers_of_the_cluster_are_taken() -> None:
    checked = check_before_fit(settings({"checkpoint_storage": {"type": "s3", "bucket": "b"}}))
    assert checked["checkpoint_storage"]["bucket"] == "b"
    # Here, one sample is trained whatever the searcher.
    assert check_before_fit(settings({"searcher": POPULATION}, local=True))["searcher"]["name"] == "pbt"
    assert check_before_fit(settings({"searcher": POPULATION}, test=True))


@pytest.mark.parametrize("source", [{"source_trial_id": 3}, {"source_checkpoint_uuid": "5c1e"}])
def test_a_local_run_does_not_begin_with_a_checkpoint_of_the_cluster(source: dict[str, Any]) -> None:
    searcher = {"metric": "val_loss", **source}
    with pytest.raises(UnsupportedFeatureError, match=r"searcher\.source_\w+: \w+ is a checkpoint of the cluster"):
        check_before_fit(settings({"searcher": searcher}, local=True))
    assert check_before_fit(settings({"searcher": searcher}))


def test_checking_warns_of_nothing_that_the_call_will_warn_of_again() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_before_fit(settings({"environment": {"image": "cuda"}, "searcher": {"metric": "val_loss"}}))


def test_errors_are_of_our_tree() -> None:
    assert issubclass(ArgumentError, DetError)
