"""The program and the jobs of the worker tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import IO, Any, Self

from harness_bundles import call_in, cell, make_bundle

from det_native import PROTOCOL
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.manifests import BundleManifest, CallSite, Cell, CheckpointManifest
from det_native.schema.rest import ExitReport
from det_native.storage.blobs import BlobStore

TRAIN = "from det_harness_test_api import train"
API = """
def train(trial_class):
    from det_native.runtime import active_host
    return active_host().take_call("create", trial_class)
"""

DATA = """
import random, os, signal
import numpy as np, torch
from torch import nn
from sklearn.datasets import load_digits
from det_native.pytorch import PyTorchTrial, PyTorchCallback, DataLoader, LRScheduler
torch.set_num_threads(1)
images, labels = load_digits(return_X_y=True)
data = torch.utils.data.TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))
def fate(moment, batch):
    # Dies once at each planned (moment, batch): a file remembers.
    mark = os.path.join(deaths_folder, f"{moment}-{batch}")
    if (moment, batch) in deaths and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
"""

TRIAL = """
class Killer(PyTorchCallback):
    def __init__(self, trial):
        self.trial = trial
    def on_checkpoint_end(self, checkpoint_dir):
        fate("checkpoint", self.trial.done)

class Digits(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.done = 0
        self.model = context.wrap_model(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10)))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9))
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 60), LRScheduler.StepMode.STEP_EVERY_BATCH
        )
    def build_training_data_loader(self):
        return DataLoader(data, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)
    def build_validation_data_loader(self):
        return DataLoader(data, batch_size=500)
    def build_callbacks(self):
        return {"killer": Killer(self)}
    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        fate("batch", batch_idx + 1)
        x = x + 0.01 * random.random() + 0.01 * np.random.rand()
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.done = batch_idx + 1
        return {"loss": loss}
    def evaluate_batch(self, batch):
        x, y = batch
        return {"accuracy": (self.model(x).argmax(1) == y).float().mean()}
"""


def program(*last: str, trial: str = TRIAL) -> list[Cell]:
    return [
        cell(1, TRAIN),
        cell(2, DATA),
        cell(4, trial),
        *(cell(5 + number, text) for number, text in enumerate(last)),
    ]


class Worker:
    """Runs jobs of one experiment in real processes, as a launcher does."""

    def __init__(self, folder: Path, url: str, starter: Starter) -> None:
        self.starter = starter
        self.folder = folder
        self.url = url
        self.blobs = BlobStore(str(folder / "blobs"))
        self.checkpoints = str(folder / "checkpoints")
        (folder / "deaths").mkdir(parents=True)

    def bundle(
        self,
        *,
        deaths: set[tuple[str, int]] = frozenset(),  # type: ignore[assignment]
        cells: list[Cell] | None = None,
        call: CallSite | None = None,
        **more: Any,
    ) -> BundleManifest:
        made = cells or program("train(Digits)  # <- call")
        values = [("deaths", 0, set(deaths)), ("deaths_folder", 0, str(self.folder / "deaths"))]
        return make_bundle(self.blobs, made, call=call or call_in(made), values=values, **more)

    def job(
        self, bundle: BundleManifest, resume: CheckpointManifest | None = None, config: dict[str, Any] | None = None
    ) -> TrialJob:
        run_id = uuid.uuid4().hex
        return TrialJob(
            protocol=PROTOCOL,
            directory=str(self.folder / "runs" / run_id),
            blobs=self.blobs.uri,
            bundle=bundle,
            bundle_id=bundle.id,
            checkpoints=self.checkpoints,
            resume=resume,
            master_url=self.url,
            token="token",
            run_id=run_id,
            experiment_id=1,
            trial_id=1,
            config=config
            or {
                "searcher": {"metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 60}},
                "min_checkpoint_period": {"batches": 8},
                "min_validation_period": {"batches": 20},
            },
            hparams={"global_batch_size": 64},
            trial_seed=17,
        )

    def start(self, job: TrialJob | CheckJob) -> Process:
        (Path(job.directory) / "work").mkdir(parents=True)
        api = self.folder / "api"
        api.mkdir(exist_ok=True)
        (api / "det_harness_test_api.py").write_text(API)
        return self.starter.start({"kind": type(job).__name__, "job": job.model_dump_json(), "path": str(api)})

    def run(self, job: TrialJob | CheckJob) -> int:
        return self.start(job).wait()

    def output(self, job: TrialJob | CheckJob) -> str:
        return (Path(job.directory) / "output.log").read_text()

    def exit(self, job: TrialJob) -> ExitReport:
        return ExitReport.model_validate_json((Path(job.directory) / "exit.json").read_bytes())


_MAIN = """
import json, os, sys
import sklearn.datasets, torch, torch._dynamo
from det_native.schema import job as jobs
from det_harness.worker.job import run_job
import det_harness.frameworks.torch.controller

def run(order):
    job = getattr(jobs, order["kind"]).model_validate_json(order["job"])
    output = os.open(job.directory + "/output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1), os.dup2(output, 2)
    os.chdir(job.directory + "/work")
    sys.path.insert(0, order["path"])
    return run_job(job)

print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            code = run(json.loads(line))
        except BaseException:
            sys.excepthook(*sys.exc_info())
            code = 99
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Process:
    """A worker under way."""

    def __init__(self, pid: int, results: IO[str]) -> None:
        self.pid = pid
        self._results = results

    def wait(self) -> int:
        return int(self._results.readline())


class Starter:
    """Starts workers out of one process that has imported torch and done nothing else: quicker, and real processes."""

    def __init__(self, temporary: Path) -> None:
        self._temporary = temporary

    def __enter__(self) -> Self:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(self._temporary)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _MAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._results.readline() == "ready\n"
        return self

    def __exit__(self, *details: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._results.close()
        self._process.wait(30)

    def start(self, order: dict[str, str]) -> Process:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Process(int(self._results.readline()), self._results)

    @property
    def _results(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout
