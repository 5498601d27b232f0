"""``local=True`` on two slots, from a kernel: two processes of this machine, and nothing of them stays."""

from __future__ import annotations

import importlib
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client.manager import KernelManager

import det_native as det
from det_native.schema.states import ExperimentState, TrialState

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

DEFINITION = """
import os
import time
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.05))
        rank = context.distributed.get_rank()
        print(f"rank {rank} of {context.distributed.get_size()}, here: {os.getpid() == KERNEL}")

    def data(self):
        x = torch.linspace(-1, 1, 16).reshape(-1, 1)
        return DataLoader(torch.utils.data.TensorDataset(x, 2 * x + 1), self.context.get_per_slot_batch_size())

    build_training_data_loader = build_validation_data_loader = data

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]).item()}

def config(batches):
    return {
        "searcher": {"name": "single", "metric": "error", "max_length": {"batches": batches}},
        "hyperparameters": {"global_batch_size": 4},
        "resources": {"slots_per_trial": 2},
        "scheduling_unit": 2,
    }
"""

TRAIN = """
experiment = det.experimental.create(Line, config(8), local=True)
weights = experiment.top_checkpoint().load().model.weight
print("done", experiment.id, weights.shape, len(experiment.history["loss"]))
print("measured ranks", sorted({row["rank"] for row in experiment.trials[0].metrics("system")}))
"""

SPREAD = """
spreading = config(4) | {"resources": {"slots_per_trial": 2, "native_parallel": True}}
experiment = det.experimental.create(Line, spreading, local=True)
print("done", experiment.id, experiment.state)
"""

BROKEN = """
class Broken(Line):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 3 and self.context.distributed.get_rank() == 1:
            raise ZeroDivisionError("the fourth batch")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

RUN_BROKEN = """
det.experimental.create(Broken, config(8), local=True)
"""

ENDLESS = """
class Endless(Line):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 4:
            print("under way", flush=True)
        time.sleep(0.02)
        return super().train_batch(batch, epoch_idx, batch_idx)

experiment = det.experimental.create(Endless, config(1_000_000), local=True)
print("done", experiment.id)
"""

OBJECTS = """
def loader():
    x = torch.linspace(-1, 1, 16).reshape(-1, 1)
    data = torch.utils.data.TensorDataset(x, 2 * x + 1)
    return torch.utils.data.DataLoader(data, context.get_per_slot_batch_size(), shuffle=True)

def train_batch(batch, epoch_idx, batch_idx):
    if batch_idx == 0:
        print(f"rank {context.distributed.get_rank()} here: {os.getpid() == KERNEL}")
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

def evaluate_batch(batch):
    return {"error": torch.nn.functional.mse_loss(model(batch[0]), batch[1])}
"""

BEGIN = """
context = det.experimental.pytorch.init(config(8) | {"reproducibility": {"experiment_seed": 5}}, local=True)
model = context.wrap_model(torch.nn.Linear(1, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.05))
"""

FIT = """
drawn = model.weight.item()
experiment = context.fit(loader(), loader(), train_batch, evaluate_batch)
"""

LOOP = """
for batch in context.train(loader(), validation_loader=loader(), evaluate_batch=evaluate_batch):
    context.report(train_batch(batch, context.epoch_idx, context.batch_idx))
experiment = context.experiment
"""

# The model of this kernel is that of the last checkpoint, the same as where fit() or the loop ran here.
SHOW = """
last = experiment.trials[0].checkpoints[-1].load()
rows = len(experiment.trials[0].metrics())
print("done", experiment.id, rows, torch.equal(last.weight, model.weight), model.weight.item())
"""

LOOP_BROKEN = """
for batch in context.train(loader(), validation_loader=loader(), evaluate_batch=evaluate_batch):
    if context.batch_idx == 2 and context.distributed.get_rank() == 1:
        raise ZeroDivisionError("the third batch")
    context.report(train_batch(batch, 0, 1))
"""

QUICK = """
experiment = context.fit(loader(), loader(), train_batch, evaluate_batch)
print("size", context.get_per_slot_batch_size())
"""


KILLED = """
import signal

class Killed(Line):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 3 and self.context.distributed.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

RUN_KILLED = """
det.experimental.create(Killed, config(8), local=True)
"""

WRONG_METRIC = """
wrong = config(2) | {"searcher": {"name": "single", "metric": "acuracy", "max_length": {"batches": 2}}}
try:
    det.experimental.create(Line, wrong, local=True)
except det.errors.TrialDefinitionError as error:
    print("caught", type(error).__name__, "|", error, "|", error.__notes__)
"""

FIRST = """
one = config(2) | {"resources": {"slots_per_trial": 1}}
first = det.experimental.create(Line, one, local=True)
lowest = first.trials[0].metrics()[-1]["loss"]
scale = 10.0 if lowest >= 0 else 0.1
"""

SECOND = """
class Scaled(Line):
    def train_batch(self, batch, epoch_idx, batch_idx):
        return {**super().train_batch(batch, epoch_idx, batch_idx), "scale": scale}
"""

