"""Plain tables for the terminal, and log lines as text."""

from __future__ import annotations

import re
import sys

import pytest

from det_native.client.logs import Logs
from det_native.client.tables import facts, shown_table, table
from det_native.schema.rest import LogLine


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_stand_to_the_right() -> None:
    shown = table(["ID", "NAME", "BEST"], [[3, "digits", 0.25], [12, "a longer name", 0.5]])
    assert shown.splitlines() == [
        "ID  NAME           BEST",
        " 3  digits         0.25",
        "12  a longer name   0.5",
    ]


def test_a_table_without_rows_is_its_head() -> None:
    assert table(["ID", "NAME"], []) == "ID  NAME"


def test_what_would_move_the_cursor_is_left_out_before_widths_are_taken() -> None:
    shown = table(["NAME", "STATE"], [["\x1b[31mred\x07", "done"], ["plain", "done"]])
    assert shown.splitlines()[1:] == ["[31mred  done", "plain    done"]
    assert facts([("name", "a\x1b[2Jb"), ("state", "done")]) == "name   a[2Jb\nstate  done"


def in_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, head: list[str], rows: list[list[object]]) -> list[str]:
    """Return a table as a terminal of this width shows it, without its colours."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = re.sub(r"\x1b\[\d*m", "", shown_table(head, rows))
    return [line.rstrip() for line in shown.splitlines()]


def test_in_a_terminal_a_wide_cell_goes_on_in_its_column_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    head, rows = ["trial", "state", "hyperparameters"], [[7, "Completed", "abcdefghij" * 4], [12, "[b]\x1b[1m", "x"]]
    assert shown_table(head, rows) == table(head, rows), "what goes into a file has a line for each row"
    lines = in_terminal(monkeypatch, 40, head, rows)
    assert lines == [
        "trial  state      hyperparameters",
        "    7  Completed  abcdefghijabcdefghijab",
        "                  cdefghijabcdefghij",
        "   12  [b][1m     x",
    ]
    assert in_terminal(monkeypatch, 120, head, rows)[1] == f"    7  Completed  {'abcdefghij' * 4}"


def test_what_a_row_is_named_by_is_not_broken_unless_the_terminal_is_too_narrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uuid = "a1a54163-dc9c-4110-816e-b278b16affa9"
    head, rows = ["checkpoint", "batch", "validation_loss"], [[uuid, 50, 0.25]]
    assert in_terminal(monkeypatch, 64, head, rows)[1].startswith(f"{uuid}     50")
    narrow = in_terminal(monkeypatch, 30, head, rows)
    assert max(map(len, narrow)) <= 30
    assert "".join(line[:12].strip() for line in narrow).startswith("checkpoint")
    assert uuid.replace("-", "") in re.sub(r"[^0-9a-f]", "", "".join(line.split("  ")[0] for line in narrow))


def test_log_lines_are_the_text_that_was_printed() -> None:
    lines = [
        LogLine(id=number, trial_id=1, run_id="r", time="2026-01-01T00:00:00Z", stream="stdout", text=text)
        for number, text in enumerate(["epoch 1", "  loss 0.5"])
    ]
    assert [str(line) for line in lines] == ["epoch 1", "  loss 0.5"]
    assert str(Logs(lines)) == "epoch 1\n  loss 0.5"
