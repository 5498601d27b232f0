"""A notebook whose Python has nothing of what a master needs: all but a master of its own works."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from det_native.client import starting
from det_native.errors import MissingDependencyError
from det_native.schema.home import Home

ROOT = Path(__file__).parents[2]
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
print("trained")
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
    assert "trained" in run(LOOP, tmp_path)


def test_the_command_needs_no_package_of_a_master(tmp_path: Path) -> None:
    assert "Usage: cli up" in run(COMMANDS, tmp_path)


@pytest.mark.long
def test_starting_a_master_without_its_packages_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_packages_of_master", lambda: ["sqlalchemy", "no-such-package", "fastapi"])
    with pytest.raises(
        MissingDependencyError, match=r"needs no-such-package: run  pip install \"det-native\[master\]\""
    ):
        starting.ensure_master(Home(tmp_path))
    assert not list(tmp_path.iterdir()), "nothing was begun"


def test_the_metadata_name_what_a_master_needs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = {line.partition(">")[0].partition("[")[0] for line in extras["master"]}
    assert set(starting._packages_of_master()) == listed == {name.replace("_", "-") for name in MODULES - {"starlette"}}
    assert "det-native[master]" in extras["lab"], "a laptop needs one command"
