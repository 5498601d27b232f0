"""Arguments of ``init()`` and ``create()`` that are wrong are said so at once."""

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from det_native.client.addresses import named_master
from det_native.errors import ArgumentError, ConfigurationError, DetError, UnsupportedFeatureError
from det_native.experimental.settings import (
    Settings,
    as_written,
    check_before_fit,
    check_settings,
    check_supported,
    complete_for_fit,
    has_seed,
    placed,
    trains_on_several,
)
from det_native.schema.lengths import UNTOLD
from det_native.schema.loading import load_config


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
        config = {"environment": {"image": "cuda"}, "searcher": {"metric": "val_loss"}}
        check_before_fit(settings(config))
        ranges = {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}}
        assert not has_seed(settings(config | {"hyperparameters": ranges}))


def test_errors_are_of_our_tree() -> None:
    assert issubclass(ArgumentError, DetError)


def test_a_configuration_is_that_of_the_call_whatever_becomes_of_the_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written: dict[str, Any] = {"labels": ["first"], "searcher": {"name": "single"}}
    taken = settings(written)
    written["labels"].append("second")
    written["searcher"]["name"] = "grid"
    assert taken.config == {"labels": ["first"], "searcher": {"name": "single"}}
    assert settings(Path("config.yaml")).config == tmp_path / "config.yaml"
    assert settings("max_restarts: 2").config == "max_restarts: 2"


def test_scripts_are_looked_for_in_the_context_folder_and_then_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    for script in ("both.py", "code/both.py", "here.py", "python_script"):
        (tmp_path / script).touch()
    assert settings(context_dir="code", command=["both.py"]).command == (str(tmp_path.resolve() / "code/both.py"),)
    assert settings(command=["both.py"]).command == (str(tmp_path.resolve() / "both.py"),)
    assert settings(context_dir="code", command=["here.py"]).command == (str(tmp_path.resolve() / "here.py"),)
    assert settings(command=["python3.11", "here.py", "-q"]).command == (str(tmp_path.resolve() / "here.py"), "-q")
    with pytest.raises(ArgumentError, match=r"'no.py', but there is no such file in \S+/code\."):
        settings(context_dir="code", command=["no.py"])
    with pytest.raises(ArgumentError, match=r"command must be a list of texts"):
        settings(command=["here.py", 3])


CALL = {
    "searcher.metric": "val_loss",
    "searcher.max_length": {"batches": 5},
    "hyperparameters.global_batch_size": 8,
    "records_per_epoch": 80,
}
WRITTEN: dict[str, dict[str, Any]] = {
    "searcher.metric": {"searcher": {"metric": "val_accuracy"}},
    "searcher.max_length": {"searcher": {"max_length": {"epochs": 3}}, "records_per_epoch": 10},
    "hyperparameters.global_batch_size": {"hyperparameters": {"global_batch_size": 16}},
    "records_per_epoch": {"records_per_epoch": 10},
}


def test_the_call_fills_in_what_is_left_to_it() -> None:
    call = SimpleNamespace(configuration_fills=lambda: CALL, assumed=frozenset(), framework="keras")
    complete = complete_for_fit(settings(), call)
    assert complete.searcher.metric == "val_loss"
    assert complete.model_dump(mode="json")["searcher"]["max_length"] == {"batches": 5}
    assert complete.model_dump(mode="json")["hyperparameters"] == {"global_batch_size": {"type": "const", "val": 8}}
    assert complete.records_per_epoch == 80


