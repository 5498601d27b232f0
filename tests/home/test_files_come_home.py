"""On a cluster: what a training has done with files is done in the notebook's folder when its call returns."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Gate, Kernel

pytestmark = pytest.mark.slow

PROGRAM = """
import argparse, datetime, json, os, tempfile, time, uuid

def begin_files(**where):
    context = det.experimental.pytorch.init(config, **where)
    model = context.wrap(torch.nn.Linear(4, 1))
    return context, model, context.wrap(torch.optim.SGD(model.parameters(), 0.1))

def step():
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

def content(*paths):
    return [os.path.isfile(path) and open(path).read() for path in paths]
"""
LOOP = """
context, model, optimizer = begin_files()
for epoch in context.epochs(3):
    if PORT and epoch == 1:
        gate(PORT)
    if BAD and epoch == 1:
        raise ValueError("no luck")
    step()
    context.report(loss=1.0 / (epoch + 1))
    torch.save({"epoch": epoch}, "best.pt")
    os.makedirs("out", exist_ok=True)
    with open(f"out/epoch_{epoch}.json", "w") as file:
        json.dump({"epoch": epoch}, file)
context.experiment.wait()
"""
#: The values that cells of this notebook make are others on a worker.
NAMES = """
log_dir = "logs/fit/" + datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
os.makedirs(log_dir)
scratch = tempfile.mkdtemp(dir=".")
args = argparse.Namespace(run=f"run_{int(time.time())}", number=3)
class Settings:
    stamp = str(datetime.datetime.now())
def train():
    global context, model, optimizer
    name = f"model_{uuid.uuid4().hex[:8]}.txt"
    context, model, optimizer = begin_files()
    for epoch in context.epochs(2):
        step()
        context.report(loss=1.0)
        for path in (name, f"{log_dir}/a", f"{scratch}/b", f"{args.run}.txt", f"{Settings.stamp}.txt"):
            with open(path, "w") as file:
                file.write(str(epoch))
    context.experiment.wait()
    return content(name, f"{log_dir}/a", f"{scratch}/b", f"{args.run}.txt", f"{Settings.stamp}.txt")
"""


def loop(port: int = 0, *, bad: bool = False) -> str:
    """Return the cell that trains."""
    return f"PORT, BAD = {port}, {bad}\n{LOOP}"


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


def test_files_are_here_when_the_call_returns_and_changed_ones_stay(kernel: Kernel, gate: Gate, folder: Path) -> None:
    kernel.run("torch.save({'epoch': 'stale'}, 'best.pt')")
    training = kernel.begin(loop(gate.port))
    visitor = gate.next()
    (folder / "out").mkdir()
    (folder / "out" / "epoch_2.json").write_text("mine")
    visitor.go()
    kernel.finish(training)
    number = kernel.value("context.experiment.id")
    assert kernel.value("torch.load('best.pt')") == {"epoch": 2}
    assert (folder / "out" / "epoch_2.json").read_text() == "mine"
    assert (folder / "out" / f"epoch_2 (experiment {number}).json").read_text() == '{"epoch": 2}'
    assert (folder / "out" / "epoch_1.json").read_text() == '{"epoch": 1}'


def test_names_by_clocks_and_drawn_ones_are_the_notebooks(kernel: Kernel, folder: Path) -> None:
    kernel.run(NAMES)
    kernel.run("read = train()")
    assert kernel.value("read") == ["1"] * 5
    assert len(list(folder.glob("*.txt"))) == 3
    assert [path.name for path in (folder / "logs" / "fit").iterdir()] == [kernel.value("os.path.basename(log_dir)")]
    note = kernel.value("[row.how for row in context.experiment.detail().report if row.what == 'train() name']")
    assert note == ["notebook's value"]


@pytest.mark.long
def test_a_training_that_goes_on_after_a_kill_keeps_the_notebooks_names(
    kernel: Kernel, gate: Gate, folder: Path
) -> None:
    kernel.run("config['max_restarts'] = 1\nname = f'log_{uuid.uuid4().hex}.txt'\nholder = {'name': name}")
    training = kernel.begin(
        "context, model, optimizer = begin_files()\nfor epoch in context.epochs(4):\n    step()\n"
        "    context.report(loss=1.0)\n    with open(holder['name'], 'a') as file:\n        file.write(str(epoch))\n"
        f"    if epoch == 2:\n        gate({gate.port})\ncontext.experiment.wait()"
    )
    gate.next().die(signal.SIGKILL)
    gate.next().go()
    kernel.finish(training)
    assert kernel.value("content(name)") == ["0123"]
    assert len([*folder.glob("log_*")]) == 1


def test_deleted_files_are_deleted_here(kernel: Kernel, folder: Path) -> None:
    kernel.run(
        "for path in ('old.txt', 'kept.txt', 'cache/a', 'odd\\nname'):\n"
        "    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)\n"
        "    with open(path, 'w') as file:\n        file.write('before')"
    )
    kernel.run(
        "import shutil\ncontext, model, optimizer = begin_files()\nfor epoch in context.epochs(2):\n"
        "    step()\n    context.report(loss=1.0)\n    shutil.rmtree('cache', ignore_errors=True)\n"
        "    if os.path.exists('old.txt'):\n        os.remove('old.txt')\n"
        "    with open('odd\\nname', 'w') as file:\n        file.write(str(epoch))\n"
        "context.experiment.wait()\nmodel(x)"
    )
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == ["kept.txt", "odd\nname"]
    assert kernel.value("content('kept.txt', 'odd\\nname')") == ["before", "1"]


@pytest.mark.long
def test_of_a_search_the_files_of_the_best_trial_come(kernel: Kernel) -> None:
    kernel.run(
        "config['searcher'] = {'name': 'grid', 'metric': 'loss'}\n"
        "config['hyperparameters'] = {'loss': {'type': 'categorical', 'vals': [3.0, 1.0, 2.0]}}"
    )
    kernel.run(
        "context, model, optimizer = begin_files()\nfor epoch in context.epochs(1):\n    step()\n"
        "    loss = context.get_hparam('loss')\n    context.report(loss=loss)\n"
        "    with open('loss.txt', 'w') as file:\n        file.write(str(loss))\n"
        "context.experiment.wait()"
    )
    assert kernel.value("content('loss.txt')") == ["1.0"]


@pytest.mark.long
def test_a_log_that_is_open_here_is_gone_on_with(kernel: Kernel) -> None:
    kernel.run("import logging\nlog = logging.getLogger('test')\nlog.addHandler(logging.FileHandler('train.log'))")
    kernel.run(
        "context, model, optimizer = begin_files()\nfor epoch in context.epochs(2):\n    step()\n"
        "    context.report(loss=1.0)\n    open('train.log', 'a').write(f'epoch {epoch}\\n')\n"
        "context.experiment.wait()\nlog.warning('after')"
    )
    assert kernel.value("content('train.log')[0].splitlines()[-2:]") == ["epoch 1", "after"]


@pytest.mark.long
def test_a_training_that_fails_leaves_what_it_has_written(kernel: Kernel) -> None:
    kernel.run(loop(bad=True), fails=True)
    assert kernel.value("torch.load('best.pt')") == {"epoch": 0}
