"""Changes that no cell's text makes: by a widget or a timer between two cells, by a file that a magic runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernels import Found, Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]

SETUP = (
    "import threading\nparams = {'rate': 0.1}\nclass Own:\n    pass\nown = Own()\nown.params = params\n"
    "def moved():\n    params['rate'] = 0.5\n"
)
# It moves when the test says so, by a file, after the cell has ended.
TIMER = (
    "import os, time\n"
    "def wait():\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
    "    moved()\n    open('moved', 'w').close()\n"
    "threading.Thread(target=wait, daemon=True).start()"
)


def moved_between(kernel: Kernel, *cells: str) -> Found:
    """Run cells, of which something else than a cell follows the second."""
    for number, cell in enumerate(cells):
        kernel.run(cell)
        if number == 1:
            _move(kernel.folder)
    return kernel.found()


def _move(folder: Path) -> None:
    (folder / "go").touch()
    deadline = time.monotonic() + 120
    while not (folder / "moved").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    (folder / "go").unlink()
    (folder / "moved").unlink()


@pytest.mark.parametrize(
    "cells",
    [
        ("fit(params)",),
        ("rate = params['rate']", "fit(rate, params)"),
        ("1", "params['rate'] *= 2", "fit(params)"),
        ("# det-skip\n1", "fit(params)"),
    ],
)
def test_what_a_widget_changed_is_sent_by_value(kernel: Kernel, replayed: Replayed, cells: tuple[str, ...]) -> None:
    found = moved_between(kernel, SETUP, TIMER, *cells)
    assert "params" in found.value_names
    assert replayed(found, "params") == kernel.live("params")


def test_what_was_read_before_stays_what_it_was(kernel: Kernel, replayed: Replayed) -> None:
    found = moved_between(kernel, SETUP + "rate = params['rate']", TIMER, "fit(rate)")
    assert not found.values
    assert replayed(found, "rate") == kernel.live("rate")


def test_settings_of_a_module_that_a_widget_changed(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "settings.py").write_text("params = {'rate': 0.1}\ndef rate():\n    return params['rate']\n")
    moved = "import threading\ndef moved():\n    params['rate'] = 0.5\n"
    cells = (f"from settings import params, rate\n{moved}", TIMER, "1")
    found = moved_between(kernel, *cells, "fit(params)")
    assert replayed(found, "params") == kernel.live("params")
    kernel.run("fit(params, rate)")
    assert "`rate` is used by cell [7], but what changed it before cell [5] ran was no cell" in kernel.found().error


def test_what_keeps_settings_that_a_widget_changed_travels_with_them(kernel: Kernel, replayed: Replayed) -> None:
    net = "import functools\nclass Net(functools.partial):\n    pass\nnet = Net(dict, params)"
    found = moved_between(kernel, SETUP + net, TIMER, "1", "fit(net)")
    assert found.value_names == {"net"}
    shown = ("net()", "type(net) is Net")
    assert replayed(found, *shown) == kernel.live(*shown) == {"net()": "{'rate': 0.5}", "type(net) is Net": "True"}


def test_an_object_of_a_class_of_the_notebook_travels_as_a_widget_left_it(kernel: Kernel, replayed: Replayed) -> None:
    found = moved_between(kernel, SETUP, TIMER, "1", "fit(own)")
    assert found.value_names == {"own"}
    shown = ("own.params", "type(own) is Own")
    assert replayed(found, *shown) == kernel.live(*shown) == {"own.params": "{'rate': 0.5}", "type(own) is Own": "True"}


def test_what_cannot_be_sent_is_an_error_that_says_so(kernel: Kernel) -> None:
    setup = SETUP.replace("own.params = params", "own.params, own.lock = params, threading.Lock()")
    found = moved_between(kernel, setup, TIMER, "1", "fit(own)")
    assert "what changed it before cell [5] ran was no cell: a widget, a timer or a thread" in found.error


def test_a_file_that_a_magic_ran(kernel: Kernel, replayed: Replayed) -> None:
    Path(kernel.folder / "more.py").write_text("state['n'] += 1\n")
    kernel.cells("state = {'n': 1}", "%run -i more.py", "fit(state)")
    found = kernel.found()
    assert replayed(found, "state") == kernel.live("state")


def test_a_file_that_a_magic_ran_before_the_rest_of_the_cell(kernel: Kernel, replayed: Replayed) -> None:
    Path(kernel.folder / "more.py").write_text("state['n'] += 1\n")
    kernel.cells("state = {'n': 1}\ndef now():\n    return state['n']", "%run -i more.py\nn = now()", "fit(n, now)")
    assert replayed(kernel.found(), "n", "now()") == kernel.live("n", "now()")


def test_a_file_that_a_magic_ran_before_the_call_in_its_cell(kernel: Kernel) -> None:
    Path(kernel.folder / "more.py").write_text("state['n'] += 1\n")
    kernel.cells("state = {'n': 1}", "%run -i more.py\nfit(state)")
    assert (
        "Cell [3] uses `state`, and runs `%run -i more.py`, which sets it by code that is in no cell"
        in kernel.found().error
    )


def test_another_function_from_a_file_that_a_magic_ran(kernel: Kernel) -> None:
    Path(kernel.folder / "more.py").write_text("def scale(x):\n    return x * 2\n")
    kernel.cells("def scale(x):\n    return x", "%run more.py", "fit(scale)")
    error = kernel.found().error
    assert "was made by cell [3], which cannot run again (runs `%run more.py`), and cannot be sent" in error
    assert "in a module that a cell imports" in error


def test_what_an_interrupted_cell_changed_is_sent_by_value(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "state = {'n': 1}\ndef count(s):\n    for _ in range(3):\n        s['n'] += 1\n    raise KeyboardInterrupt",
        "count(state)",
        "fit(state)",
    )
    found = kernel.found()
    assert found.value_names == {"state"}
    assert replayed(found, "state") == {"state": "{'n': 4}"}


def test_a_part_of_a_library_in_a_failed_cell_does_not_block(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import json", "tools = json.decoder\ntools.JSONDecoder()\ntools.go()", "tools = [1]", "fit(json, tools)"
    )
    found = kernel.found()
    assert found.needs_none_of(3)
    assert not found.warnings
    assert replayed(found, "tools") == {"tools": "[1]"}


def test_what_a_slider_was_set_to_is_no_cells_doing(kernel: Kernel, replayed: Replayed) -> None:
    slider = (
        "import ipywidgets, threading\nslider = ipywidgets.FloatSlider(0.1)\ndef moved():\n    slider.value = 0.7\n"
    )
    found = moved_between(kernel, slider, TIMER, "rate = slider.value", "fit(rate)")
    assert found.value_names == {"rate"}
    assert replayed(found, "rate") == {"rate": "0.7"}
