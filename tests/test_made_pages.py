"""The page of the Python interface, which ``make docs`` writes, has every public name with its docstring."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import command_page  # noqa: E402
from api_page import PACKAGES  # noqa: E402

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("docs") / "api.md"
    # In a process of its own: it imports every framework.
    process = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "api_page.py"), str(target)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert process.returncode == 0, process.stderr
    return target.read_text("utf-8")


def public_names(package: str) -> list[str]:
    """Return what completion shows for a package, but for modules. Their values would import the frameworks."""
    names = [name for name in dir(importlib.import_module(package)) if not name.startswith("__")]
    is_package = ROOT.joinpath(*package.split(".")).is_dir()
    return [name for name in names if not is_package or importlib.util.find_spec(f"{package}.{name}") is None]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_on_the_page(page: str, package: str) -> None:
    names = public_names(package)
    assert names
    headings = {
        line.strip("#` ").removeprefix("class ").partition("(")[0] for line in page.splitlines() if line[:4] == "### "
    }
    assert {f"{package.replace('det_native', 'det', 1)}.{name}" for name in names} <= headings


def test_every_command_is_on_its_page(tmp_path: Path) -> None:
    assert command_page.main([str(tmp_path / "commands.md")]) == 0
    rows = [line for line in (tmp_path / "commands.md").read_text().splitlines() if line.startswith("| `det ")]
    assert len(rows) == len({row.partition("`")[2].partition("`")[0] for row in rows}) > 80
    [kill] = [row for row in rows if row.startswith("| `det experiment kill")]
    assert all(cell.strip() for cell in kill.split(" | ")[:2])


def test_handles_and_functions_are_on_the_page(page: str) -> None:
    for heading in ("### `class det.Experiment(", "### `det.log(", "### `class Medium(", "#### `trial(number)`"):
        assert heading in page
