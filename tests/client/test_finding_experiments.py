"""Experiments found in Python and by ``det``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
from click.testing import CliRunner, Result
from IPython.lib.pretty import pretty
from master_parts import Master, running_master
from put_experiments import put_experiment

import det_native as det
from det_native.client.command import cli
from det_native.errors import ArgumentError

pytestmark = pytest.mark.slow  # a whole master


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["experiment", *arguments])


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """Run a master with three experiments that differ."""
    with running_master(tmp_path_factory.mktemp("finding") / "home") as running:
        for name, trials, labels in (
            ("digits", 1, ("baseline",)),
            ("letters", 2, ()),
            ("digits again", 3, ("baseline", "b")),
        ):
            number = put_experiment(running, name=name, count=trials, labels=labels, project=name)
        running.client.patch(f"/api/v1/experiments/{number}", json={"archived": True}).raise_for_status()
        yield running


@pytest.fixture
def three(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have that master found."""
    monkeypatch.setenv("DET_MASTER", str(master.client.base_url))
    monkeypatch.setenv("DET_TOKEN", master.token)


def found(**how: object) -> list[object]:
    return [experiment.id for experiment in det.experiments(**how)]  # type: ignore[arg-type]


def test_experiments_are_found_by_what_is_known_of_them(three: None) -> None:
    assert found() == [2, 1]
    assert found(archived=True) == [3, 2, 1]
    assert found(query="val_loss < 0.6") == [2]
    assert found(query="val_loss < 0.6 and lr > 0.15 and archived:yes") == [3]
    assert found(label="baseline", archived=True) == [3, 1]
    assert found(label=["baseline", "b"], archived=True) == [3]
    assert found(name="DIGITS", state="Completed") == [1]
    assert found(project="letters", metric="val_loss") == [2]
    assert found(metric="accuracy") == []
    now = datetime.now(UTC)
    for since in ("1h", timedelta(hours=1), now - timedelta(hours=1), now.date() - timedelta(days=1), "2020-01-01"):
        assert found(since=since) == [2, 1]
    assert found(since=date.today() + timedelta(days=2)) == []
    assert found(query="id = 2 or trials = 3 and archived:yes", order_by="metric:val_loss") == [
        3,
        2,
    ]
    assert found(order_by="name desc", archived=True) == [2, 3, 1]
    assert found(order_by="hp:lr", archived=True) == [1, 2, 3]


def test_what_is_left_out_of_a_list_is_told_below_it(three: None) -> None:
    assert pretty(det.experiments(1)).splitlines()[-1] == "1 of 2; det.experiments(limit=None) has all."
    assert len(pretty(det.experiments(limit=None)).splitlines()) == 3
    assert pretty(det.experiments(query="val_loss < 0")) == "There are no such experiments."
    result = run("list", "--limit", "1")
    assert "letters" in result.stdout
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
        assert [each["id"] for each in json.loads(run(*arguments, "--json").stdout)] == [2]
    head, line = run("list", "--label", "baseline", "--csv").stdout.splitlines()
    assert head.startswith("id,name,state")
    assert line.startswith("1,digits,Completed")
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