def test_the_configuration_wins_with_a_warning_unless_the_call_only_assumed() -> None:
    written = settings({"searcher": {"max_length": {"epochs": 3}}})
    call = SimpleNamespace(configuration_fills=lambda: CALL, assumed=frozenset(), framework="keras")
    with pytest.warns(match="3 epochs in the configuration, 5 batches in the call"):
        assert complete_for_fit(written, call).searcher.max_length.units == 3
    call.assumed = frozenset({"searcher.max_length"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert complete_for_fit(written, call).searcher.max_length.units == 3
        call.assumed = frozenset()
        complete_for_fit(written, call, warn=False)


def test_the_call_looks_at_its_data_in_the_context_folder(tmp_path: Path) -> None:
    folders: list[Path] = []

    def fills() -> dict[str, Any]:
        folders.append(Path.cwd())
        return CALL

    call = SimpleNamespace(configuration_fills=fills, assumed=frozenset(), framework="keras")
    here = Path.cwd()
    complete_for_fit(settings(context_dir=str(tmp_path)), call)
    assert (folders, Path.cwd()) == ([tmp_path.resolve()], here)


def test_a_seed_is_one_that_was_written() -> None:
    seeded = {"reproducibility": {"experiment_seed": 0}}
    assert (has_seed(settings()), has_seed(settings({})), has_seed(settings(seeded))) == (False, False, True)
    assert as_written(None)["reproducibility"]["experiment_seed"] is None
    assert as_written(seeded)["reproducibility"]["experiment_seed"] == 0
    assert check_before_fit(settings())["reproducibility"]["experiment_seed"] is not None


def test_as_written_has_the_defaults_of_what_a_call_fills_in() -> None:
    silent = as_written({"max_restarts": 2})
    assert silent["max_restarts"] == 2
    assert (silent["searcher"]["metric"], silent["records_per_epoch"]) == (None, 0)
    assert silent["searcher"]["max_length"] == {"batches": 100}
    assert silent["hyperparameters"] == {}
    assert as_written(WRITTEN["hyperparameters.global_batch_size"])["hyperparameters"] != {}


@pytest.mark.parametrize("framework", ["torch", "keras", "estimator", "tf_estimator"])
def test_a_test_trains_on_one_slot(framework: Any) -> None:
    assert trains_on_several(settings(), framework)
    assert not trains_on_several(settings(test=True), framework)


@pytest.mark.parametrize(("arguments", "refused"), [({}, True), ({"local": True}, False), ({"test": True}, False)])
def test_a_searcher_that_lacks_a_length_is_refused_where_it_is_looked_at(
    arguments: dict[str, Any], refused: bool
) -> None:
    searcher = {
        "name": "async_halving",
        "metric": "loss",
        "num_rungs": 2,
        "max_trials": 4,
        "max_length": {"batches": 1},
    }
    loaded = load_config({"searcher": searcher, "hyperparameters": {"global_batch_size": 8}}, warn=False)
    untold = loaded.searcher.model_copy(update={"max_length": UNTOLD})
    config = loaded.model_copy(update={"searcher": untold})
    if refused:
        with pytest.raises(UnsupportedFeatureError, match="nothing says how long"):
            check_supported(config, settings(**arguments), "keras")
    else:
        check_supported(config, settings(**arguments), "keras")


ROLES = {"distributed": {"strategy": "tf_config", "roles": {"chief": 1, "ps": 1}}}


@pytest.mark.parametrize(
    ("config", "framework", "test", "why"),
    [
        ({"resources": {"slots_per_trial": 2}}, "torch", False, "resources.slots_per_trial: 2"),
        ({"resources": {"slots_per_trial": 2}}, "torch", True, ""),
        ({"searcher": {"name": "random", "max_trials": 2}}, "keras", False, "searcher.name: random"),
        ({"searcher": {"name": "random", "max_trials": 2}}, "keras", True, ""),
        (ROLES, "tf_estimator", True, "distributed.strategy: tf_config"),
        (None, "estimator", True, "Training by estimator"),
        (None, "tf_estimator", False, ""),
        (None, "torch", False, ""),
    ],
)
def test_what_cannot_train_in_this_process_is_the_masters_of_this_machine(
    config: Any, framework: Any, test: bool, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_MASTER", "https://another.example:8443")
    found = placed(settings(config, local=True, test=test), framework)
    assert found.place.local is (why == "")
    if why:
        assert found.place.notice.startswith(f"{why}: local=True trains this in processes of its own")
        assert named_master(found.master_url) is None
    on_cluster = settings(config, test=test)
    assert placed(on_cluster, framework) is on_cluster
    assert named_master(on_cluster.master_url) == "https://another.example:8443"
