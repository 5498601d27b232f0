"""A trial with everything that is hard to continue, in real worker processes that are killed, and its event files."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from harness_bundles import cell
from reports_app import ReportsMaster, serving
from worker_program import TRAIN, Starter, Worker, program

from det_native.schema.manifests import Cell, CheckpointManifest
from det_native.schema.rest import CheckpointReport, MetricsReport, StartedReport
from det_native.storage.checkpoints import CheckpointStorage
from det_native.tensorboard.metric_writers.pytorch import TorchWriter
from det_native.tensorboard.place import writing_to

pytestmark = pytest.mark.slow

torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)

TRIAL = """
from det_native.tensorboard.metric_writers.pytorch import TorchWriter

class Stream(torch.utils.data.IterableDataset):
    def __len__(self):
        return 900
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        for index in range(worker.id, 900, worker.num_workers):
            x, y = data[index]
            yield x + 0.05 * torch.rand(64) + 0.05 * random.random(), y

class Streamed(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.writer = TorchWriter()
        self.model = context.wrap_model(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10)))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9))
        self.scaler = context.wrap_scaler(torch.amp.GradScaler("cpu", init_scale=2.0**26, growth_interval=4))
        self.mean = context.experimental.wrap_reducer(np.mean, name="mean", for_validation=False)
    def build_training_data_loader(self):
        return DataLoader(Stream(), batch_size=64, num_workers=2)
    def build_validation_data_loader(self):
        return DataLoader(data, batch_size=500)
    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        fate("batch", batch_idx + 1)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(self.model(x), y)
        self.context.backward(self.scaler.scale(loss))
        self.context.step_optimizer(self.optimizer, scaler=self.scaler)
        self.scaler.update()
        self.mean.update(float(x.mean()))
        self.writer.add_scalar("scale", self.scaler.get_scale(), batch_idx)
        return {"loss": loss}
    def evaluate_batch(self, batch):
        x, y = batch
        return {"accuracy": (self.model(x).argmax(1) == y).float().mean()}
"""
CONFIG: dict[str, Any] = {
    "searcher": {"metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 40}},
    "scheduling_unit": 10,
    "min_checkpoint_period": {"batches": 7},
    "min_validation_period": {"batches": 25},
}


def cells() -> list[Cell]:
    return [cell(1, TRAIN), *program("train(Streamed)  # <- call", trial=TRIAL)[1:]]


def run_to_the_end(worker: Worker, deaths: set[tuple[str, int]]) -> tuple[int, dict[str, dict[int, float]]]:
    """Start workers until one ends by itself; returns how many there were, and the metrics by name and batch."""
    found: dict[str, dict[int, float]] = {}
    resume: CheckpointManifest | None = None
    for count in range(1, 10):
        master = ReportsMaster()
        with serving(master):
            worker.url = master.url
            job = worker.job(worker.bundle(deaths=deaths, cells=cells()), resume=resume, config=CONFIG)
            code = worker.run(job)
        assert code in (0, -signal.SIGKILL), worker.output(job)
        for report in master.reports:
            if isinstance(report, StartedReport):
                found = {name: {b: v for b, v in column.items() if b <= report.batch} for name, column in found.items()}
            elif isinstance(report, MetricsReport):
                for name, column in report.metrics.items():
                    pairs = zip(report.batches, column, strict=True)
                    found.setdefault(name, {}).update({batch: value for batch, value in pairs if value is not None})
            elif isinstance(report, CheckpointReport):
                resume = report.manifest
        if code == 0:
            return count, found
    raise AssertionError("it never came to its end")


def last_state(worker: Worker) -> dict[str, Any]:
    storage = CheckpointStorage(worker.checkpoints)
    final = max(storage.list(), key=lambda manifest: manifest.batch)
    assert final.batch == 40
    with storage.open(final.uuid, "state_dict.pth") as stream:
        loaded: dict[str, Any] = torch.load(stream, weights_only=True)
    with storage.open(final.uuid, "scalers.json") as stream:
        loaded["scalers"] = stream.read()
    return loaded


def test_killed_workers_continue_streams_scalers_and_reducers_exactly(tmp_path: Path, starter: Starter) -> None:
    with writing_to(tmp_path):
        TorchWriter()  # loads tensorboard without TensorFlow
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    ends = []
    for name, deaths in (("whole", set()), ("killed", {("batch", 9), ("batch", 36)})):
        worker = Worker(tmp_path / name, "", starter)
        count, metrics = run_to_the_end(worker, deaths)
        state = last_state(worker)
        ends.append(
            (count, metrics, state["scalers"], {n: v.tolist() for n, v in state["models_state_dict"][0].items()})
        )
    assert [end[0] for end in ends] == [1, 3]
    assert ends[0][1:] == ends[1][1:]
    assert list(ends[0][1]["mean"]) == [10, 20, 25, 30, 40]
    assert sorted(ends[0][1]["loss"]) == list(range(1, 41))
    events = EventAccumulator(str(tmp_path / "killed" / "tensorboard" / "1" / "1")).Reload()
    assert {event.step for event in events.Scalars("scale")} == set(range(40))
