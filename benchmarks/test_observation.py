"""What being looked at costs a notebook: each cell, and a submit behind many of them."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import looked_at
import pytest
from notebook_kernel import Kernel

from det_native.capture.program.choose import choose
from det_native.capture.program.records import Read, Run, Travel

_GOAL = 0.01
_CELLS = 240

_TRAINING = """
import time
import torch
import det_native as det
config = {"searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 2}}}
data = torch.utils.data.TensorDataset(torch.zeros(64, 4))
"""

_EXPLORING = """
notes_{number} = [row * {number} for row in range(50)]
def summary_{number}(rows):
    return sum(rows) / max(len(rows), 1)
print(summary_{number}(notes_{number}))
"""

_CALL = """
context = det.experimental.pytorch.init(config, show="none", wait=False)
model = context.wrap_model(torch.nn.Linear(4, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
begin = time.perf_counter()
for batch in context.train(torch.utils.data.DataLoader(data, batch_size=8)):
    loss = model(batch[0]).sum()
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
seconds = time.perf_counter() - begin
"""


@pytest.mark.parametrize("group", ["PLAIN", "TORCH", "KERAS"])
def test_looking_at_a_cell(group: str, figure: Callable[[str, str, str, bool], None]) -> None:
    script = Path(looked_at.__file__).with_name("look_times.py")
    done = subprocess.run([sys.executable, str(script), group], stdout=subprocess.PIPE, check=True)
    times = json.loads(done.stdout.splitlines()[-1])
    for what, seconds in times.items():
        median = statistics.median(seconds)
        spread = f"[{min(seconds) * 1e3:.1f}..{max(seconds) * 1e3:.1f} ms]"
        figure(
            f"processor time of the looks around a short cell, with {what} {spread}",
            f"{median * 1e3:.1f} ms",
            f"≤ {_GOAL * 1e3:.0f} ms",
            median <= _GOAL,
        )


def test_submit_in_a_notebook_of_many_cells(kernel: Kernel, figure: Callable[[str, str, str, bool], None]) -> None:
    kernel.run(_TRAINING)
    for number in range(_CELLS - 3):
        kernel.run(_EXPLORING.format(number=number))
    seconds = _submit_often(kernel, _CALL)
    median = statistics.median(seconds)
    what = f"a submit in a notebook of {_CELLS} cells [{min(seconds):.2f}..{max(seconds):.2f} s]"
    figure(what, f"{median:.2f} s", "≤ 0.5 s", median <= 0.5)


def test_submit_with_a_large_array(kernel: Kernel, figure: Callable[[str, str, str, bool], None]) -> None:
    """The training reads it, so the worker compares it with what the notebook has."""
    kernel.run(_TRAINING)
    kernel.run("import numpy as np\nlarge = np.ones(125_000_000)")
    seconds = _submit_often(kernel, _CALL.replace(".sum()", ".sum() * large[0]"))
    median = statistics.median(seconds)
    what = f"a submit of a training that reads an array of 1 GB [{min(seconds):.2f}..{max(seconds):.2f} s]"
    figure(what, f"{median:.2f} s", "none", True)


def _submit_often(kernel: Kernel, call: str) -> list[float]:
    """Return how long five submits take, after one that starts the master."""
    seconds = []
    for _ in range(6):
        seconds.append(float(kernel.run(call, "seconds")))
        kernel.run("context.experiment.wait()")
    return seconds[1:]


def test_choosing_among_slow_cells(figure: Callable[[str, str, str, bool], None]) -> None:
    """The most that a choice can take: each slow cell needs the one before, and nothing of them can travel."""
    runs = [
        Run(
            source=f"import os\nsize_{n} = 3\nrows_{n} = load(rows_{n - 1}, size_{n})\n",
            reads={f"rows_{n - 1}": Read((f"rows_{n - 1}",), 3)} if n else {},
            bound=frozenset({"os", f"size_{n}", f"rows_{n}"}),
            seconds=60.0 if n % 2 else 0.01,
        )
        for n in range(_CELLS - 1)
    ]
    last = f"rows_{_CELLS - 2}"
    runs.append(Run(source=f"fit({last})", reads={last: Read((last,), 1)}, wanted=True))
    present = [name for run in runs for name in run.bound]
    begin = time.thread_time()
    plan = choose(runs, lambda name: Travel(refused="cannot be pickled"), present=present)
    seconds = time.thread_time() - begin
    assert len(plan.forced) == (_CELLS - 1) // 2
    figure(f"choosing among {_CELLS} cells, half of them slow", f"{seconds:.2f} s", "≤ 0.5 s", seconds <= 0.5)
