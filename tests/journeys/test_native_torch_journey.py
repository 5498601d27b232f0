"""A user with PyTorch objects of their own: ``fit()`` and a loop, the same cells here and on the cluster."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from journey_kernel import Notebook, Ran, Script

pytestmark = [pytest.mark.slow, pytest.mark.long]

IMPORTS = "import torch\nimport det_native as det\nfrom torch.utils.data import DataLoader, TensorDataset"

DATA = """
def records(seed, count):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 4, generator=generator)
    return TensorDataset(x, x.sum(1, keepdim=True))
"""

LOSS = """
def loss_of(batch):
    x, y = batch
    return torch.nn.functional.mse_loss(model(x), y)
"""

CONFIG = """
config = {
    "name": "native",
    "hyperparameters": {"units": 8, "lr": 0.05},
    "reproducibility": {"experiment_seed": 3},
}
"""

UNRELATED = 'notes = "of another thing"\nprint(notes)'

FUNCTIONS = """
def train_batch(batch, epoch_idx, batch_idx):
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

def evaluate_batch(batch):
    return {"val_loss": loss_of(batch)}
"""

OBJECTS = """
context = det.experimental.pytorch.init({init})
layers = [torch.nn.Linear(4, context.get_hparam("units")), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1)]
model = context.wrap_model(torch.nn.Sequential(*layers))
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=context.get_hparam("lr")))
scheduler = context.wrap_lr_scheduler(
    torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5), det.pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH
)
"""

# 50 records in batches of 16: the fourth batch of an epoch is a smaller one.
FIT = """
train_loader = DataLoader(records(0, 50), batch_size=16, shuffle=True)
validation_loader = DataLoader(records(1, 20), batch_size=16)
experiment = context.fit(
    train_loader, validation_loader, train_batch=train_batch, evaluate_batch=evaluate_batch, epochs=3
)
"""

LOOP = """
train_loader = DataLoader(records(0, 50), batch_size=16, shuffle=True)
validation_loader = DataLoader(records(1, 20), batch_size=16)
seen = 0
for batch in context.train(
    train_loader, epochs=3, validation_loader=validation_loader, evaluate_batch=evaluate_batch
):
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
    seen += len(batch[0])
