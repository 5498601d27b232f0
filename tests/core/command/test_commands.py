"""A command as an experiment's ``entrypoint``: what it reports, and what becomes of it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from command_scripts import GATE, LOOP, SEARCHER, Submit
from faults import PATIENCE, Cluster, Gate, checkpoint_at, ended

from det_native.errors import UnsupportedFeatureError
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow


def values(length: int, factor: float = 0.5) -> list[float]:
    """Return the losses of `LOOP`."""
    found, value = [], 1.0
    for batch in range(1, length + 1):
        value = value * factor + batch / 7
        found.append(value)
    return found


def test_a_command_reports_and_goes_on_after_a_kill_with_the_same_numbers(
    submit: Submit, gate: Gate, tmp_path: Path
) -> None:
    experiment = submit(f"python3 train.py 6 {gate.port} 12", {"train.py": LOOP}, searcher=SEARCHER)
    visitor = gate.next()
    checkpoint_at(experiment, 4)
    visitor.die(signal.SIGKILL)
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert (trial.restarts, trial.batches) == (1, 12)
    [handle] = experiment.trials
    rows = handle.metrics("training")
    assert [row["batch"] for row in rows] == list(range(1, 13))
    assert [row["loss"] for row in rows] == values(12)
    assert [row["batch"] for row in handle.metrics("validation")] == [4, 8, 12]
    log = str(experiment.logs())
    assert "begins at 4" in log
    assert "was ended by SIGKILL" in log
    last = handle.checkpoints[-1]
    state = json.loads((Path(last.download(tmp_path / "last")) / "state.json").read_text())
    assert state == {"batch": 12, "value": values(12)[-1]}
    with pytest.raises(UnsupportedFeatureError, match=r"checkpoint\.download\(\) returns their folder"):
        last.load()


def test_an_attempt_that_fails_before_it_trains_leaves_the_rows_of_the_one_before(submit: Submit, gate: Gate) -> None:
    source = LOOP.replace("with det.core", "if latest: sys.exit('gone')\nwith det.core")
    config = {"searcher": SEARCHER, "max_restarts": 1}
    experiment = submit(f"python3 train.py 6 {gate.port} 12", {"train.py": source}, **config)
    visitor = gate.next()
    checkpoint_at(experiment, 4)
    visitor.die(signal.SIGKILL)
    ended(experiment, ExperimentState.ERROR)
    assert [row["loss"] for row in experiment.trials[0].metrics("training")] == values(4)  # up to its checkpoint


def test_a_loss_that_is_not_finite_ends_a_trial_of_a_search(submit: Submit) -> None:
    source = """
import determined as det
with det.core.init() as context:
    context.train.report_training_metrics(3, {"loss": float("nan")})
"""
    config = {"searcher": {"name": "single", "metric": "val_loss"}, "nan": "stop"}
    experiment = submit("python3 train.py", {"train.py": source}, **config)
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.error is not None
    assert (trial.error.type, trial.error.batch, trial.restarts) == ("DivergedError", 3, 0)


def test_a_paused_command_saves_its_state_and_goes_on(submit: Submit, gate: Gate) -> None:
    source = LOOP.replace("gate(port)", "gate(port); [None for _ in iter(context.preempt.should_preempt, True)]")
    experiment = submit(f"python3 train.py 6 {gate.port} 12", {"train.py": source}, searcher=SEARCHER)
    visitor = gate.next()
    experiment.pause()
    visitor.go()
    checkpoint_at(experiment, 7)
    experiment.activate()
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert (trial.restarts, trial.batches) == (0, 12)
    assert [row["loss"] for row in experiment.trials[0].metrics("training")] == values(12)
    assert "stops at 7" in str(experiment.logs())


def test_a_worker_that_is_told_to_end_has_its_command_save(submit: Submit, gate: Gate) -> None:
    source = LOOP.replace("gate(port)", "gate(port); [None for _ in iter(context.preempt.should_preempt, True)]")
    experiment = submit(f"python3 train.py 6 {gate.port} 12", {"train.py": source}, searcher=SEARCHER)
    visitor = gate.next()
    worker = psutil.Process(visitor.pid).parent()
    assert worker is not None
    for process in (worker, psutil.Process(visitor.pid)):  # as the master does, and a machine that is shut down
        process.terminate()
    visitor.go()
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert trial.batches == 12
    assert [row["loss"] for row in experiment.trials[0].metrics("training")] == values(12)
    assert "stops at 7" in str(experiment.logs())


def test_of_a_killed_worker_no_process_is_left(submit: Submit, gate: Gate) -> None:
    source = GATE + "import subprocess, sys; subprocess.Popen(['sleep', '600']); gate(int(sys.argv[1]))"
    experiment = submit(["sh", "-c", f"python3 train.py {gate.port}; true"], {"train.py": source}, max_restarts=0)
    visitor = gate.next()
    script = psutil.Process(visitor.pid)
    worker = script.parents()[1]
    family = [script, *script.children(recursive=True)]
    assert len(family) == 2
    worker.kill()
    ended(experiment, ExperimentState.ERROR)
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert not alive
    visitor.line.close()


def test_a_command_that_fails_is_told_with_code_and_last_lines(submit: Submit) -> None:
    source = "import sys; print('nearly done'); sys.exit(3)"
    experiment = submit("python3 train.py --lr 0.1", {"train.py": source}, max_restarts=0)
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.error is not None
    assert trial.error.message == (
        "The command python3 train.py --lr 0.1 ended with exit code 3. Its last lines:\nnearly done"
    )


def test_what_the_code_raises_is_told_with_its_place(submit: Submit) -> None:
    source = "import determined as det\nwith det.core.init() as context:\n    {}['rate']\n"
    experiment = submit("python3 train.py", {"train.py": source}, max_restarts=0)
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.error is not None
    assert (trial.error.type, trial.error.file, trial.error.line) == ("KeyError", "train.py", 3)


@pytest.mark.parametrize(
    "way",
    [
        'raise det.InvalidHP("too large")',
        'print("too large"); context.train.report_early_exit(det.core.EarlyExitReason.INVALID_HP)',
    ],
)
def test_hyperparameters_that_are_refused_are_no_failure(submit: Submit, way: str) -> None:
    source = f"import determined as det\nwith det.core.init() as context:\n    {way}\n"
    experiment = submit("python3 train.py", {"train.py": source})
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.restarts == 0
    assert trial.error is not None
    assert trial.error.type == "InvalidHP"
    assert "too large" in str(experiment.logs())


def test_a_damaged_checkpoint_is_not_given_to_the_command(submit: Submit, cluster: Cluster, gate: Gate) -> None:
    experiment = submit(f"python3 train.py 9 {gate.port} 12", {"train.py": LOOP}, searcher=SEARCHER)
    visitor = gate.next()
    checkpoint_at(experiment, 8)
    last = max(experiment.trials[0].checkpoints, key=lambda one: one.batch)
    (cluster.home.path / "checkpoints" / last.uuid / "state.json").write_text("{}")
    visitor.die(signal.SIGKILL)
    ended(experiment, ExperimentState.COMPLETED)
    assert "begins at 4" in str(experiment.logs())
    assert [row["loss"] for row in experiment.trials[0].metrics("training")] == values(12)


def test_a_command_that_reports_nothing_is_told_how(submit: Submit, cluster: Cluster, tmp_path: Path) -> None:
    source = """
