"""Lines that only a notebook has, tags, and what the report says of the cells that run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]


def test_display_cells_shell_lines_and_installs_are_not_needed(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "x = [1]",
        "print(x)",
        "x",
        "x?",
        "!echo hello",
        "%pip --version",
        "%%bash\necho hi",
        "%matplotlib --list\n!true\nx2 = 2",
        "import sys\n%time y = [3]\nx[0]",
        "fit(x, y)",
    )
    found = kernel.found()
    assert found.needs_none_of(3, 4, 5, 6, 7, 8, 9)
    assert replayed(found, "x", "y") == {"x": "[1]", "y": "[3]"}


@pytest.mark.long
def test_pip_installs_become_requirements(kernel: Kernel) -> None:
    kernel.run("get_ipython().register_magic_function(print, magic_name='pip')", silent=True)
    kernel.run("%pip install --no-index --quiet 'numpy>1'\nx = 1")
    kernel.run("fit()")
    found = kernel.found()
    assert found.requirements == ["numpy>1"]
    assert "numpy>1" not in str(found.program)


@pytest.mark.long
def test_a_value_from_the_shell_travels(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("files = !echo a.csv", "first = files[0]", "fit(files, first)")
    found = kernel.found()
    assert found.needs_none_of(2, 3)
    assert replayed(found, "list(files)", "first") == {"list(files)": "['a.csv']", "first": "'a.csv'"}


@pytest.mark.long
def test_a_value_from_the_shell_may_be_declared(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("files = !echo a.csv", "names = list(files)", "fit(names, values=['names'])")
    found = kernel.found()
    assert found.needs_none_of(2, 3)
    assert replayed(found, "names") == {"names": "['a.csv']"}


@pytest.mark.long
@pytest.mark.parametrize("declared", ["", ", values=['listing']"])
def test_a_bash_cell_that_a_name_depends_on(kernel: Kernel, replayed: Replayed, declared: str) -> None:
    kernel.cells("%%bash --out listing\necho a", "listing = listing.strip()", f"fit(listing{declared})")
    assert replayed(kernel.found(), "listing") == {"listing": "'a'"}


@pytest.mark.long
def test_what_a_magic_that_nobody_knows_did_is_told(kernel: Kernel) -> None:
    kernel.run(
        "import os\nfrom IPython.core.magic import register_cell_magic\n@register_cell_magic\n"
        "def of_the_test(line, cell):\n    exec(cell, globals())"
    )
    try:
        kernel.cells("%%of_the_test\nos.environ['DET_TEST_BY_MAGIC'] = '1'", "fit()")
        found = kernel.found()
        assert found.needs_none_of(3), "nothing of it would run"
        [warning] = found.warnings
        assert warning == (
            "Cell [3] stays behind (`%%of_the_test` is no Python) and has set os.environ['DET_TEST_BY_MAGIC'] for the "
            "whole process. Set it in a cell of its own."
        )
        kernel.run("%%of_the_test\npass", tags=("det-include",))
        kernel.run("fit()")
        assert "Cell [5] is tagged det-include, but cannot run again: `%%of_the_test` is no" in kernel.found().error
    finally:
        kernel.run(
            "os.environ.pop('DET_TEST_BY_MAGIC', 0)\nget_ipython().magics_manager.magics['cell'].pop('of_the_test')"
        )


@pytest.mark.long
def test_a_cell_that_only_shows_or_writes_a_file_is_no_matter(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "%%html\n<b>x</b>", "%%markdown\n# x", "%%writefile size.txt\n3", "x = int(open('size.txt').read())", "fit(x)"
    )
    found = kernel.found()
    assert found.needs_none_of(2, 3, 4)
    assert found.warnings == []
    assert replayed(found, "x") == {"x": "3"}


def test_python_in_place_of_a_bash_cell_is_sent(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import subprocess",
        "listing = subprocess.run(['echo', 'a'], capture_output=True, text=True, check=True).stdout",
        "fit(listing)",
    )
    assert replayed(kernel.found(), "listing") == {"listing": "'a\\n'"}


@pytest.mark.long
def test_tags_leave_out_and_force_in(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("x = 1")
    kernel.run("x = 2", tags=("det-skip",))
    kernel.run("# det-skip\nx = 3")
    kernel.run("y = 4", tags=("det-include",))
    kernel.run("# det-include\nz = 5")
    kernel.run("w = 6")
    kernel.run("fit(x)")
    found = kernel.found()
    assert not {3, 4} & set(found.cells)
    assert found.needs_none_of(7)
    assert not found.needs_none_of(5, 6)
    assert found.value_names == {"x"}
    assert replayed(found, "x", "y", "z") == kernel.live("x", "y", "z")


def test_a_needed_name_in_a_skipped_cell_only(kernel: Kernel) -> None:
    kernel.run("def helper():\n    return 1", tags=("det-skip",))
    kernel.cells("def step():\n    return helper()", "fit(step)")
    error = kernel.found().error
    assert "`helper`, used in cell [4] (step -> helper), was made by cell [2], which cannot run again" in error
    assert "(tagged det-skip)" in error
    assert "Remove the tag det-skip from that cell." in error


@pytest.mark.long
def test_durations_and_reasons_stand_in_the_report(kernel: Kernel) -> None:
    kernel.cells("import time\ntime.sleep(0.3)\nx = 1", "fit(x)")
    row = kernel.found().row("cell [2]")
    assert row.how == "runs again"
    assert row.note.startswith("ran before the call; took 0.")


@pytest.mark.long
def test_cells_that_ran_before_the_import_count_as_successful_and_say_so(kernel: Kernel) -> None:
    kernel.begin(kernel.folder, imported=False)
    kernel.cells("early = 1", "broken = 2\n1 / 0", "import det_native", "from det_stand_in import fit", "fit(early)")
    found = kernel.found()
    [early] = [number for number in found.cells if "early = 1" in found.source_of(number)]
    assert "counted as successful" in found.row(f"cell [{early}]").note
    assert not found.warnings


@pytest.mark.long
def test_what_network_and_shell_calls_gave_travels(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import os, subprocess, urllib.request",
        "def fetch(url):\n    try:\n        urllib.request.urlopen(url)\n    except OSError:\n        return url",
        "data = subprocess.check_output(['echo', 'a'])\npage = fetch('http://data.invalid')\n"
        "open('old', 'w').close()\nos.rename('old', 'older')\nos.remove('older')\nrest = (one for one in data)",
        "fit(data)",
    )
    found = kernel.found()
    assert found.warnings == []
    assert found.needs_none_of(4)
    assert found.row("cell [4]").note.startswith("stays behind: ran a command (echo a)")
    assert replayed(found, "data") == {"data": "b'a\\n'"}
    kernel.run("fit(rest)")
    [warning] = kernel.found().warnings
    assert warning == (
        "Cell [4] runs a command (echo a) and uses the network (data.invalid) and moves files (old) and deletes files "
        "(older). It will run once per trial and once per restart, with the files already as it left them, as `rest` "
        "is needed and cannot be sent (a generator). Make `rest` in a cell of its own."
    )


@pytest.mark.long
def test_what_the_history_gave_travels_and_is_not_there_itself(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("1 + 1", "x = _\ny = [x]", "fit(y)")
    assert replayed(kernel.found(), "y") == {"y": "[2]"}
    kernel.run("3 + 3", cell="history")
    kernel.run("fit(_)")
    assert "Cell [6] uses `_`, the notebook's history." in kernel.found().error


@pytest.mark.long
def test_a_cell_that_took_long_stays_behind(kernel: Kernel, replayed: Replayed) -> None:
    kernel.slowly("table = [1]", 75.4)
    kernel.run("fit(table)")
    found = kernel.found()
    assert found.warnings == []
    assert found.needs_none_of(2)
    assert found.row("cell [2]").note == "stays behind: took 1 min 15 s"
    assert replayed(found, "table") == {"table": "[1]"}


@pytest.mark.long
def test_a_cell_that_took_long_and_runs_again_is_warned_about(kernel: Kernel) -> None:
    kernel.slowly("table = (one for one in [1])", 75.4)
    kernel.run("fit(table)")
    found = kernel.found()
    [warning] = found.warnings
    assert warning == (
        "Cell [2] took 1 min 15 s. It will run once per trial and once per restart, as `table` is needed and cannot be "
        "sent (a generator). Make `table` in a cell of its own."
    )
    assert "took 1 min 15 s" in found.row("cell [2]").note


@pytest.mark.long
def test_a_cell_that_only_sets_an_item_ran_twice_before_the_import(kernel: Kernel, replayed: Replayed) -> None:
    kernel.begin(kernel.folder, imported=False)
    again = "cfg['size'] = 64"
    kernel.cells(
        "cfg = {'size': 16}", "len(cfg)", again, again, "import det_native", "from det_stand_in import fit", "fit(cfg)"
    )
    assert replayed(kernel.found(), "cfg") == kernel.live("cfg")
