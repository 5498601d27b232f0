"""Experiments for JupyterLab to show, submitted from a script: no notebook and no kernel is needed for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from browser_parts import wait_until

from det_native import PROTOCOL
from det_native.client.session import Session
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.rest import ExperimentCreate

# The sum of four numbers is learnt, by a model with one weight for each.
SCRIPT = """
import json
import sys
import time

import torch

import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial


class Sum(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(4, 1, bias=False))
        rate = context.get_hparam("learning_rate")
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=rate))

    def _loader(self):
        x = torch.rand(64, 4, generator=torch.Generator().manual_seed(1))
        return DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)

    def build_training_data_loader(self):
        return self._loader()

    def build_validation_data_loader(self):
        return self._loader()

    def train_batch(self, batch, epoch_idx, batch_idx):
        time.sleep(self.context.get_hparam("pace"))
        if self.context.get_hparam("broken") and batch_idx == 5:
            raise ValueError("broken on purpose")
        print("trains batch", batch_idx, flush=True)
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}


if __name__ == "__main__":
    print(det.experimental.create(Sum, json.loads(sys.argv[1])).id)
"""


def described(
    name: str,
    *,
    batches: int,
    pace: float = 0.0,
    broken: bool = False,
    rate: float | Mapping[str, Any] = 0.1,
    searcher: str = "single",
    **more: Any,
) -> dict[str, Any]:
    """Return the configuration of an experiment of the script.

    Parameters
    ----------
    pace : float
        Seconds that each batch takes.
    broken : bool
        The sixth batch raises.
    rate : float or mapping
        Learning rate, or what the search is to try.
    """
    return {
        "name": name,
        "hyperparameters": {"global_batch_size": 8, "learning_rate": rate, "pace": pace, "broken": broken},
        "searcher": {"name": searcher, "metric": "error", "max_length": {"batches": batches}},
        "min_validation_period": {"batches": 10},
        "scheduling_unit": 10,
        "max_restarts": 0,
        **more,
    }


# By the home of a master: the program that it has, which further experiments of it need not send again.
_programs: dict[str, str] = {}


def submit(home: Home, folder: Path, *configs: Mapping[str, Any]) -> list[int]:
    """Submit experiments and return their numbers: a master's first one by the script, all others of the same program.

    To import the framework and to look at the program for each takes as long as the tests do that look at them.
    """
    runtime = read_runtime(home)
    assert runtime is not None
    session = Session(runtime.url, home.token.read_text().strip())
    ids = []
    for config in configs:
        program = _programs.get(str(home.path))
        if program is None:
            ids.append(_run_script(home, folder, config))
            _programs[str(home.path)] = session.call(routes.GET_EXPERIMENT, experiment_id=ids[0]).bundle_id
        else:
            body = ExperimentCreate(protocol=PROTOCOL, config=dict(config), bundle_id=program)
            ids.append(session.call(routes.CREATE_EXPERIMENT, body).id)
    session.close()
    return ids


def _run_script(home: Home, folder: Path, config: Mapping[str, Any]) -> int:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, str(script), json.dumps(config)],
        check=True,
        cwd=folder,
        env={**os.environ, "DET_HOME": str(home.path), "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        timeout=120,
    )
    return int(ran.stdout.splitlines()[-1])


def wait_for_end(session: Session, *experiments: int) -> None:
    """Wait until experiments have ended, however they do."""
    for experiment in experiments:
        wait_until(
            lambda number=experiment: session.call(routes.GET_EXPERIMENT, experiment_id=number).ended is not None,  # type: ignore[misc]
            f"experiment {experiment} has ended",
        )
