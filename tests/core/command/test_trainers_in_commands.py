"""Trainers in a command of an experiment: killed, they go on with the same numbers; several slots train together."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from command_scripts import Submit
from faults import Gate, checkpoint_at, ended
from trainer_scripts import KERAS, LIGHTNING, TRAINER

from det_native.client.handles import Experiment
from det_native.pytorch import load_trial_from_checkpoint_path
from det_native.schema.states import ExperimentState

CONFIG = {
    "hyperparameters": {"lr": 0.1, "global_batch_size": 8},
    "searcher": {"name": "single", "metric": "val_loss", "smaller_is_better": True},
    "reproducibility": {"experiment_seed": 7},
}


def numbers(experiment: Experiment, kind: str, name: str) -> dict[int, float]:
    """Return the values of a metric by batch."""
    return {row["batch"]: row[name] for row in experiment.trials[0].metrics(kind)}


@pytest.mark.parametrize(
    ("source", "stop", "kept", "ends"), [(TRAINER, 12, 8, 24), (KERAS, 2, 8, 16), (LIGHTNING, 6, 4, 16)]
)
def test_killed_it_goes_on_with_the_same_numbers(
    submit: Submit, gate: Gate, source: str, stop: int, kept: int, ends: int
) -> None:
    whole = submit("python3 train.py -1 0", {"train.py": source}, **CONFIG)
    ended(whole, ExperimentState.COMPLETED)
    experiment = submit(f"python3 train.py {stop} {gate.port}", {"train.py": source}, **CONFIG)
    visitor = gate.next()
    checkpoint_at(experiment, kept)
    visitor.die(signal.SIGKILL)
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert (trial.restarts, trial.batches) == (1, ends)
    for kind, name in (("training", "loss"), ("validation", "val_loss")):
        found, wanted = numbers(experiment, kind, name), numbers(whole, kind, name)
        assert found.keys() == wanted.keys()
        assert found == pytest.approx(wanted, rel=1e-6)
    assert max(wanted) == ends


def test_a_trial_is_loaded_back(submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))  # any optimizer makes it
    experiment = submit("python3 train.py -1 0", {"train.py": TRAINER}, **CONFIG)
    ended(experiment, ExperimentState.COMPLETED)
    folder = experiment.top_checkpoint().download(tmp_path / "best")
    names: dict[str, Any] = {}
    source = TRAINER.partition("with pytorch.init()")[0].replace("(int(word) for word in sys.argv[1:3])", "(-1, 0)")
    exec(source.replace("determined", "det_native"), names)  # noqa: S102  # the test's own text
    trial = load_trial_from_checkpoint_path(folder, names["Plane"])
    with torch.no_grad():
        error = float((trial.model(trial.data[:][0]) - trial.data[:][1]).square().mean())
    assert error == pytest.approx(min(numbers(experiment, "validation", "val_loss").values()), rel=1e-5)


def test_two_slots_of_a_trainer_train_as_one_does(submit: Submit) -> None:
    one = submit("python3 train.py -1 0", {"train.py": TRAINER}, **CONFIG)
    ended(one, ExperimentState.COMPLETED)
    entrypoint = "python3 -m determined.launch.torch_distributed python3 train.py -1 0"
    two = submit(entrypoint, {"train.py": TRAINER}, resources={"slots_per_trial": 2}, **CONFIG)
    ended(two, ExperimentState.COMPLETED)
    found, wanted = (numbers(each, "validation", "val_loss") for each in (two, one))
    assert found == pytest.approx(wanted, rel=1e-4)
    assert len(two.trials[0].checkpoints) == len(one.trials[0].checkpoints)