import os, sys
import determined, det_native, model
assert determined is det_native
print("lr", sys.argv[1:], os.environ["DET_HPARAMS"], os.environ["DET_EXPERIMENT_ID"], sep="|")
open("written.txt", "w").write("here")
"""
    files = {"train.py": source, "model.py": ""}
    experiment = submit("python3 train.py --lr 0.1", files, hyperparameters={"lr": 0.25})
    ended(experiment, ExperimentState.COMPLETED)
    log = str(experiment.logs())
    assert f"lr|['--lr', '0.1']|{{\"lr\": 0.25}}|{experiment.id}" in log
    assert "has ended and has reported nothing" in log
    assert "write  entrypoint: train.py" in log
    assert experiment.artifacts.paths == ["written.txt"]
    assert "# %% command\npython3 train.py --lr 0.1\n" in cluster.shown("experiment", "code", str(experiment.id))
    assert "!python3 train.py --lr 0.1" in Path(experiment.notebook(tmp_path / "again.ipynb")).read_text()


def test_a_text_for_a_shell_is_given_to_one(submit: Submit) -> None:
    files = {"run.sh": "echo from $1 $DET_TRIAL_SEED\n", "last.py": "print('second')"}
    experiment = submit("sh run.sh the-script && FOO=1 python3 last.py", files)
    ended(experiment, ExperimentState.COMPLETED)
    log = str(experiment.logs())
    assert "from the-script " in log
    assert "second" in log


def test_a_command_is_run_by_the_master_of_this_machine_for_local(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo from here\n")
    (tmp_path / "const.yaml").write_text("entrypoint: sh run.sh\n")
    printed = cluster.det("experiment", "create", str(tmp_path / "const.yaml"), str(tmp_path), "--local", "--test")
    assert "The command sh run.sh: local=True trains this in processes of its own" in printed
    assert "from here" in printed
    assert "is Completed." in printed


def refused(cluster: Cluster, folder: Path, entrypoint: str, **files: str) -> str:
    """Return what ``det experiment create`` says of a folder that it does not send."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "const.yaml").write_text(json.dumps({"entrypoint": entrypoint}))
    done = subprocess.run(
        [cluster.interpreter, "-m", "det_native.client.command", "experiment", "create", "const.yaml", "."],
        cwd=folder,
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_what_surely_fails_is_refused_before_it_is_submitted(cluster: Cluster, tmp_path: Path) -> None:
    said = refused(cluster, tmp_path, "python3 -u trian.py --lr 1")
    assert "entrypoint names the script 'trian.py', but there is no such file" in said
    said = refused(cluster, tmp_path, "tain_it now")
    assert "entrypoint tain_it: names no Trial class (model_def:MyTrial), and no command" in said
    said = refused(cluster, tmp_path, "python3 -m determined.launch.torch_distributed -- train.py", train="a b")
    assert "train.py, line 1: SyntaxError" in said
    said = refused(cluster, tmp_path, "python3 train.py 'x")
    assert "cannot be read: No closing quotation." in said