experiment = context.experiment
"""


def sent(ran: Ran) -> set[int]:
    """Numbers of the cells that the report of a submit lists."""
    return {int(number) for number in re.findall(r"^cell \[(\d+)\] +runs again", ran.text, re.MULTILINE)}


def value(notebook: Notebook, expression: str) -> object:
    """The value of an expression in the kernel."""
    return ast.literal_eval(notebook.run(f"print(repr({expression}))").stdout)


@pytest.fixture(scope="module", autouse=True)
def trained(notebook: Notebook) -> dict[str, Ran]:
    """The same cells in both modes, by ``fit()`` and in a loop; what they showed, by name."""
    for source in (IMPORTS, DATA, LOSS, CONFIG, UNRELATED, FUNCTIONS):
        notebook.run(source)
    ran = {}
    for name, call in (("fit", FIT), ("loop", LOOP)):
        notebook.run(OBJECTS.format(init="config, local=True"))
        ran[f"{name}_here"] = notebook.run(f"{call}\n{name}_here = experiment")
        notebook.run(OBJECTS.format(init="config"))
        ran[f"{name}_far"] = notebook.run(f"{call}\n{name}_far = experiment")
    notebook.run("fit_far.wait()\nloop_far.wait()\nnames = ['fit_here', 'fit_far', 'loop_here', 'loop_far']")
    return ran


@pytest.mark.parametrize(
    "expression",
    [
        "e.state.name",
        "e.history",
        "e.trials[0].metrics('training')",
        "e.trials[0].metrics('validation')",
        "[(c.batch, c.metrics) for c in e.checkpoints]",
        "[e.trials[0].detail().batches, e.trials[0].detail().target_batches]",
        "e.config['searcher']['max_length']",
        "[v.tolist() for v in e.top_checkpoint().load().state_dict().values()]",
        "[type(e).__name__, type(e.plot()).__name__]",
    ],
)
def test_fit_and_loop_give_the_same_here_and_on_the_cluster(notebook: Notebook, expression: str) -> None:
    ran = notebook.run(f"print([repr({expression}) for e in map(globals().get, names)])")
    found = ast.literal_eval(ran.stdout.splitlines()[-1])
    assert found == [found[0]] * 4


def test_epochs_are_whole_passes_over_the_loader(notebook: Notebook) -> None:
    assert value(notebook, "[row['batch'] for row in fit_far.trials[0].metrics()]") == list(range(1, 13))
    assert value(notebook, "{name: len(values) for name, values in fit_far.history.items()}") == {
        "loss": 3,
        "val_loss": 3,
    }
    assert value(notebook, "[row['batch'] for row in loop_far.trials[0].metrics('validation')]") == [4, 8, 12]


def test_quick_cells_run_again_and_those_that_trained_do_not(trained: dict[str, Ran]) -> None:
    quick, calls = {1, 2, 3, 4, 5, 6}, {"fit here": 8, "fit far": 10, "loop here": 12, "loop far": 14}
    fit, loop = sent(trained["fit_far"]), sent(trained["loop_far"])
    assert quick | {9, calls["fit far"]} <= fit
    assert quick | {13, calls["loop far"]} <= loop
    assert not fit & {calls["fit here"]}
    assert not loop & {calls["fit here"], calls["fit far"], calls["loop here"]}


def test_what_the_loop_has_counted_comes_home(notebook: Notebook) -> None:
    assert value(notebook, "seen") == 150
    assert value(notebook, "context.experiment is loop_far") is True


def test_the_loaded_model_predicts_what_was_measured(notebook: Notebook) -> None:
    notebook.run("checkpoint = loop_far.top_checkpoint()\nbest = checkpoint.load()")
    notebook.run("x, y = records(1, 20).tensors\nwith torch.no_grad():\n    found = float(((best(x) - y) ** 2).mean())")
    assert value(notebook, "abs(found - checkpoint.metrics['val_loss']) < 1e-5") is True
    assert value(notebook, "(type(best).__name__, best.training)") == ("Sequential", False)


SEARCH = """
search = config | {
    "hyperparameters": {"units": 8, "lr": det.Log(-3, -1)},
    "searcher": {"name": "random", "metric": "val_loss", "max_trials": 2},
}
"""


def test_a_random_search_runs_from_the_loop(notebook: Notebook) -> None:
    notebook.run(SEARCH)
    notebook.run(OBJECTS.format(init="search"))
    notebook.run(LOOP)
    notebook.run("experiment.wait()")
    assert value(notebook, "(experiment.state.name, len({t.hparams['lr'] for t in experiment.trials}))") == (
        "COMPLETED",
        2,
    )
    assert value(notebook, "[len(t.metrics('validation')) for t in experiment.trials]") == [3, 3]


def test_the_loop_may_stand_in_a_later_cell_here_too(notebook: Notebook) -> None:
    notebook.run(OBJECTS.format(init="config, local=True"))
    call, body = LOOP.split("for batch in ", 1)
    call, body = f"{call}batches = {body.split('):')[0]})", "for batch in batches:" + body.split("):", 1)[1]
    assert "no loop has asked for its batches yet, so nothing is trained" in notebook.run(call).stdout
    assert value(notebook, "(context.experiment, seen)") == (None, 0)
    notebook.run(body.replace("    seen +=", "    if context.batch_idx == 5:\n        break\n    seen +="))
    assert value(notebook, "(experiment.state.name, experiment.trials[0].detail().batches)") == ("COMPLETED", 6)
    again = notebook.run(body, fails=True)
    assert "A second loop over the same context.train" in again.error


def test_break_ends_the_training_there_on_a_worker_too(notebook: Notebook) -> None:
    leaving = LOOP.replace("    seen +=", "    if context.batch_idx == 5:\n        break\n    seen +=")
    ends = []
    for init in ("config, local=True", "config"):
        notebook.run(OBJECTS.format(init=init))
        notebook.run(leaving)
        notebook.run("experiment.wait()")
        ends.append(
            value(
                notebook,
                "(experiment.state.name, experiment.trials[0].metrics(), [c.batch for c in experiment.checkpoints])",
            )
        )
    assert ends[0] == ends[1]
    state, rows, checkpoints = ends[0]  # type: ignore[misc]
    assert (state, len(rows), checkpoints[-1]) == ("COMPLETED", 6, 6)


def test_an_exception_in_the_loop_names_its_cell(notebook: Notebook) -> None:
    notebook.run(OBJECTS.format(init="config, wait=False"))
    notebook.run(
        LOOP.replace("    seen +=", '    if context.batch_idx == 5:\n        raise KeyError("six")\n    seen +=')
    )
    failed = notebook.run("experiment.wait()", fails=True)
    number = len(notebook.cells) - 1
    assert failed.error.startswith("UserCodeError")
    assert f"cell [{number}], line 13" in failed.error
    assert "KeyError: 'six'" in failed.error
    assert value(notebook, "experiment.trials[0].detail().target_batches") == 12, "with the smaller batch of each epoch"


def test_ctrl_c_ends_a_local_loop_with_a_checkpoint(notebook: Notebook) -> None:
    notebook.run(OBJECTS.format(init="config, local=True"))
    slow = LOOP.replace("epochs=3", "epochs=5000").replace("    seen +=", '    print("batch")\n    seen +=')
    seen: list[str] = []

    def watch(text: str) -> None:
        if "batch" in text and not seen:
            seen.append(text)
            notebook.interrupt()

    ran = notebook.run(slow + "print('after the loop')", watch=watch)
    assert "with a checkpoint" in ran.stdout
    assert "after the loop" in ran.stdout
    assert value(notebook, "(experiment.state.name, len(experiment.checkpoints) > 0)") == ("CANCELED", True)
    assert value(notebook, "type(experiment.trials[0].checkpoints[-1].load()).__name__") == "Sequential"


def test_the_program_comes_back_as_a_notebook(notebook: Notebook) -> None:
    notebook.run("loop_far.notebook('what_ran.ipynb')")
    assert "for batch in context.train(" in (notebook.folder / "what_ran.ipynb").read_text()


SCRIPT = """
import sys
import torch
import det_native as det
from torch.utils.data import DataLoader, TensorDataset

