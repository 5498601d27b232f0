"""The names and functions that a snapshot of a training call begins with."""

from __future__ import annotations

import sys
import threading
from types import FrameType, ModuleType
from typing import Any

import pytest

from det_native.heap.roots import roots_of_call

Roots = tuple[dict[str, Any], list[FrameType]]


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    module.roots_of_call = roots_of_call  # type: ignore[attr-defined]
    return vars(module)


def test_the_functions_between_a_cell_and_its_call_are_found_outermost_first(main: dict[str, Any]) -> None:
    exec(  # noqa: S102
        "def train(rate):\n return roots_of_call()\n"
        "def search():\n return max([0.1], key=lambda r: 0), sorted([1], key=collect)\n"
        "def collect(x):\n found.append(train(0.5))\n return 0\n"
        "found = []\nsearch()",
        main,
    )
    namespace, frames = main["found"][0]
    assert namespace is main
    assert [frame.f_code.co_name for frame in frames] == ["search", "collect", "train"]
    assert frames[-1].f_locals == {"rate": 0.5}


def test_a_cell_alone_has_no_functions(main: dict[str, Any]) -> None:
    exec("found = roots_of_call()", main)  # noqa: S102
    assert main["found"] == (main, [])


def test_a_thread_has_its_own_functions(main: dict[str, Any]) -> None:
    found: list[Roots] = []
    main["found"], main["Thread"] = found, threading.Thread
    exec("def job():\n found.append(roots_of_call())\nthread = Thread(target=job)\nthread.start()\nthread.join()", main)  # noqa: S102
    assert [frame.f_code.co_name for frame in found[0][1]] == ["job"]


def test_a_module_of_the_users_has_its_functions_among_them(
    main: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "peat_training.py").write_text(
        "import sys\ndef train():\n return sys.modules['__main__'].roots_of_call()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "peat_training", raising=False)
    exec("import peat_training\nfound = peat_training.train()", main)  # noqa: S102
    assert [frame.f_code.co_name for frame in main["found"][1]] == ["train"]
