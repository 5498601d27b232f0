"""What only a master needs is imported by the master alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = {"alembic", "apscheduler", "fastapi", "sqlalchemy", "sse_starlette", "starlette", "uvicorn"}
BLOCKED = f"""
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname.partition(".")[0] in {MODULES!r}:
            raise ModuleNotFoundError(f"No module named {{fullname!r}}", name=fullname)

sys.meta_path.insert(0, Blocked())
"""
LOOP = """
import torch
import det_native as det
context = det.experimental.pytorch.init(local=True)
model = context.wrap_model(torch.nn.Linear(2, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
data = torch.utils.data.TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
for x, y in context.train(torch.utils.data.DataLoader(data, batch_size=4), epochs=1):
    loss = (model(x) - y).square().mean()
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
print(x.shape)
"""
COMMANDS = """
from click.testing import CliRunner
from det_native.client.command import cli
import det_harness.worker.process
result = CliRunner().invoke(cli, ["experiment", "list"])
print(result.exit_code, result.output)
result = CliRunner().invoke(cli, ["up", "--help"])
print(result.exit_code, result.output)
"""


def run(code: str, home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code],
        env=os.environ | {"DET_HOME": str(home), "TMPDIR": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_local_training_needs_no_package_of_a_master(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed here.")
    assert "torch.Size([4, 2])" in run(LOOP, tmp_path)


def test_the_command_needs_no_package_of_a_master(tmp_path: Path) -> None:
    assert "Usage: cli up" in run(COMMANDS, tmp_path)
