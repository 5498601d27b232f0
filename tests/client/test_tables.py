"""Plain tables for the terminal, and log lines as text."""

from __future__ import annotations

from det_native.client.logs import Logs
from det_native.client.tables import facts, table
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


def test_log_lines_are_the_text_that_was_printed() -> None:
    lines = [
        LogLine(id=number, trial_id=1, run_id="r", time="2026-01-01T00:00:00Z", stream="stdout", text=text)
        for number, text in enumerate(["epoch 1", "  loss 0.5"])
    ]
    assert [str(line) for line in lines] == ["epoch 1", "  loss 0.5"]
    assert str(Logs(lines)) == "epoch 1\n  loss 0.5"
