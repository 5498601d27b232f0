"""Directories that were written for Determined and cannot be trained as they are: what the shell says of each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CONST = """
hyperparameters: {{global_batch_size: 4, learning_rate: 0.5}}
searcher: {{name: single, metric: loss, max_length: {{batches: 2}}}}
entrypoint: {entrypoint}
"""
TRIAL = """
import torch
from determined.pytorch import DataLoader, PyTorchTrial


class T(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        rate = context.get_hparam("learning_rate")
        print("learning_rate is", repr(rate))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=rate))

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = (self.model(batch[0]) ** 2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"loss": (self.model(batch[0]) ** 2).mean()}

    def build_training_data_loader(self):
        return DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 1)), batch_size=4)

    build_validation_data_loader = build_training_data_loader
"""


def created(folder: Path, *words: str, entrypoint: str = "model_def:T", path: Path | None = None, code: int = 1) -> str:
    """Return what ``det experiment create`` prints in a folder, whose exit code has to be `code`."""
    (folder / "const.yaml").write_text(CONST.format(entrypoint=entrypoint))
    (temporary := folder / "temporary").mkdir(exist_ok=True)
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "TMPDIR": str(temporary)}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, "-m", "det_native.client.command", "experiment", "create", "const.yaml", ".", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "value"), [("1e-3", 0.001), ("2E5", 200000.0), ("-1e+2", -100.0), (".5", 0.5), ("1_000", 1000), ("3", 3)]
)
def test_a_number_of_a_config_option_is_that_number(tmp_path: Path, text: str, value: float) -> None:
    from det_native.experimental.directories import changed

    (tmp_path / "const.yaml").write_text(CONST.format(entrypoint="model_def:T"))
    written = changed(tmp_path / "const.yaml", [f"hyperparameters.learning_rate={text}"])["hyperparameters"]
    assert written["learning_rate"] == value
    assert type(written["learning_rate"]) is type(value)


@pytest.mark.long
def test_the_trial_is_given_the_number_of_a_config_option(tmp_path: Path) -> None:
    (tmp_path / "model_def.py").write_text(TRIAL)
    option = "hyperparameters.learning_rate=1e-3"
    printed = created(tmp_path, "--local", "--test", "--config", option, code=0)
    assert "learning_rate is 0.001\n" in printed
    assert "The quick check passed." in printed


def test_a_module_that_a_framework_has_no_more_is_named(tmp_path: Path) -> None:
    (tmp_path / "model_def.py").write_text(f"from torch._six import string_classes\n{TRIAL}")
    printed = created(tmp_path, "--local")
    assert 'model_def.py", line 1, in <module>' in printed
    assert "No module named 'torch._six'" in printed
    assert "not installed" not in printed


@pytest.mark.long
def test_advice_on_the_real_determined_does_not_go_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "model_def.py").write_text("from determined.pytorch import PyTorchTrial, reset_parameters\n" + TRIAL)
    without = created(tmp_path, "--local")
    assert "`reset_parameters` is not in `determined.pytorch`" in without
    assert "Leave it out of the code" in without
    assert "nstall" not in without.rpartition("ImportError")[2]
    real = tmp_path / "site" / "determined"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("from . import pytorch")
    names = "class PyTorchTrial: pass\nclass DataLoader: pass\ndef reset_parameters(model): pass"
    (real / "pytorch.py").write_text(names)
    beside = created(tmp_path, "--local", path=tmp_path / "site")
    assert "pip uninstall determined" in beside
    assert "as it is" not in beside


@pytest.mark.soak
def test_an_entrypoint_with_an_open_quotation_mark_is_one_sentence(tmp_path: Path) -> None:
    printed = created(tmp_path, entrypoint='"python3 train.py \'x"')
    assert "cannot be read: No closing quotation." in printed
    assert "Traceback" not in printed


@pytest.mark.long
def test_a_script_that_fails_has_not_passed_the_quick_check(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("1 / 0\n")
    try:
        printed = created(tmp_path, "--local", "--test", entrypoint="train.py")
    finally:
        subprocess.run([sys.executable, "-m", "det_native.client.command", "down"], check=True, capture_output=True)
    assert "Experiment 1 is Failed." in printed
    assert "ZeroDivisionError" in printed
    assert "passed" not in printed