context = det.experimental.pytorch.init({"reproducibility": {"experiment_seed": 4}}, local=sys.argv[1] == "here")
model = context.wrap_model(torch.nn.Linear(2, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
x = torch.randn(24, 2, generator=torch.Generator().manual_seed(2))
batches = context.train(DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8), epochs=4)

def main():
    for inputs, wanted in batches:
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        context.backward(loss)
        context.step_optimizer(optimizer)
        context.report(loss=loss)
        if context.batch_idx == 7:
            if sys.argv[2] == "raise":
                raise OSError("in the body")
            break

main()
if sys.argv[1] == "far":
    context.experiment.wait()
print("experiment", context.experiment.id)
"""

ATTACH = """
import sys
import det_native as det
experiment = det.attach(int(sys.argv[1]))
last = experiment.trials[0].checkpoints[-1]
print((experiment.state.name, len(experiment.trials[0].metrics()), last.batch, last.load().weight.tolist()))
"""


def test_a_script_trains_the_same_here_and_on_the_cluster(script: Script, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "attach.py").write_text(ATTACH)
    found = []
    for place in ("here", "far"):
        done = script("train.py", place, "break", folder=tmp_path)
        number = done.stdout.split("experiment ")[-1].split()[0]
        found.append(ast.literal_eval(script("attach.py", number, folder=tmp_path).stdout))
    # The iterator has a name, so here its end is that of the script.
    assert found[0] == found[1]
    assert found[0][:3] == ("COMPLETED", 8, 8)


@pytest.mark.soak
def test_a_script_that_fails_in_its_loop_has_failed(script: Script, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = script("train.py", "here", "raise", folder=tmp_path, fails=True)
    assert "OSError: in the body" in done.stderr
    (tmp_path / "state.py").write_text(
        "import det_native as det\nfirst = det.experiments(limit=1)[0]\nprint(det.experiment(first.id).state.name)"
    )
    assert script("state.py", folder=tmp_path).stdout.split() == ["ERROR"]
