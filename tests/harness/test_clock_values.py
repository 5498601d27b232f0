"""A worker takes the notebook's moments and drawn names, in variables, attributes and names of files."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import types
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from det_harness.program.clock_values import put_clock_values

from det_native.heap.clock_values import is_drawn, slots_of_program
from det_native.heap.values import pack_whole, unpack_whole

DAY = datetime.date.today().strftime("%Y%m%d")
HERE, THERE = f"{DAY}-101542", f"{DAY}-101500"


class Settings:
    stamp = HERE


def train(call: Callable[[], object]) -> tuple[str, str]:
    path = f"a_{HERE}"

    def inner() -> str:
        return path

    call()
    return path, inner()


def in_cell(program: dict[str, Any], function: Callable[..., Any], *arguments: object) -> Any:
    """Return what a function returns that a cell of the program calls."""
    return eval("function(*arguments)", program, {"function": function, "arguments": arguments})  # noqa: S307


def noted(folder: str = "", **values: Any) -> tuple[Any, list[str], str]:
    """Return what the notebook has noted; two underscores stand for a point."""
    paths = {path.replace("__", "."): value for path, value in values.items()}
    return paths, [folder] if folder else [], os.uname().nodename


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return vars(module)


def test_variables_and_what_they_hold_are_put_right(program: dict[str, Any], work: Path) -> None:
    args = argparse.Namespace(run=f"run_{HERE}", device="cuda:0")
    program |= {"log_dir": f"logs/{HERE}", "args": args, "seen": [Path(f"{work}/{HERE}.csv")], "number": 1_764_429_161}
    program |= {
        "key": uuid.UUID(int=1),
        "device": "cuda:0",
        "plain": types.SimpleNamespace(out=HERE),
        "other": f"other/{HERE}",
    }
    values, *rest = noted(
        log_dir=f"logs/{THERE}",
        args__run=f"run_{THERE}",
        args__device="cuda:1",
        number=1_764_429_100,
        key=uuid.UUID(int=2),
        device="cuda:1",
        plain__out=THERE,
        other=f"another/{THERE}",
    )
    changed = in_cell(program, put_clock_values, values | {"seen[0]": work / f"{THERE}.csv"}, *rest)
    assert program["log_dir"] == f"logs/{THERE}"
    assert (args.run, args.device) == (f"run_{THERE}", "cuda:0")
    assert program["seen"] == [work / f"{THERE}.csv"]
    assert (program["number"], program["key"]) == (1_764_429_100, uuid.UUID(int=2))
    assert (program["device"], program["other"]) == ("cuda:0", f"other/{HERE}")
    assert {slot.path for slot, _ in changed} == {"log_dir", "args.run", "seen[0]", "number", "key", "plain.out"}


def test_files_and_folders_are_renamed_and_old_names_lead_there(program: dict[str, Any], work: Path) -> None:
    program["log_dir"] = f"logs/{HERE}"
    for name in (f"logs/{HERE}/a", f"run_{HERE}/b", f"log_{HERE}.txt"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    in_cell(program, put_clock_values, *noted(log_dir=f"logs/{THERE}"))
    assert (work / "logs" / THERE / "a").read_text() == f"logs/{HERE}/a"
    assert (work / f"run_{THERE}" / "b").exists()
    assert (work / f"log_{THERE}.txt").exists()
    assert not (work / f"log_{HERE}.txt").exists()
    assert (work / "logs" / HERE).resolve() == work / "logs" / THERE


def test_a_folder_of_the_notebook_is_made(program: dict[str, Any], work: Path) -> None:
    program["log_dir"] = f"logs/{THERE}"  # its value travelled
    in_cell(program, put_clock_values, *noted(f"logs/{THERE}", log_dir=f"logs/{THERE}"))
    assert (work / "logs" / THERE).is_dir()


def test_the_variables_of_the_function_around_the_call() -> None:
    values = {"train() path": f"a_{THERE}"}
    assert train(lambda: put_clock_values(values, [], "")) == (f"a_{THERE}", f"a_{THERE}")


@pytest.mark.parametrize(
    "value",
    [f"a/{HERE}", Path(f"b_{HERE}"), datetime.datetime.now(), datetime.date.today(), uuid.uuid4(), 1_764_429_161],
)
def test_a_value_is_noted_and_comes_back_as_it_was(value: object, work: Path) -> None:
    assert is_drawn(value, "/nowhere")
    assert unpack_whole(pack_whole(value, 10_000, folder=str(work))) == value


def test_a_path_in_the_folder_of_the_notebook_is_in_that_of_the_worker(work: Path) -> None:
    there = pack_whole([f"/there/a/{HERE}", Path(f"/there/{HERE}")], 10_000, folder="/there")
    assert unpack_whole(there) == [f"{work}/a/{HERE}", work / HERE]


@pytest.mark.parametrize(
    "value", ["cuda:0", 12, True, 0.5, None, 99_999_999, pytest.param(id(object()), id="identity"), "long" * 200 + HERE]
)
def test_other_values_are_not_noted(value: object) -> None:
    assert not is_drawn(value, "/nowhere")


def test_numbers_and_objects_of_a_library_are_its_own_affair(program: dict[str, Any]) -> None:
    program["parser"] = parser = argparse.ArgumentParser(f"prog_{HERE}")
    parser.number = 1_764_429_161  # type: ignore[attr-defined]
    paths = {slot.path for slot in in_cell(program, lambda: list(slots_of_program()))}
    assert "parser.prog" in paths
    assert "parser.number" not in paths
