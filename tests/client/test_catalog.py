"""The list of experiments, in Python and on the command line."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result
from IPython.lib.pretty import pretty
from master_parts import Master
from put_experiments import put_experiment

import det_native as det
from det_native.client.command import cli, main
from det_native.client.sdk.determined import Determined
from det_native.errors import ArgumentError
from det_native.schema.home import Home, read_runtime
from det_native.schema.kernel_runs import REQUEST_NAME


def run(*arguments: str) -> Result:
    """Run ``det``, which must not start a master."""
    result = CliRunner().invoke(cli, arguments)
    assert read_runtime(Home.default()) is None
    return result


@pytest.mark.slow
def test_all_experiments_are_a_list_of_handles_that_shows_itself_as_a_table(named_master: Master) -> None:
    assert pretty(det.experiments()) == "There are no experiments yet."
    for name in ("first", "second", "third"):
        put_experiment(named_master, name=name)
    found = det.experiments(limit=2)
    assert [each.id for each in found] == [3, 2]
    assert found[0].best_trial.history == {"loss": [0.5], "val_loss": [1.0]}
    head, newest, older, others = pretty(found).splitlines()
    assert head.split() == ["id", "name", "state", "progress", "trials", "metric", "best", "created"]
    assert newest.split()[:6] == ["3", "third", "Completed", "100%", "1", "val_loss"]
    assert older.startswith("2 ")
    assert others == "2 of 3; det.experiments(limit=None) has all."
    assert det.experiment(2).name == "second"
    assert det.attach(2).name == "second"


@pytest.mark.slow
def test_the_command_line_lists_and_describes_them(named_master: Master) -> None:
    assert run("experiment", "list").output == "There are no experiments yet.\n"
    put_experiment(named_master, name="sweep", count=2)
    assert run("experiment", "list").output == f"{pretty(det.experiments())}\n"
    result = run("experiment", "describe", "1").output
    assert "experiment     1: sweep" in result
    assert "Completed" in result
    for name in ("list-trials", "lt"):
        assert run("experiment", name, "1").output == run("trial", "list", "1").output
    assert run("e", "list-checkpoints", "1").output == run("checkpoint", "list", "1").output
    result = run("trial", "describe", "1.2").output
    assert "2 of experiment 1: sweep" in result
    assert "4 of 4" in result


def test_nothing_is_said_of_the_experiments_of_a_master_that_does_not_run() -> None:
    Home.default().database.touch()
    for options in ((), ("--state", "Running")):
        result = run("experiment", "list", *options)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith("No master runs here: its experiments are not shown.")


@pytest.mark.slow
def test_the_command_line_prints_logs(named_master: Master) -> None:
    put_experiment(named_master, count=2, printed="{trial} says 0\n{trial} says 1\n{trial} says 2\n")
    both = run("experiment", "logs", "1").output
    assert both.splitlines()[0] == "[trial 1] 1 says 0"
    assert len(both.splitlines()) == 6
    assert run("logs", "1").output == both
    assert run("trial", "logs", "1.2", "-n", "1").output == "2 says 2\n"
    assert run("logs", "--trial", "1.2", "--tail", "1").output == "2 says 2\n"
    assert run("trial", "logs", "1.2", "--head", "1").output == "2 says 0\n"
    assert "--head goes with neither" in run("trial", "logs", "1.2", "--head", "1", "-f").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("experiment", "describe", "local-9"), "local-9: local runs have numbers like all experiments now"),
        (("trial", "logs", "local-9/1"), "local-9/1: local runs have numbers like all experiments now"),
        (("logs", "local-9"), "`det experiment list` shows them."),
        (("experiment", "describe", "x"), "'x' is not the number of an experiment."),
        (("trial", "logs", "x"), "'x' does not name a trial: write 7.2 for the second trial of"),
        (("experiment", "describe", "1"), "No master runs"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["det", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_name_of_before_is_one_sentence_in_python_too(named_master: Master) -> None:
    for asked in (det.attach, Determined().get_experiment, lambda name: det.compare([1, name])):
        with pytest.raises(ArgumentError, match=r"^local-3: local runs have numbers like all experiments now"):
            asked("local-3")


def test_where_no_master_runs_python_says_what_is_not_listed() -> None:
    assert det.experiments() == []
    with pytest.raises(ArgumentError, match=r"^local-3: local runs have numbers like all experiments now"):
        det.attach("local-3")  # type: ignore[arg-type]
    (Home.default().path / "runs" / "r").mkdir(parents=True)
    (Home.default().path / "runs" / "r" / REQUEST_NAME).touch()  # a run that no master has taken in yet
    with pytest.warns(UserWarning, match="No master runs here"):
        assert det.experiments() == []
    with pytest.warns(UserWarning, match="127.0.0.1:9"):
        assert det.experiments(master_url="http://127.0.0.1:9") == []
