"""Code that calls TensorFlow's own ``train_and_evaluate()``, unchanged: a script and a cell, here and there."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import Cluster, Gate, checkpoint_at, ended, running_cluster, running_kernel
from unchanged_script import UNCHANGED

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

STEPS = 12


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A master of its own, which is also the one that handles in this process find."""
    with running_cluster(tmp_path, "tf_estimator") as started:
        monkeypatch.setenv("DET_HOME", str(started.home.path))
        yield started


def submitted(
    cluster: Cluster, entrypoint: str, *options: str, source: str = UNCHANGED, **config: Any
) -> dict[str, Any]:
    """Submit the script; return what ``det experiment create --json`` says."""
    folder = cluster.folder / "code"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(source)
    path = cluster.folder / "const.yaml"
    path.write_text(json.dumps({"entrypoint": entrypoint, **config}))
    printed = cluster.det("experiment", "create", str(path), str(folder), "--json", *options)
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def batches(rows: list[dict[str, Any]]) -> list[int]:
    return [row["batch"] for row in rows]


def test_a_script_trains_as_it_is_and_goes_on_after_a_kill(cluster: Cluster, gate: Gate, tmp_path: Path) -> None:
    made = submitted(cluster, f"train.py --stop 7 --port {gate.port} --model_dir model")
    experiment = cluster.attach(made["id"])
    visitor = gate.next()
    checkpoint_at(experiment, 4)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert (trial.restarts, trial.batches, trial.target_batches) == (1, STEPS, STEPS)
    [handle] = experiment.trials
    assert batches(handle.metrics("training")) == list(range(1, STEPS + 1))
    assert {"loss", "size"} <= set(handle.metrics("training")[0])
    rows = handle.metrics("validation")
    assert batches(rows) == [4, 8, STEPS]
    assert set(rows[-1]) == {"batch", "loss", "accuracy"}
    assert "eager: True returned: ({'accuracy': " in str(experiment.logs())
    folder = experiment.trials[0].checkpoints[-1].download(tmp_path / "checkpoint")
    names = {path.name for path in Path(folder).iterdir()}
    assert {"checkpoint", f"model.ckpt-{STEPS}.index", "export"} <= names
    assert not (cluster.home.path / "tensorboard" / str(made["id"]) / "model").exists()


CELLS = """
import det_native as det
import sys
sys.argv = ["train.py"]
context = det.experimental.estimator.init({{"name": "cell"}}, local={local})
{source}
"""


@pytest.mark.long
def test_a_cell_trains_as_it_is_here_and_there(cluster: Cluster) -> None:
    with running_kernel(cluster, "notebook") as kernel:
        done = kernel.run(CELLS.format(local=True, source=UNCHANGED))
        assert "eager: True returned: ({'accuracy': " in done.text
        here = kernel.value("[row['batch'] for row in context.experiment.trials[0].metrics('validation')]")
        assert here == [4, 8, STEPS]
        loaded = kernel.value("context.experiment.trials[0].checkpoints[-1].load().signatures.keys().__len__()")
        assert loaded
        there = kernel.submit(CELLS.format(local=False, source=UNCHANGED) + "experiment = result")
        trial = ended(cluster.attach(there), ExperimentState.COMPLETED)
        assert (trial.batches, trial.target_batches) == (STEPS, STEPS)


OWN_EXPORTER = """
class Own(tf.estimator.Exporter):
    name = "own"

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        return {"loss": float(eval_result["loss"]), "seen": ("at", int(eval_result["global_step"]))}


eval_spec = eval_spec._replace(exporters=(exporter, Own()))
"""


@pytest.mark.long
def test_the_rest_of_a_cell_stays_here_and_the_pair_is_unpacked(cluster: Cluster) -> None:
    before, _, _ = UNCHANGED.partition("result = tf.estimator.train_and_evaluate")
    with running_kernel(cluster, "notebook") as kernel:
        kernel.run(
            CELLS.format(local=False, source=before + OWN_EXPORTER)
            + "experiment = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)\n"
            "experiment.wait(show='none')\n"
            "sent = open('only_here.txt', 'w').write('x')\n"
            "metrics, (served, own) = experiment\n"
        )
        assert kernel.value("[experiment.state == 'Completed', experiment is context.experiment, len(experiment)]") == [
            True,
            True,
            2,
        ]
        [row] = kernel.value("experiment.trials[0].metrics('validation')[-1:]")
        expected = {name: value for name, value in row.items() if name != "batch"} | {"global_step": STEPS}
        assert kernel.value("metrics") == expected
        assert kernel.value("[own, type(own['seen']).__name__]") == [
            {"loss": row["loss"], "seen": ["at", STEPS]},
            "tuple",
        ]
        assert kernel.value("list(tf.saved_model.load(served.decode()).signatures)") == ["serving_default"]
        assert "only_here.txt" not in kernel.value("experiment.artifacts.paths")
        done = kernel.run(
            "plain = tf.estimator.Estimator(model_fn, 'plain', config=config)\n"
            "again = tf.estimator.train_and_evaluate(plain, train_spec, eval_spec)\n"
        )
        assert "the init() before it was for one training" in done.text
        assert kernel.value("[type(again).__name__, again[1][1]['seen'][1]]") == ["tuple", STEPS]
        assert kernel.value("len(det.experiments())") == 1


