"""On a cluster: what a training writes is in the notebook's folder before code reads it, and replaces nobody's work."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import Gate, Kernel

pytestmark = pytest.mark.slow

PROGRAM = """
import json, os

def begin_files(port=0, bad=False, **where):
    context = det.experimental.pytorch.init(config, **where)
    model = context.wrap(torch.nn.Linear(4, 1))
    return context, model, torch.optim.SGD(model.parameters(), 0.1)

def names():
    return sorted(name for name in os.listdir(".") if not name.startswith("."))
"""
LOOP = """
context, model, optimizer = begin_files()
optimizer = context.wrap(optimizer)
for epoch in context.epochs(3):
    if PORT and epoch == 1:
        gate(PORT)
    if BAD and epoch == 1:
        raise ValueError("no luck")
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    context.report(loss=1.0 / (epoch + 1))
    torch.save({"epoch": epoch}, "best.pt")
    os.makedirs("out", exist_ok=True)
    with open(f"out/epoch_{epoch}.json", "w") as file:
        json.dump({"epoch": epoch}, file)
    if LARGE:
        open("large.bin", "wb").write(bytes(3_000_000))
"""


def loop(port: int = 0, bad: bool = False, large: bool = False) -> str:
    """Return the cell that trains."""
    return f"PORT, BAD, LARGE = {port}, {bad}, {large}\n{LOOP}"


def seen(kernel: Kernel, expression: str) -> Any:
    """Return a value of the kernel, by code that is no cell of the notebook."""
    ran = kernel.finish(kernel.begin(f"import json as _j; print('VALUE' + _j.dumps({expression}))", silent=True))
    return json.loads(ran.text.rpartition("VALUE")[2])


@pytest.fixture(scope="module", autouse=True)
def _program(torch_kernel: Kernel) -> None:
    """Give the kernel the program."""
    torch_kernel.run(PROGRAM)


@pytest.fixture(autouse=True)
def folder(torch_kernel: Kernel) -> Iterator[Path]:
    """The notebook's folder, which is empty afterwards."""
    yield torch_kernel.folder
    for path in torch_kernel.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_a_file_of_before_is_never_taken_for_the_result(kernel: Kernel, gate: Gate) -> None:
    kernel.run("torch.save({'epoch': 'stale'}, 'best.pt')")
    kernel.run(loop(gate.port))
    visitor = gate.next()
    reading = kernel.begin("read = torch.load('best.pt')")
    kernel.says(reading, "which writes best.pt. To stop waiting, interrupt the cell")
    visitor.go()
    assert "Files of experiment" in kernel.finish(reading).text
    assert seen(kernel, "read") == {"epoch": 2}
    assert seen(kernel, "names()") == ["best.pt", "out"]
    assert seen(kernel, "json.load(open('out/epoch_1.json'))") == {"epoch": 1}


@pytest.mark.long
def test_code_that_reads_no_file_of_it_does_not_wait(kernel: Kernel, gate: Gate) -> None:
    kernel.run(loop(gate.port))
    visitor = gate.next()
    kernel.run("torch.save({}, 'other.pt')\ntorch.load('other.pt')\nprint('best.pt')\nepochs = [1, 2]")
    kernel.run("import sys; sys.path.append('.'); sys.path.append('..')")
    assert seen(kernel, "context.experiment.state") == "Running"
    visitor.go()
    assert "Files of experiment" in kernel.run("found = [open(f'out/epoch_{n}.json').read() for n in range(3)]").text


@pytest.mark.long
def test_the_rest_of_the_cell_has_them(kernel: Kernel) -> None:
    kernel.run(f"{loop()}\nhere = sorted(os.listdir('out'))")
    assert seen(kernel, "here") == ["epoch_0.json", "epoch_1.json", "epoch_2.json"]


@pytest.mark.long
def test_commands_of_a_shell_read_files(kernel: Kernel, gate: Gate) -> None:
    kernel.run("OUT = 'out'")
    kernel.run(loop(gate.port))
    visitor = gate.next()
    kernel.run("!echo best.txt\n!mkdir -p out")
    assert seen(kernel, "context.experiment.state") == "Running"
    reading = kernel.begin("!cat {OUT}/epoch_2.json")
    kernel.says(reading, "Waiting for experiment")
    visitor.go()
    assert '{"epoch": 2}' in kernel.finish(reading).text
    assert '{"epoch": 1}' in kernel.run(f"{loop()}\n!cat out/epoch_1.json").text


@pytest.mark.soak
def test_functions_and_values_lead_to_files_too(kernel: Kernel, gate: Gate) -> None:
    kernel.run("from pathlib import Path\nOUT = Path('out')")
    kernel.run("def last():\n    return json.loads((OUT / 'epoch_2.json').read_text())")
    kernel.run(loop(gate.port))
    visitor = gate.next()
    reading = kernel.begin("read = last()")
    kernel.says(reading, "Waiting for experiment")
    visitor.go()
    kernel.finish(reading)
    assert seen(kernel, "read") == {"epoch": 2}


@pytest.mark.long
def test_what_has_changed_meanwhile_stays(kernel: Kernel, gate: Gate) -> None:
    kernel.run(loop(gate.port))
    visitor = gate.next()
    kernel.run("open('best.pt', 'w').write('mine')")
    visitor.go()
    ran = kernel.run("context.experiment.wait()")
    number = seen(kernel, "context.experiment.id")
    assert f"best.pt has changed here since the submit and stays as it is; experiment {number} wrote best" in ran.text
    assert seen(kernel, "open('best.pt').read()") == "mine"
    assert seen(kernel, f"torch.load('best (experiment {number}).pt')") == {"epoch": 2}


