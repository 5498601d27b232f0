"""One list of experiments, in Python and on the command line, without a master."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from det_native.local.log import LogWriter
from det_native.local.runner import this_process
from det_native.local.store import LocalStore
from IPython.lib.pretty import pretty
from local_experiments import write_experiment
from local_program import BATCHES, WAITS_AT, local_training

import det_native as det
from det_native.client.command import cli, main
from det_native.errors import MasterUnreachableError, NotFoundError
from det_native.schema.home import Home, read_runtime
from det_native.schema.states import ExperimentState


def run(*arguments: str) -> Result:
    """Run ``det``, which must not start a master."""
    result = CliRunner().invoke(cli, arguments)
    assert read_runtime(Home.default()) is None
    return result


def test_all_experiments_are_a_list_of_handles_that_shows_itself_as_a_table() -> None:
    assert pretty(det.experiments()) == "There are no experiments yet."
    for name in ("first", "second", "third"):
        write_experiment(name=name)
    found = det.experiments(limit=2)
    assert [each.id for each in found] == ["local-3", "local-2"]
    assert found[0].best_trial.history == {"loss": [0.5], "val_loss": [1.0]}
    head, newest, older, others = pretty(found).splitlines()
    assert head.split() == ["id", "name", "state", "progress", "trials", "metric", "best", "created"]
    assert newest.split()[:6] == ["local-3", "third", "Completed", "100%", "1", "val_loss"]
    assert older.startswith("local-2")
    assert others == "2 of 3; det.experiments(limit=None) has all."
    assert det.experiment("local-2").name == "second"
    assert det.attach("local-2").name == "second"


def test_a_named_master_that_does_not_answer_is_told_beside_the_local_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    write_experiment(name="mine")
    monkeypatch.setenv("DET_TOKEN", "x")
    with pytest.warns(UserWarning, match=r"127\.0\.0\.1:9.*Only runs of this machine's own are listed\."):
        found = det.experiments(master_url="http://127.0.0.1:9")
    assert [each.id for each in found] == ["local-1"]
    result = run("--master", "http://127.0.0.1:9", "experiment", "list")
    assert "local-1" in result.output
    assert isinstance(result.exception, MasterUnreachableError)
    with pytest.raises(MasterUnreachableError):
        det.experiment(1)


def test_the_command_line_lists_and_describes_local_runs() -> None:
    assert run("experiment", "list").output == "There are no experiments yet.\n"
    write_experiment(name="sweep", trials=2)
    assert run("experiment", "list").output == f"{pretty(det.experiments())}\n"
    result = run("experiment", "describe", "local-1").output
    assert "experiment     local-1: sweep" in result
    assert "Completed" in result
    for name in ("list-trials", "lt"):
        assert run("experiment", name, "local-1").output == run("trial", "list", "local-1").output
    assert run("e", "list-checkpoints", "local-1").output == run("checkpoint", "list", "local-1").output
    result = run("trial", "describe", "local-1/2").output
    assert "2 of experiment local-1: sweep" in result
    assert "4 of 4" in result


def test_nothing_is_said_of_the_experiments_of_a_master_that_does_not_run() -> None:
    Home.default().database.touch()
    for options in ((), ("--state", "Running")):
        result = run("experiment", "list", *options)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith("No master runs here: its experiments are not shown.")


def test_a_master_that_does_not_run_is_told_beside_the_list() -> None:
    write_experiment(name="mine")
    assert run("experiment", "list").stderr == ""
    Home.default().database.touch()
    result = run("e", "list")
    assert "local-1" in result.stdout
    assert result.stderr == "No master runs here: its experiments are not shown. `det up` starts it.\n"
    assert result.exit_code == 0


def test_times_are_written_as_a_master_writes_them() -> None:
    write_experiment(name="new")
    write_experiment(name="old")
    store = LocalStore.find("local-2")
    before = "2026-01-02T03:04:05.678+00:00"
    store.write_experiment(store.experiment().model_copy(update={"created": before}))
    new, old = (line.split()[-1] for line in run("experiment", "list").stdout.splitlines()[1:])
    assert old == "2026-01-02T03:04:05.678Z"
    assert new.endswith("Z")
    assert len(new) == len(old)


def test_the_command_line_prints_the_logs_of_local_runs() -> None:
    experiment = write_experiment(trials=2)
    for trial in experiment.trials:
        folder = LocalStore.find(str(experiment.id)).trial_folder(trial.id)
        with closing(LogWriter(folder, trial.id, "run")) as log:
            for number in range(3):
                log.write(f"{trial.id} says {number}", "stdout")
    both = run("experiment", "logs", "local-1").output
    assert both.splitlines()[0] == "[trial 1] 1 says 0"
    assert len(both.splitlines()) == 6
    assert run("logs", "local-1").output == both
    assert run("trial", "logs", "local-1/2", "-n", "1").output == "2 says 2\n"
    assert run("logs", "--trial", "local-1/2", "--tail", "1").output == "2 says 2\n"
    assert run("trial", "logs", "local-1/2", "--head", "1").output == "2 says 0\n"
    assert "--head goes with neither" in run("trial", "logs", "local-1/2", "--head", "1", "-f").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("experiment", "describe", "local-9"), "There is no local experiment 'local-9'"),
        (("experiment", "describe", "local-x"), "'local-x' is no experiment; write its number, or local-<n>"),
        (("experiment", "pause", "local-1"), "Experiment local-1 has ended: it is"),
        (
            ("trial", "logs", "local-1"),
            "'local-1' is no trial; write 7.2 for the second trial of",
        ),
        (("trial", "describe", "local-1/7"), "Experiment local-1 has no trial 7; it has only trial 1."),
        (("experiment", "describe", "1"), "No master runs"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_experiment()
    monkeypatch.setattr("sys.argv", ["det", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code
    assert said in capsys.readouterr().err


def test_a_run_that_goes_on_cannot_be_paused_and_where_no_interrupt_reaches_it_not_be_stopped() -> None:
    write_experiment()
    store = LocalStore.find("local-1")
    store.write_experiment(store.experiment().model_copy(update={"state": ExperimentState.ACTIVE}))
    store.write_runner(this_process().model_copy(update={"interruptible": False}))
    with store.lock:
        for verb, word in (("pause", "paused"), ("resume", "resumed")):
            result = run("experiment", verb, "local-1")
            assert f"local-1 is a local run, which cannot be {word}: Ctrl-C ends it" in str(result.exception)
        for verb in ("stop", "kill"):
            result = run("experiment", verb, "local-1")
            assert "cannot be interrupted from here; interrupt it there (Ctrl-C" in str(result.exception)
    with pytest.raises(NotFoundError):
        det.experiment("local-4")


@pytest.mark.long
@pytest.mark.slow
def test_a_run_of_another_process_is_followed_and_stopped_by_the_command_line(tmp_path: Path) -> None:
    with local_training(tmp_path) as training:
        [found] = det.experiments()
        assert found.state is ExperimentState.ACTIVE
        assert [line.text for line in found.logs()] == ["at batch 0", "at batch 10", "waiting"]
        assert f"{WAITS_AT}/{BATCHES}" in run("experiment", "describe", "local-1").output
        result = run("experiment", "stop", "local-1")
        assert result.output == "Experiment local-1 was interrupted: it ends after this batch, with a checkpoint.\n"
        assert training.go_on() == 0
    assert found.state is ExperimentState.CANCELED
    assert found.checkpoints[-1].batch == WAITS_AT + 1
    assert found.logs()[-1].text == "at batch 20"
    result = run("experiment", "stop", "local-1")
    assert "There is nothing to stop." in str(result.exception)


@pytest.mark.long
@pytest.mark.slow
def test_a_run_whose_process_was_killed_says_why_it_stopped(tmp_path: Path) -> None:
    with local_training(tmp_path) as training:
        training.kill()
    [found] = det.experiments()
    assert found.state is ExperimentState.CANCELED
    assert found.trials[0].detail().batches == WAITS_AT
    reason = f"Stopped: its process ({training.process.pid}) ended in the middle of it, after batch 20 of 40."
    assert reason in run("experiment", "describe", "local-1").output
    assert "ended in the middle" in str(found)
    assert os.path.isdir(training.folder / "trials/1/files")