@pytest.mark.long
def test_the_rest_of_a_script_with_its_own_init_stays_here(cluster: Cluster) -> None:
    before, call, after = UNCHANGED.partition("result = tf.estimator.train_and_evaluate")
    (cluster.folder / "own.py").write_text(
        "import det_native as det\ncontext = det.experimental.estimator.init({'name': 'own'})\n"
        + before
        + "first = tf.estimator.Estimator(model_fn, 'first', config=config)\n"
        + "(first_metrics, _) = tf.estimator.train_and_evaluate(first, train_spec, eval_spec)\n"
        + "with det.experimental.estimator.init({'name': 'second'}) as context:\n    "
        + call
        + after.replace("\n", "\n    ")
        + "\nresult.wait()\nmetrics, exports = result\n"
        + "print('here', result.id, metrics['global_step'], len(exports), first_metrics['global_step'])\n"
        + "open('here_only.txt', 'w').write(str(metrics['loss']))\n"
    )
    printed = cluster.command("own.py")
    assert f"here 2 {STEPS} 1 {STEPS}" in printed
    for number in (1, 2):
        experiment = cluster.attach(number)
        assert ended(experiment, ExperimentState.COMPLETED).batches == STEPS
        assert "here_only.txt" not in experiment.artifacts.paths


@pytest.mark.long
def test_a_search_over_a_script_has_a_model_dir_for_each_trial(cluster: Cluster) -> None:
    searcher = {"name": "random", "metric": "accuracy", "smaller_is_better": False, "max_trials": 2}
    length = {"max_length": {"batches": 8}}
    experiment = cluster.attach(submitted(cluster, "train.py --model_dir model", searcher=searcher | length)["id"])
    ended(experiment, ExperimentState.COMPLETED)
    assert [trial.detail().batches for trial in experiment.trials] == [8, 8]
    elsewhere = cluster.folder / "elsewhere"
    failed = cluster.attach(submitted(cluster, f"train.py --model_dir {elsewhere}", searcher=searcher | length)["id"])
    trial = ended(failed, ExperimentState.ERROR)
    assert trial.error is not None
    assert "which all trials of the experiment would write to" in trial.error.message


@pytest.mark.long
def test_a_search_in_parts_runs_the_script_again_for_each_part(cluster: Cluster) -> None:
    halving = {"name": "async_halving", "divisor": 2, "num_rungs": 2, "max_trials": 2, "max_concurrent_trials": 1}
    compared = {"metric": "accuracy", "smaller_is_better": False}
    with pytest.raises(AssertionError, match=r"searcher.max_length: is missing"):
        submitted(cluster, "train.py --model_dir model", searcher=halving | compared)
    halving["max_length"] = {"batches": STEPS}
    experiment = cluster.attach(submitted(cluster, "train.py --model_dir model", searcher=halving | compared)["id"])
    ended(experiment, ExperimentState.COMPLETED)
    lengths = sorted(trial.detail().batches for trial in experiment.trials)
    assert lengths[0] in (STEPS // 2, STEPS)
    assert lengths[1] == STEPS
    for trial in experiment.trials:
        assert batches(trial.metrics("training")) == list(range(1, trial.detail().batches + 1))

    pbt = {
        "name": "pbt",
        "population_size": 2,
        "num_rounds": 2,
        "length_per_round": {"batches": STEPS // 2},
        "replace_function": {"truncate_fraction": 0.5},
        "explore_function": {"resample_probability": 0.5, "perturb_factor": 0.2},
    }
    experiment = cluster.attach(submitted(cluster, "train.py --model_dir model", searcher=pbt | compared)["id"])
    ended(experiment, ExperimentState.COMPLETED)
    assert len(experiment.trials) == 3
    assert max(trial.detail().batches for trial in experiment.trials) == STEPS


@pytest.mark.long
def test_a_second_call_is_refused_where_it_stands(cluster: Cluster) -> None:
    again = UNCHANGED + "\ntf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)\n"
    made = submitted(cluster, "train.py", source=again, max_restarts=0)
    trial = ended(cluster.attach(made["id"]), ExperimentState.ERROR)
    assert trial.error is not None
    assert (trial.error.type, trial.error.line) == ("TrialDefinitionError", len(again.splitlines()))
    assert "calls train_and_evaluate() once more, in train.py" in trial.error.message
    assert trial.batches == STEPS


@pytest.mark.long
def test_a_script_trains_here_in_a_process_of_its_own(cluster: Cluster) -> None:
    submitted(cluster, "train.py")  # it writes the files
    printed = cluster.det("experiment", "create", "const.yaml", "code", "--local")
    assert "eager: True returned: ({'accuracy': " in printed
    experiment = cluster.attach(int(printed.partition("Experiment ")[2].split()[0]))
    assert batches(experiment.trials[0].metrics("validation")) == [4, 8, STEPS]


@pytest.mark.soak
def test_the_files_of_a_model_dir_are_listed_where_the_script_names_it(cluster: Cluster, tmp_path: Path) -> None:
    experiment = cluster.attach(submitted(cluster, "train.py --model_dir model")["id"])
    ended(experiment, ExperimentState.COMPLETED)
    paths = experiment.artifacts.paths
    assert {"model/checkpoint", f"model/model.ckpt-{STEPS}.index", "model/graph.pbtxt"} <= set(paths)
    assert [path for path in paths if path.startswith("model/export/last/") and path.endswith("saved_model.pb")]
    assert [path for path in paths if path.startswith("model/eval/events.")]
    assert all(path.startswith("model/") for path in paths)
    experiment.artifacts.download(tmp_path / "here")
    assert (tmp_path / "here" / "model" / "checkpoint").read_text().startswith("model_checkpoint_path: ")