@pytest.mark.long
def test_ctrl_c_leaves_the_cell_alone_and_forget_goes_on(kernel: Kernel, gate: Gate) -> None:
    kernel.run("torch.save({'epoch': 'stale'}, 'best.pt')")
    kernel.run(loop(gate.port))
    visitor = gate.next()
    reading = kernel.begin("read = torch.load('best.pt')")
    kernel.says(reading, "which writes best.pt")
    kernel.interrupt()
    error = kernel.finish(reading, fails=True).error
    assert "This cell has not run: run it again to wait again, or call det.forget('best.pt')" in error
    kernel.run("det.forget('best.pt')")
    kernel.run("read = torch.load('best.pt')")
    assert seen(kernel, "read") == {"epoch": "stale"}
    visitor.go()
    kernel.run("context.experiment.wait()")
    assert seen(kernel, "torch.load('best.pt')") == {"epoch": 2}


@pytest.mark.soak
def test_a_training_that_fails_leaves_what_it_has_written(kernel: Kernel) -> None:
    kernel.run(loop(bad=True))
    ran = kernel.run("read = torch.load('best.pt')")
    assert "has failed; its files are as it left them" in ran.text
    assert seen(kernel, "read") == {"epoch": 0}


@pytest.mark.soak
def test_a_killed_training_leaves_what_it_has_written(kernel: Kernel, gate: Gate) -> None:
    kernel.run(loop(gate.port))
    visitor = gate.next()
    kernel.run("context.experiment.kill()")
    kernel.run("read = torch.load('best.pt')")
    assert seen(kernel, "read") == {"epoch": 0}
    visitor.line.close()


@pytest.mark.long
def test_a_file_over_the_limit_stays_and_reading_an_old_one_is_refused(kernel: Kernel) -> None:
    kernel.run("os.environ['DET_FILES_HOME_MB'] = '2'\nopen('large.bin', 'w').write('old')")
    kernel.run(loop(large=True))
    error = kernel.run("read = open('large.bin', 'rb').read()", fails=True).error
    assert "with it there would be more than 2 MB, the limit (DET_FILES_HOME_MB)" in error
    assert "artifacts['large.bin'].download(overwrite=True) brings it" in error
    kernel.run("del os.environ['DET_FILES_HOME_MB']")
    kernel.run("context.experiment.artifacts['large.bin'].download(overwrite=True)")
    assert seen(kernel, "os.path.getsize('large.bin')") == 3_000_000
    kernel.run("read = open('large.bin', 'rb').read()")


@pytest.mark.soak
def test_a_folder_that_cannot_be_written_is_told(kernel: Kernel, folder: Path, gate: Gate) -> None:
    kernel.run(loop(gate.port))
    visitor = gate.next()
    (folder / "out").write_text("a file")
    visitor.go()
    ran = kernel.run("context.experiment.wait()")
    assert "out/epoch_0.json of experiment" in ran.text
    assert "has not come" in ran.text
    assert seen(kernel, "open('out').read()") == "a file"


@pytest.mark.soak
def test_trainings_of_one_function_run_at_one_time(kernel: Kernel, gate: Gate) -> None:
    kernel.run(
        "def train(path):\n    context, model, optimizer = begin_files()\n    optimizer = context.wrap(optimizer)\n"
        "    for epoch in context.epochs(2):\n"
        f"        if epoch == 0:\n            gate({gate.port})\n"
        "        torch.nn.functional.mse_loss(model(x), y).backward()\n        optimizer.step()\n"
        "        context.report(loss=1.0)\n        torch.save(epoch, path)\n    return context.experiment"
    )
    kernel.run("first = train('a.pt')")
    one = gate.next()
    kernel.run("second = train('a.pt')")
    other = gate.next()
    assert seen(kernel, "[first.state, second.state]") == ["Running", "Running"]
    one.go()
    other.go()
    kernel.run("read = torch.load('a.pt')")
    assert seen(kernel, "read") == 1


@pytest.mark.long
def test_of_a_search_no_old_file_is_taken_for_the_result(kernel: Kernel) -> None:
    kernel.run("torch.save({'epoch': 'stale'}, 'best.pt')")
    kernel.run("config['searcher'] = {'name': 'random', 'max_trials': 2, 'metric': 'loss'}\n")
    kernel.run(loop())
    error = kernel.run("read = torch.load('best.pt')", fails=True).error
    assert "is of each of its trials, a search, and stays there, and the file of that name here is from before" in error
    kernel.run("context.experiment.artifacts['best.pt'].download(overwrite=True)")
    kernel.run("read = torch.load('best.pt')")
    assert seen(kernel, "read") == {"epoch": 2}
    assert "none comes here by itself" in kernel.run("read = os.listdir('out') if os.path.exists('out') else []").text


@pytest.mark.soak
def test_a_log_that_is_open_here_is_gone_on_with(kernel: Kernel) -> None:
    kernel.run("import logging\nlog = logging.getLogger('test')\nlog.addHandler(logging.FileHandler('train.log'))")
    kernel.run(
        "context, model, optimizer = begin_files()\noptimizer = context.wrap(optimizer)\n"
        "for epoch in context.epochs(2):\n    torch.nn.functional.mse_loss(model(x), y).backward()\n"
        "    optimizer.step()\n    context.report(loss=1.0)\n    open('train.log', 'a').write(f'epoch {epoch}\\n')"
    )
    kernel.run("context.experiment.wait()\nlog.warning('after')")
    assert seen(kernel, "open('train.log').read().splitlines()[-2:]") == ["epoch 1", "after"]
