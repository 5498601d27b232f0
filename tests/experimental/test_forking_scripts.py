"""Scripts that train here and have processes of their own: loader workers, or whatever else is forked."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from forked_programs import ForkedPrograms

pytestmark = pytest.mark.slow

BEGINNING = """
import multiprocessing, os
import torch
from torch.utils.data import DataLoader, Dataset
import det_native as det

class Records(Dataset):
    broken = -1

    def __len__(self):
        return 16

    def __getitem__(self, index):
        if index == self.broken:
            raise ValueError("a broken record")
        return torch.ones(1)

context = det.experimental.pytorch.init({}, local=True)
model = context.wrap_model(torch.nn.Linear(1, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))

def train_batch(batch, epoch_idx=0, batch_idx=0):
    loss = model(batch).sum()
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
"""

FORKING = """
script = os.getpid()

class Told(det.pytorch.PyTorchCallback):
    def on_checkpoint_end(self, checkpoint_dir):
        print("checkpoint in the", "script" if os.getpid() == script else "fork", flush=True)

for batch in context.train(DataLoader(Records(), batch_size=4), callbacks=Told()):
    context.report(train_batch(batch))
    if context.batch_idx == 1:
        process = multiprocessing.get_context("fork").Process(target=int)
        process.start()
        process.join()
        print("exit code", process.exitcode)
"""

BROKEN = """
Records.broken = 9
context.fit(DataLoader(Records(), batch_size=4, num_workers=1), train_batch=train_batch)
"""


def run(programs: ForkedPrograms, folder: Path, source: str) -> tuple[int, str]:
    """Run a script; return its exit code and its output."""
    (folder / "train.py").write_text(BEGINNING + source)
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}  # any optimizer makes it
    [code], [output] = programs.run(folder, [["train.py"]], variables, within=folder)
    return code, output


def test_a_fork_that_ends_within_a_loop_does_not_end_the_training(
    tmp_path: Path, torch_programs: ForkedPrograms
) -> None:
    code, output = run(torch_programs, tmp_path, FORKING)
    assert code == 0, output
    assert "exit code 0" in output
    assert (output.count("checkpoint in the script"), "checkpoint in the fork" in output) == (1, False)


@pytest.mark.long
def test_a_script_ends_after_an_error_in_a_loader_worker(tmp_path: Path, torch_programs: ForkedPrograms) -> None:
    code, output = run(torch_programs, tmp_path, BROKEN)
    assert code == 1
    assert "ValueError: a broken record" in output
    assert "exited unexpectedly" not in output
