"""``--csv`` beside ``--json``, exit codes, and what is said where a name is wrong, as a user of the shell meets it."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from master_parts import Master
from put_experiments import put_experiment

from det_native.client import command, transfer_bar
from det_native.client.command import cli
from det_native.client.command_groups import Group

TELLING = (
    "status",
    "version",
    "preview-search",
    "experiment list",
    "experiment describe",
    "experiment config",
    "trial list",
    "trial describe",
    "trial metrics",
    "trial files",
    "trial media",
    "checkpoint list",
    "checkpoint describe",
    "slot list",
    "queue list",
    "data list",
    "remote check",
)


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, words, catch_exceptions=False)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def code_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    monkeypatch.setattr("sys.argv", ["det", *words])
    with pytest.raises(SystemExit) as ended:
        command.main()
    return ended.value.code


@pytest.mark.parametrize("name", TELLING)
def test_a_command_that_tells_facts_has_both_options(name: str) -> None:
    found: Any = cli
    for word in name.split():
        assert isinstance(found, Group | command.click.Group)
        found = found.commands[word]
    assert {"--json", "--csv"} <= {option for parameter in found.params for option in parameter.opts}


@pytest.mark.slow
def test_csv_of_experiments_and_their_parts_is_exact(named_master: Master) -> None:
    put_experiment(named_master, name='digits, "two"', count=3)
    [row] = rows_of(run("experiment", "list", "--csv").output)
    assert (row["id"], row["name"], row["progress"]) == ("1", 'digits, "two"', "1.0")
    assert float(row["best"]) == 1 / 3
    best, *_ = rows_of(run("trial", "list", "1", "--csv").output)
    assert (best["trial"], float(best["best val_loss"]), json.loads(best["hyperparameters"])["lr"]) == (
        "3",
        1 / 3,
        pytest.approx(0.3),
    )
    configured = {row["path"]: row["value"] for row in rows_of(run("experiment", "config", "1", "--csv").output)}
    assert configured == {"searcher.name": "random", "records_per_epoch": "0"}
    facts = {row["name"]: row["value"] for row in rows_of(run("experiment", "describe", "1", "--csv").output)}
    assert (facts["state"], facts["searcher"], facts["trials"]) == ("Completed", "random", "3")
    assert (float(facts["best"]), facts["progress"], facts["smaller_is_better"]) == (1 / 3, "1.0", "True")
    facts = {row["name"]: row["value"] for row in rows_of(run("trial", "describe", "1.3", "--csv").output)}
    assert (float(facts["best"]), facts["batches"], facts["target_batches"]) == (1 / 3, "4", "4")
    assert len(rows_of(run("experiment", "describe", "1", "--metrics", "--csv").output)) == 15


@pytest.mark.slow
def test_what_people_have_written_of_an_experiment_is_described(named_master: Master) -> None:
    put_experiment(named_master)
    plain = run("experiment", "describe", "1").output
    assert not any(word in plain for word in ("labels", "description", "notes", "project", "archived", "forked"))
    assert put_experiment(named_master, forked_from=1) == 2
    notes = "# Seen\n\nIt is *straight*."
    said = run("experiment", "set", "notes", "2", notes).output
    assert "notes     25 characters\n" in said
    assert said.endswith("\nnotes:\n  # Seen\n\n  It is *straight*.\n")
    assert "description  A line.\n" in run("experiment", "set", "description", "2", "A\nline.").output
    run("experiment", "label", "add", "2", "first", "second")
    run("experiment", "set", "project", "2", "lines/straight")
    run("experiment", "archive", "2")
    lines = run("experiment", "describe", "2").output.splitlines()
    for name, value in (
        ("labels", "first, second"),
        ("description", "A line."),
        ("project", "lines/straight"),
        ("archived", "yes"),
        ("forked from", "1"),
    ):
        assert [line.split(None, name.count(" ") + 1)[-1] for line in lines if line.startswith(name)] == [value]
    place = lines.index("notes:")
    assert lines[place : place + 4] == ["notes:", "  # Seen", "", "  It is *straight*."]
    facts = {row["name"]: row["value"] for row in rows_of(run("experiment", "describe", "2", "--csv").output)}
    assert (facts["notes"], facts["description"], facts["forked_from"]) == (notes, "A\nline.", "1")
    assert json.loads(facts["labels"]) == ["first", "second"]
    told = json.loads(run("experiment", "describe", "2", "--json").output)
    assert [told[name] for name in ("notes", "project", "archived", "forked_from")] == [
        *(notes, "lines/straight", True, 1),
    ]
    assert "notes     none any more\n" in run("experiment", "set", "notes", "2", "").output


@pytest.mark.slow
def test_nothing_found_is_a_head_alone_for_programs(named_master: Master) -> None:
    assert run("experiment", "list", "--csv").output.splitlines() == [
        "id,name,state,progress,trials,metric,best,created"
    ]
    assert run("experiment", "list", "--json").output == "[]\n"
    assert "There are no experiments yet." in run("experiment", "list").output
    put_experiment(named_master)
    assert run("trial", "media", "1.1", "--csv").output == "batch,kind,name,size,caption\n"
    assert run("trial", "media", "1.1", "--json").output == "[]\n"


def test_json_and_csv_exclude_each_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(monkeypatch, "version", "--json", "--csv") == 2
    assert "--json and --csv exclude each other." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("version",), 0),
        (("experiment", "describe", "local-9"), 2),
        (("experiment", "wait", "seven"), 2),
        (("trial", "describe", "7.0"), 2),
        (("trial", "describe", "7.2.1"), 2),
        (("nothing",), 2),
        (("status",), 3),
        (("experiment", "describe", "1"), 3),
        (("experiment", "wait", "1"), 3),
        (("trial", "list", "1"), 3),
        (("trial", "describe", "1.1"), 3),
        (("checkpoint", "describe", "0123"), 3),
        (("queue", "list"), 3),
    ],
)
def test_exit_codes_are_those_of_the_documents(
    words: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(monkeypatch, *words) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    if code in (1, 3):
        told = (said.err or said.out).strip()
        assert len(told.splitlines()) == 1, told


def test_help_ends_with_the_codes() -> None:
    text = " ".join(run("--help").output.split())
    assert text.endswith("docs/command_line.md tells more.")
    assert "3 no master runs" in text


def test_a_bar_is_drawn_in_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    with transfer_bar.transfer_bar("downloading", 6):
        assert list(transfer_bar.counted([b"abc", b"def"])) == [b"abc", b"def"]
    assert capsys.readouterr().err == ""


def test_a_bar_in_a_terminal_goes_on_with_what_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    drawn = Terminal()
    monkeypatch.setattr("sys.stderr", drawn)
    with transfer_bar.transfer_bar("downloading", 6):
        assert b"".join(transfer_bar.counted([b"abc", b"def"])) == b"abcdef"
    assert "downloading:   0%" in drawn.getvalue()
