"""Experiments found in Python and by ``det``, without a master: runs of this machine's own."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta

import pytest
from click.testing import CliRunner, Result
from det_native.local.store import LocalStore
from IPython.lib.pretty import pretty
from local_experiments import write_experiment

import det_native as det
from det_native.client.command import cli
from det_native.errors import ArgumentError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["experiment", *arguments])


@pytest.fixture
def three() -> None:
    """Write three runs that differ."""
    for name, trials, labels in (
        ("digits", 1, ["baseline"]),
        ("letters", 2, []),
        ("digits again", 3, ["baseline", "b"]),
    ):
        experiment = write_experiment(name=name, trials=trials)
        store = LocalStore.find(str(experiment.id))
        store.write_experiment(
            store.experiment().model_copy(update={"labels": labels, "archived": "b" in labels, "project": name})
        )


def found(**how: object) -> list[object]:
    return [experiment.id for experiment in det.experiments(**how)]  # type: ignore[arg-type]


def test_experiments_are_found_by_what_is_known_of_them(three: None) -> None:
    assert found() == ["local-2", "local-1"]
    assert found(archived=True) == ["local-3", "local-2", "local-1"]
    assert found(query="val_loss < 0.6") == ["local-2"]
    assert found(query="val_loss < 0.6 and lr > 0.15 and archived:yes") == ["local-3"]
    assert found(label="baseline", archived=True) == ["local-3", "local-1"]
    assert found(label=["baseline", "b"], archived=True) == ["local-3"]
    assert found(name="DIGITS", state="Completed") == ["local-1"]
    assert found(project="letters", metric="val_loss") == ["local-2"]
    assert found(metric="accuracy") == []
    now = datetime.now(UTC)
    for since in ("1h", timedelta(hours=1), now - timedelta(hours=1), now.date() - timedelta(days=1), "2020-01-01"):
        assert found(since=since) == ["local-2", "local-1"]
    assert found(since=date.today() + timedelta(days=2)) == []
    assert found(query="id = local-2 or trials = 3 and archived:yes", order_by="metric:val_loss") == [
        "local-3",
        "local-2",
    ]
    assert found(order_by="name desc", archived=True) == ["local-2", "local-3", "local-1"]
    assert found(order_by="hp:lr", archived=True) == ["local-1", "local-2", "local-3"]


def test_what_is_left_out_of_a_list_is_told_below_it(three: None) -> None:
    assert pretty(det.experiments(1)).splitlines()[-1] == "1 of 2; det.experiments(limit=None) has all."
    assert len(pretty(det.experiments(limit=None)).splitlines()) == 3
    assert pretty(det.experiments(query="val_loss < 0")) == "There are no such experiments."
    result = run("list", "--limit", "1")
    assert "local-2" in result.stdout
    assert result.stderr == "1 of 2; --all has all.\n"
    result = run("list", "--limit", "1", "--all", "--archived")
    assert (len(result.stdout.splitlines()), result.stderr) == (4, "")


def test_the_command_line_finds_the_same(three: None) -> None:
    for arguments in (
        ("list", "--query", "val_loss < 0.6 and trials = 2"),
        ("search", "val_loss < 0.6 and trials = 2"),
        ("list", "--name", "letters", "--project", "letters", "--metric", "loss", "--since", "1d"),
        ("list", "--order-by", "name desc", "--limit", "1"),
    ):
        assert [each["id"] for each in json.loads(run(*arguments, "--json").stdout)] == ["local-2"]
    head, line = run("list", "--label", "baseline", "--csv").stdout.splitlines()
    assert head.startswith("id,name,state")
    assert line.startswith("local-1,digits,Completed")
    assert run("search", "val_loss < 0").stdout == "There are no such experiments.\n"


@pytest.mark.parametrize(
    ("how", "arguments", "sentence"),
    [
        ({"query": "val_loss < and"}, ["--query", "val_loss < and"], "at character 12: expected a value"),
        ({"state": "Foo"}, ["--state", "Foo"], "'Foo' is not a state; there are Queued, Running"),
        ({"since": "soon"}, ["--since", "soon"], "since='soon' is not a time"),
        ({"order_by": "lr"}, ["--order-by", "lr"], "Did you mean 'metric:lr' or 'hp:lr'?"),
    ],
)
def test_a_question_that_cannot_be_understood_is_one_sentence(
    how: dict[str, str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        det.experiments(**how)  # type: ignore[arg-type]
    assert sentence in str(caught.value)
    result = run("list", *arguments)
    assert isinstance(result.exception, ArgumentError)
    assert str(result.exception) == str(caught.value)


@pytest.mark.long
def test_a_wrong_query_is_shown_with_its_place_in_a_terminal() -> None:
    start = "from det_native.client.command import main; main()"
    command = [sys.executable, "-c", start, "e", "list", "-q", "lr > > 3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == ["  lr > > 3", "       ^"]
