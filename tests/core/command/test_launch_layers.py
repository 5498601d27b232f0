"""Commands on several slots: launch layers and ``torchrun`` start a process for each."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_scripts import DDP, Submit
from faults import ended

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

SLOTS = {"slots_per_trial": 2}
SEARCHER = {"name": "single", "metric": "val_loss"}


def losses_of_one_process() -> list[float]:
    """Return what `DDP` comes to if one process has all records."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = torch.nn.Linear(1, 1)
    inputs = torch.arange(8.0).reshape(8, 1) / 8
    found = []
    for _ in range(5):
        loss = ((model(inputs) - 3 * inputs) ** 2).mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter -= 0.1 * gradient
        found.append(loss.item())
    return found


@pytest.mark.parametrize(
    ("entrypoint", "prefix"),
    [
        ("python3 -m determined.launch.torch_distributed python3 train.py", "[rank=1] "),
        ("torchrun --nproc_per_node 2 train.py", ""),
    ],
)
def test_two_slots_are_two_processes_that_train_together(
    submit: Submit, entrypoint: str, prefix: str, tmp_path: Path
) -> None:
    experiment = submit(entrypoint, {"train.py": DDP}, resources=SLOTS, searcher=SEARCHER)
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert trial.batches == 5
    rows = experiment.trials[0].metrics("training")
    assert [row["loss"] for row in rows] == pytest.approx(losses_of_one_process(), rel=1e-5)
    assert f"{prefix}process 1 of 2 with 1 threads" in str(experiment.logs())
    assert len(experiment.trials[0].metrics("validation")) == 1
    [checkpoint] = experiment.trials[0].checkpoints
    folder = Path(checkpoint.download(tmp_path / "checkpoint"))
    assert [(folder / f"rank{rank}").read_text() for rank in range(2)] == ["0", "1"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("entrypoint", "prefix"),
    [
        ("torchrun train.py", ""),
        ("python3 -m determined.launch.deepspeed --log_dir logs -- train.py", "[rank=1] "),
        ("python3 -m determined.launch.horovod --verbose -- python3 train.py", "[rank=1] "),
    ],
)
def test_a_layer_starts_a_process_for_each_slot(submit: Submit, entrypoint: str, prefix: str) -> None:
    if "horovod" in entrypoint:
        pytest.importorskip("horovod", reason="sh tools/horovod.sh builds it")
    rank = "HOROVOD_RANK" if "horovod" in entrypoint else "RANK"
    source = f"import os; print('process', os.environ[{rank!r}])"
    experiment = submit(entrypoint, {"train.py": source}, resources=SLOTS)
    ended(experiment, ExperimentState.COMPLETED)
    assert f"{prefix}process 1" in str(experiment.logs())


def test_a_process_that_fails_ends_the_others_and_the_trial(submit: Submit) -> None:
    source = """
import os, sys, time
if os.environ["RANK"] == "1":
    sys.exit("no more data")
time.sleep(600)
"""
    layer = "python3 -m determined.launch.torch_distributed python3 train.py"
    experiment = submit(layer, {"train.py": source}, resources=SLOTS, max_restarts=0)
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.error is not None
    assert "ended with exit code 1" in trial.error.message
    assert "[rank=1] no more data" in str(experiment.logs())


@pytest.mark.parametrize("layer", ["", "-m determined.launch.tensorflow "])
def test_one_process_has_all_slots_of_its_machine(submit: Submit, layer: str) -> None:
    source = "import determined as det; print('alone with', det.get_cluster_info().slot_ids)"
    experiment = submit(f"python3 {layer}train.py", {"train.py": source}, resources=SLOTS)
    ended(experiment, ExperimentState.COMPLETED)
    assert str(experiment.logs()).count("alone with [0, 1]") == 1