RUN_SECOND = """
second = det.experimental.create(Scaled, config(2), local=True)
print("done", second.trials[0].metrics()[-1]["scale"])
"""


WRITING = """
import pathlib

class Writing(Line):
    def train_batch(self, batch, epoch_idx, batch_idx):
        rank = self.context.distributed.get_rank()
        pathlib.Path("samples").mkdir(exist_ok=True)
        pathlib.Path(f"samples/of-{rank}.txt").write_text(str(batch_idx))
        if rank == 0:
            torch.save(self.model.state_dict(), "best.pt")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

RUN_WRITING = """
experiment = det.experimental.create(Writing, config(8), local=True)
print("shapes", torch.load("best.pt")["weight"].shape, pathlib.Path("samples/of-1.txt").read_text())
print("listed", experiment.artifacts.paths, experiment.artifacts["samples/of-0.txt"].load())
"""


class Kernel:
    """A kernel whose cells are numbered and may be interrupted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=200)
        self.printed = ""
        self.run(f"KERNEL = {int(self.run('import os; print(os.getpid())'))}")
        self.run(DEFINITION)

    def run(self, code: str) -> str:
        """Execute a cell; return what was printed and its traceback."""
        self.printed = ""
        self.client.execute_interactive(code, output_hook=self._take, timeout=240, allow_stdin=False)
        return self.printed

    def _take(self, message: dict) -> None:  # type: ignore[type-arg]
        content = message["content"]
        text = content.get("text", "") if message["msg_type"] == "stream" else "\n".join(content.get("traceback", []))
        self.printed += re.sub(r"\x1b\[[0-9;]*m", "", text)

    def interrupt_once(self, word: str) -> None:
        """Interrupt the cell under way as soon as it has printed a word; returns at once."""

        def wait() -> None:
            self.wait_for(word)
            self.manager.interrupt_kernel()

        threading.Thread(target=wait, daemon=True).start()

    def wait_for(self, word: str) -> None:
        """Wait until the cell under way has printed a word."""
        deadline = time.monotonic() + 200
        while word not in self.printed and time.monotonic() < deadline:
            time.sleep(0.05)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with the trial class in its second cell; it shares DET_HOME with this process."""
    folder = tmp_path_factory.mktemp("kernel")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(folder / "home"))
        patch.setenv("TMPDIR", str(folder))
        started = Kernel(folder)
        try:
            yield started
        finally:
            started.close()


@pytest.fixture(autouse=True)
def nothing_is_left(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """See that a test leaves no process and no temporary folder behind."""
    monkeypatch.setenv("DET_HOME", str(kernel.folder / "home"))
    yield
    assert not workers_in(kernel.folder)
    assert not list(kernel.folder.glob("det-*"))
    assert not list((kernel.folder / "home" / "local").glob("*/trials/*/run"))


def workers_in(folder: Path) -> list[psutil.Process]:
    """Return the workers that a kernel of the folder has started."""
    workers = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        home = (process.info["environ"] or {}).get("DET_HOME", "")
        if home == str(folder / "home") and "det_harness.worker.standby" in (process.info["cmdline"] or ()):
            workers.append(process)
    return workers


def test_trains_on_two_slots_and_gives_the_handle(kernel: Kernel) -> None:
    printed = kernel.run(TRAIN)
    assert "\nrank 0 of 2, here: False" in f"\n{printed}", printed
    assert "[rank 1] rank 1 of 2, here: False" in printed
    assert "measured ranks [0, 1]" in printed
    done = re.search(r"done (local-\d+) torch.Size\(\[1, 1\]\) (\d+)", printed)
    assert done, printed
    assert int(done[2]) > 0
    experiment = det.attach(done[1])
    assert experiment.state == ExperimentState.COMPLETED
    [trial] = experiment.source.trials(experiment.id)
    assert trial.batches == 8
    assert experiment.top_checkpoint().load().model.weight.shape == (1, 1)


@pytest.mark.soak
def test_one_process_with_all_slots_is_not_the_kernel_either(kernel: Kernel) -> None:
    printed = kernel.run(SPREAD)
    assert "rank 0 of 1, here: False" in printed, printed
    assert "here: True" not in printed
    assert re.search(r"done local-\d+ Completed", printed), printed


@pytest.mark.long
def test_error_of_one_rank_comes_back_with_cell_and_line(kernel: Kernel) -> None:
    kernel.run(BROKEN)
    printed = kernel.run(RUN_BROKEN)
    assert "ZeroDivisionError: the fourth batch" in printed, printed
    assert "on rank 1" in printed
    assert re.search(r"in cell \[\d+\], line 5", printed), printed
    kept = re.search(r"det.attach\('(local-\d+)'\)", printed)
    assert kept, printed
    assert det.attach(kept[1]).state == ExperimentState.ERROR


@pytest.mark.long
def test_a_process_that_is_killed_is_told_with_rank_signal_and_memory(kernel: Kernel) -> None:
    kernel.run(KILLED)
    printed = kernel.run(RUN_KILLED)
    told = r"rank 1 of 2: killed by signal 9 \(SIGKILL\); peak memory \d+ MiB; if nobody killed it, the system may"
    assert re.search(told, printed), printed


@pytest.mark.long
def test_an_error_of_ours_comes_back_as_what_it_is(kernel: Kernel) -> None:
    printed = kernel.run(WRONG_METRIC)
    assert re.search(r"caught TrialDefinitionError \| [^\n]*acuracy[^\n]* \| \['Trial 1 failed", printed), printed


@pytest.mark.long
def test_files_that_processes_write_lie_where_plain_code_puts_them(kernel: Kernel) -> None:
    kernel.run(WRITING)
    printed = kernel.run(RUN_WRITING)
    assert "shapes torch.Size([1, 1]) 7" in printed, printed
    assert "listed ['best.pt', 'samples/of-0.txt', 'samples/of-1.txt'] 7" in printed, printed
    for name in ("best.pt", "samples"):
        assert (kernel.folder / name).exists()


@pytest.mark.long
def test_a_value_made_of_an_earlier_result_travels_as_it_is(kernel: Kernel) -> None:
    assert "Error" not in kernel.run(FIRST)
    kernel.run(SECOND)
    assert "done 10.0" in kernel.run(RUN_SECOND), kernel.printed


@pytest.mark.long
def test_interrupt_ends_it_with_a_checkpoint(kernel: Kernel) -> None:
    kernel.interrupt_once("under way")
    printed = kernel.run(ENDLESS)
    done = re.search(r"done (local-\d+)", printed)
    assert done, printed
    experiment = det.attach(done[1])
    assert experiment.state == ExperimentState.CANCELED
    [trial] = experiment.source.trials(experiment.id)
    assert trial.state == TrialState.CANCELED
    assert experiment.top_checkpoint().batch == trial.batches > 4


@pytest.fixture(scope="module")
def native(kernel: Kernel) -> Kernel:
    """The kernel with objects for ``pytorch.init()`` too."""
    kernel.run(OBJECTS)
    return kernel


@pytest.mark.long
def test_fit_and_a_loop_train_on_two_slots_alike(native: Kernel) -> None:
    weights = []
    for cell in (FIT, LOOP):
        native.run(BEGIN)
        printed = native.run(cell)
        assert "rank 0 here: False" in printed, printed
        assert "[rank 1] rank 1 here: False" in printed
        assert "here: True" not in printed
        assert ("the body of this loop has run in processes of its own" in printed) is (cell == LOOP)
        done = re.search(r"done (local-\d+) 8 True (\S+)", native.run(SHOW))
        assert done, native.printed
        experiment = det.attach(done[1])
        assert experiment.state == ExperimentState.COMPLETED
        [trial] = experiment.source.trials(experiment.id)
        assert (trial.batches, trial.target_batches) == (8, 8)
        weights.append(done[2])
    assert weights[0] == weights[1]
    assert float(weights[0]) != float(native.run("print(drawn)"))
    again = native.run(FIT)
    assert "TrialDefinitionError: context.fit() trains in processes of its own, which do not have what" in again


@pytest.mark.soak
def test_error_in_the_body_of_a_loop_comes_back_with_cell_and_line(native: Kernel) -> None:
    native.run(BEGIN)
    printed = native.run(LOOP_BROKEN)
    assert "ZeroDivisionError: the third batch" in printed, printed
    assert "on rank 1" in printed
    assert re.search(r"in cell \[\d+\], line 4", printed), printed
    kept = re.search(r"det.attach\('(local-\d+)'\)", printed)
    assert kept, printed
    assert det.attach(kept[1]).state == ExperimentState.ERROR


@pytest.mark.soak
def test_a_quick_check_stays_here_on_one_slot(native: Kernel) -> None:
    native.run(BEGIN.replace("local=True", "local=True, test=True"))
    printed = native.run(QUICK)
    assert "becomes 1: a local run has one slot with test=True" in printed, printed
    assert "rank 0 here: True" in printed
    assert "The quick check passed." in printed
    assert "size 4" in printed


@pytest.mark.long
def test_processes_end_soon_after_their_kernel_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    doomed = Kernel(tmp_path)
    try:
        doomed.client.execute(ENDLESS)
        deadline = time.monotonic() + 200
        while not list(tmp_path.glob("home/local/1/trials/1/run/1/reports.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(workers_in(tmp_path)) == 2
    finally:
        doomed.close()
    _, left = psutil.wait_procs(workers_in(tmp_path), timeout=60)
    assert not left
    # Their last checkpoint and the rows before it are in the record all the same.
    experiment = det.attach("local-1")
    [trial] = experiment.source.trials(1)
    last = experiment.trials[0].checkpoints[-1]
    assert last.batch == trial.batches >= 1
    assert experiment.trials[0].metrics()[-1]["batch"] == trial.batches
    assert f"after batch {trial.batches} of 1000000" in experiment.source.experiment(1).error.message
    assert last.load().model.weight.shape == (1, 1)
    assert not list(tmp_path.glob("det-*"))
