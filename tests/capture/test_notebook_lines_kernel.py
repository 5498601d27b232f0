"""Lines that only a notebook has, tags, and what the report says of the cells that run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]


def test_display_cells_shell_lines_and_installs_are_left_out(kernel: Kernel, replayed: Replayed) -> None:
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
    assert found.leaves_out(3, 4, 5, 6, 7, 8, 9)
    assert replayed(found, "x", "y") == {"x": "[1]", "y": "[3]"}


def test_pip_installs_become_requirements(kernel: Kernel) -> None:
    kernel.run("get_ipython().register_magic_function(print, magic_name='pip')", silent=True)
    kernel.run("%pip install --no-index --quiet 'numpy>1'\nx = 1")
    kernel.run("fit()")
    found = kernel.found()
    assert found.requirements == ["numpy>1"]
    assert "numpy>1" not in str(found.program)


def test_a_value_from_the_shell_is_an_error_that_names_the_cell(kernel: Kernel) -> None:
    kernel.cells("files = !echo a.csv", "fit(files)")
    error = kernel.found().error
    assert "Cell [2] uses `files = !echo a.csv`; shell lines and magics do not run on the cluster." in error
    assert "values=['files']" in error


def test_a_value_from_the_shell_may_be_declared(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("files = !echo a.csv", "names = list(files)", "fit(names, values=['names'])")
    found = kernel.found()
    assert found.leaves_out(2, 3)
    assert replayed(found, "names") == {"names": "['a.csv']"}


def test_a_bash_cell_that_a_name_depends_on(kernel: Kernel) -> None:
    kernel.cells("%%bash --out listing\necho a", "fit(listing)")
    assert (
        "Cell [2] uses `%%bash`; shell cells do not run on the cluster. Do the same in Python, declare the value with "
        "values=[...], or tag the cell det-skip if it is not needed." in kernel.found().error
    )


def test_the_ways_out_of_a_bash_cell_are_ways_out(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("%%bash --out listing\necho a", "listing = listing.strip()", "fit(listing, values=['listing'])")
    assert replayed(kernel.found(), "listing") == {"listing": "'a'"}


def test_what_a_magic_that_nobody_knows_did_is_told(kernel: Kernel) -> None:
    kernel.run(
        "import os\nfrom IPython.core.magic import register_cell_magic\n@register_cell_magic\n"
        "def of_the_test(line, cell):\n    exec(cell, globals())"
    )
    try:
        kernel.cells("%%of_the_test\nos.environ['DET_TEST_BY_MAGIC'] = '1'", "fit()")
        found = kernel.found()
        assert found.leaves_out(3), "nothing of it would run"
        [warning] = found.warnings
        assert warning.startswith(
            "Cell [3] uses `%%of_the_test`, and sets os.environ['DET_TEST_BY_MAGIC']; only Python"
        )
        kernel.run("%%of_the_test\npass", tags=("det-include",))
        kernel.run("fit()")
        assert "Cell [5] uses `%%of_the_test`; only Python cells run on the cluster" in kernel.found().error
    finally:
        kernel.run(
            "os.environ.pop('DET_TEST_BY_MAGIC', 0)\nget_ipython().magics_manager.magics['cell'].pop('of_the_test')"
        )


def test_a_cell_that_only_shows_or_writes_a_file_is_no_matter(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "%%html\n<b>x</b>", "%%markdown\n# x", "%%writefile size.txt\n3", "x = int(open('size.txt').read())", "fit(x)"
    )
    found = kernel.found()
    assert found.leaves_out(2, 3, 4)
    assert found.warnings == []
    assert replayed(found, "x") == {"x": "3"}


def test_python_in_place_of_a_bash_cell_is_sent(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import subprocess",
        "listing = subprocess.run(['echo', 'a'], capture_output=True, text=True, check=True).stdout",
        "fit(listing)",
    )
    assert replayed(kernel.found(), "listing") == {"listing": "'a\\n'"}


def test_tags_leave_out_and_force_in(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("x = 1")
    kernel.run("x = 2", tags=("det-skip",))
    kernel.run("# det-skip\nx = 3")
    kernel.run("y = 4", tags=("det-include",))
    kernel.run("# det-include\nz = 5")
    kernel.run("w = 6")
    kernel.run("fit(x)")
    found = kernel.found()
    assert found.leaves_out(3, 4, 7)
    assert replayed(found, "x", "y", "z") == {"x": "1", "y": "4", "z": "5"}


def test_a_needed_name_in_a_skipped_cell_only(kernel: Kernel) -> None:
    kernel.run("def helper():\n    return 1", tags=("det-skip",))
    kernel.cells("def step():\n    return helper()", "fit(step)")
    assert "cell [2], which defines it, is tagged det-skip" in kernel.found().error


def test_durations_and_reasons_stand_in_the_report(kernel: Kernel) -> None:
    kernel.cells("import time\ntime.sleep(0.3)\nx = 1", "fit(x)")
    row = kernel.found().row("cell [2]")
    assert row.how == "runs again"
    assert row.note.startswith("defines `x`; took 0.")


def test_cells_that_ran_before_the_import_count_as_successful_and_say_so(kernel: Kernel) -> None:
    kernel.begin(kernel.folder, imported=False)
    kernel.cells("early = 1", "broken = 2\n1 / 0", "import det_native", "from det_stand_in import fit", "fit(early)")
    found = kernel.found()
    [early] = [number for number in found.cells if "early = 1" in found.source_of(number)]
    assert "counted as successful" in found.row(f"cell [{early}]").note
    assert any("ran before det_native was imported" in warning for warning in found.warnings)


def test_network_and_shell_calls_are_warned_about(kernel: Kernel) -> None:
    kernel.cells(
        "import os, subprocess, urllib.request",
        "def fetch(url):\n    try:\n        urllib.request.urlopen(url)\n    except OSError:\n        return url",
        "data = subprocess.check_output(['echo', 'a'])\npage = fetch('http://data.invalid')\n"
        "open('old', 'w').close()\nos.rename('old', 'older')\nos.remove('older')",
        "fit(data)",
    )
    [warning] = kernel.found().warnings
    assert warning.startswith(
        "Cell [4] runs a command (echo a) and uses the network (data.invalid) and moves files (old) and deletes files "
        "(older)."
    )
    assert "once per trial and once per restart, where the files are already as it left them." in warning
    assert "values=['data']; the files are sent as they are now" in warning


def test_calling_nothing_but_history_is_an_error(kernel: Kernel) -> None:
    kernel.cells("1 + 1", "x = _\ny = [x]", "fit(y)")
    assert "Cell [3] uses `_`, the notebook's history." in kernel.found().error


def test_a_cell_that_took_over_a_minute_is_warned_about(kernel: Kernel) -> None:
    kernel.cells("import time", "table = [1]", "other = [2]", "fit(table, other)")
    assert kernel.found().warnings == []
    # As if the cell had taken so long: what the log has measured is changed, which the report and the warning show.
    aged = "import det_native.capture.log as _l\n_l.current_log().executions[2].duration = {}\ndel _l"
    kernel.run(aged.format(60.0), silent=True)
    kernel.run("fit(table, other)")
    assert kernel.found().warnings == []
    kernel.run(aged.format(75.4), silent=True)
    kernel.run("fit(table, other)")
    found = kernel.found()
    [warning] = found.warnings
    assert warning == (
        "Cell [3] took 1 min 15 s. It will run once per trial and once per restart; values=['table'] sends the result "
        "instead."
    )
    assert "took 1 min 15 s" in found.row("cell [3]").note


def test_a_cell_that_only_sets_an_item_ran_twice_before_the_import(kernel: Kernel, replayed: Replayed) -> None:
    kernel.begin(kernel.folder, imported=False)
    again = "cfg['size'] = 64"
    kernel.cells(
        "cfg = {'size': 16}", "len(cfg)", again, again, "import det_native", "from det_stand_in import fit", "fit(cfg)"
    )
    assert replayed(kernel.found(), "cfg") == kernel.live("cfg")
