"""Folders in the shapes of Determined's public tutorials, trained by a real master with its workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path += [str(Path(__file__).resolve().parents[2] / "end_to_end")]

from faults import PATIENCE, Cluster, running_cluster

from det_native.experimental import client
from det_native.frameworks import find_framework

FOLDERS = Path(__file__).parents[2] / "determined_0_38"

pytestmark = [
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def example_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master with two slots."""
    assert find_framework("core") is not None
    with running_cluster(tmp_path_factory.mktemp("example-cluster"), "core") as cluster:
        yield cluster


@pytest.fixture
def cluster(example_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The master, which the SDK finds without a login."""
    monkeypatch.setenv("DET_HOME", str(example_cluster.home.path))
    with example_cluster.clearing() as cleared:
        yield cleared
        client.logout()


def trained(name: str) -> client.Experiment:
    """Submit a folder, and wait for its end."""
    path = FOLDERS / name
    experiment = client.create_experiment(path, path.parent)
    state: Any = experiment.wait(timeout=PATIENCE)  # type: ignore[call-arg]
    assert state == client.ExperimentState.COMPLETED, f"{experiment.detail().error}\n{experiment.logs()}"
    return experiment


def values(experiment: client.Experiment, group: str, name: str) -> list[tuple[int, Any]]:
    trial = experiment.await_first_trial()
    return [(record.steps_completed, record.metrics[name]) for record in trial.iter_metrics(group)]


def test_first_step_metrics(cluster: Cluster) -> None:
    experiment = trained("core_api/metrics.yaml")
    assert experiment.labels == ["core-api", "first-step"]
    assert values(experiment, "training", "total") == [(5, 7.5), (10, 15.0), (15, 22.5), (20, 30.0)]
    assert values(experiment, "half", "total") == [(5, 3.75), (10, 7.5), (15, 11.25), (20, 15.0)]
    assert values(experiment, "validation", "remainder") == [(20, 2.0)]
    assert "the total is 30.0" in "".join(experiment.await_first_trial().iter_logs())


def test_second_step_checkpoints(cluster: Cluster, tmp_path: Path) -> None:
    experiment = trained("core_api/checkpoints.yaml")
    kept = experiment.list_checkpoints(client.CheckpointSortBy.BATCH_NUMBER, client.OrderBy.ASC)
    assert [checkpoint.batch for checkpoint in kept][-2:] == [15, 20]
    last = kept[-1]
    assert last.metadata["total"] == 30.0
    assert "state.json" in {path.name for path in last.download(tmp_path / "last").iterdir()}


def test_third_step_a_search_ends_what_is_worse(cluster: Cluster) -> None:
    experiment = trained("core_api/search.yaml")
    trials = experiment.list_trials(client.TrialSortBy.BATCHES_PROCESSED, client.OrderBy.DESC)
    batches = [trial.detail().batches for trial in trials]
    assert len(trials) == 4
    assert set(batches) <= {4, 16}
    assert {4, 16} == set(batches)


def test_fourth_step_processes_count_together(cluster: Cluster) -> None:
    experiment = trained("core_api/distributed.yaml")
    assert values(experiment, "validation", "total") == [(10, 30)]


def test_fifth_step_the_machine_is_measured(cluster: Cluster) -> None:
    experiment = trained("core_api/profiling.yaml")
    assert values(experiment, "validation", "total")[0][0] == 1


def test_a_script_that_runs_anywhere_runs_in_an_experiment(cluster: Cluster) -> None:
    experiment = trained("core_v2/unmanaged.yaml")
    assert experiment.state == client.ExperimentState.COMPLETED


def test_two_processes_of_the_launch_layer(cluster: Cluster) -> None:
    experiment = trained("distributed_launch/distributed.yaml")
    losses = [loss for _, loss in values(experiment, "training", "loss")]
    assert len(losses) == 6
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize(("name", "count"), [("grid", 4), ("random", 3), ("adaptive", 4)])
def test_searches_over_a_script(cluster: Cluster, name: str, count: int) -> None:
    experiment = trained(f"search/{name}.yaml")
    trials = experiment.list_trials()
    assert len(trials) == count
    assert len({tuple(trial.hparams.items()) for trial in trials}) == count
    assert experiment.best_trial.best_validation == min(trial.best_validation or 0 for trial in trials)
    batches = {trial.detail().batches for trial in trials}
    # A trial that the search gives up is preempted, as in 0.38: nothing in the script asks for a length.
    assert batches == ({2, 8} if name == "adaptive" else {4})


def test_a_package_with_variables_and_data(cluster: Cluster) -> None:
    experiment = trained("package/const.yaml")
    assert values(experiment, "validation", "loss") == [(1, 7.5), (2, 3.75), (3, 1.875)]
    assert experiment.project == "rates/first"
    assert "named 'with spaces = and signs'" in "".join(experiment.await_first_trial().iter_logs())


@pytest.mark.parametrize("name", ["const", "launched", "adaptive"])
def test_trial_classes(cluster: Cluster, name: str, tmp_path: Path) -> None:
    experiment = trained(f"legacy_trial/{name}.yaml")
    assert len(experiment.list_trials()) == (4 if name == "adaptive" else 1)
    [best] = experiment.list_checkpoints(max_results=1)
    assert best.metrics["validation_loss"] == experiment.best_trial.best_validation
    assert (best.download(tmp_path / "best") / "state_dict.pth").is_file()


# On two slots an epoch has half the batches; a trial of a search may end with its first stage.
@pytest.mark.parametrize(("name", "validated"), [("const", [4, 8]), ("distributed", [4]), ("adaptive", [4])])
def test_the_trainer(cluster: Cluster, name: str, validated: list[int]) -> None:
    experiment = trained(f"pytorch_trainer/{name}.yaml")
    steps = [step for step, _ in values(experiment, "validation", "validation_loss")]
    assert steps[: len(validated)] == validated


def test_the_callback_of_keras(cluster: Cluster) -> None:
    experiment = trained("keras_callback/const.yaml")
    assert len(values(experiment, "validation", "val_loss")) == 3


@pytest.mark.parametrize("name", ["const", "adaptive"])
def test_the_callback_of_transformers(cluster: Cluster, name: str) -> None:
    pytest.importorskip("transformers")
    experiment = trained(f"hugging_face/{name}.yaml")
    assert values(experiment, "validation", "eval_loss")
