"""A worker takes the notebook's texts, paths and moments, in variables, attributes and names of files."""

from __future__ import annotations

import argparse
import datetime
import sys
import types
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from det_harness.program.notebook_texts import put_notebooks_texts

from det_native.heap.slots import slots_of_program
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


def noted(**values: Any) -> dict[str, Any]:
    """Return what the notebook has noted; two underscores stand for a point."""
    return {path.replace("__", "."): value for path, value in values.items()}


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
    values = noted(
        log_dir=f"logs/{THERE}",
        args__run=f"run_{THERE}",
        args__device="cuda:1",
        number=1_764_429_100,
        key=uuid.UUID(int=2),
        device="cpu",
        plain__out=THERE,
        other=f"another/{THERE}",
    )
    changed = in_cell(program, put_notebooks_texts, values | {"seen[0]": work / f"{THERE}.csv"}, ())
    assert program["log_dir"] == f"logs/{THERE}"
    assert (args.run, args.device) == (f"run_{THERE}", "cuda:0")
    assert program["seen"] == [work / f"{THERE}.csv"]
    assert (program["number"], program["key"]) == (1_764_429_100, uuid.UUID(int=2))
    assert (program["device"], program["other"]) == ("cuda:0", f"another/{THERE}")
    assert {slot.path for slot, _ in changed} == {
        "log_dir",
        "args.run",
        "seen[0]",
        "number",
        "key",
        "plain.out",
        "other",
    }


def test_files_and_folders_are_renamed_and_old_names_lead_there(program: dict[str, Any], work: Path) -> None:
    program["log_dir"] = f"logs/{HERE}"
    for name in (f"logs/{HERE}/a", f"run_{HERE}/b", f"log_{HERE}.txt"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    in_cell(program, put_notebooks_texts, noted(log_dir=f"logs/{THERE}"), ())
    assert (work / "logs" / THERE / "a").read_text() == f"logs/{HERE}/a"
    assert (work / f"run_{THERE}" / "b").exists()
    assert (work / f"log_{THERE}.txt").exists()
    assert not (work / f"log_{HERE}.txt").exists()
    assert (work / "logs" / HERE).resolve() == work / "logs" / THERE


def test_files_that_were_sent_and_those_of_both_sides_keep_their_names(program: dict[str, Any], work: Path) -> None:
    program |= {"checkpoint": "run/best_100.pt", "animals": ["cats", "dogs"], "made": "made_1.txt"}
    for name in ("run/best_100.pt", "run/new_made_1.txt", "cats/a", "dogs/b", "made_1.txt", "made_2.txt"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(name)
    values = {"checkpoint": "run/best_200.pt", "animals[0]": "dogs", "animals[1]": "cats", "made": "made_2.txt"}
    in_cell(program, put_notebooks_texts, values, ["run/best_100.pt"])
    assert (program["checkpoint"], program["animals"]) == ("run/best_200.pt", ["dogs", "cats"])
    files = {path.relative_to(work).as_posix(): path.read_text() for path in work.rglob("*") if path.is_file()}
    assert files.pop("run/new_made_2.txt") == "run/new_made_1.txt"
    assert all(path == text for path, text in files.items())


def test_a_librarys_text_is_put_right_where_the_program_has_made_its_file(program: dict[str, Any], work: Path) -> None:
    program["parser"] = parser = argparse.ArgumentParser(f"runs_{HERE}", description=f"made_{HERE}")
    (work / f"made_{HERE}").mkdir()
    in_cell(program, put_notebooks_texts, {"parser.prog": "other", "parser.description": f"made_{THERE}"}, ())
    assert (parser.prog, parser.description) == (f"runs_{HERE}", f"made_{THERE}")
    assert (work / f"made_{THERE}").is_dir()


def test_the_variables_of_the_function_around_the_call() -> None:
    values = {"train() path": f"a_{THERE}"}
    assert train(lambda: put_notebooks_texts(values, ())) == (f"a_{THERE}", f"a_{THERE}")


@pytest.mark.parametrize(
    "value",
    [f"a/{HERE}", Path(f"b_{HERE}"), datetime.datetime.now(), datetime.date.today(), uuid.uuid4(), 1_764_429_161],
)
def test_a_value_is_noted_and_comes_back_as_it_was(value: object, work: Path) -> None:
    assert unpack_whole(pack_whole(value, 10_000, folder=str(work))) == value


def test_a_path_in_the_folder_of_the_notebook_is_in_that_of_the_worker(work: Path) -> None:
    there = pack_whole([f"/there/a/{HERE}", Path(f"/there/{HERE}")], 10_000, folder="/there")
    assert unpack_whole(there) == [f"{work}/a/{HERE}", work / HERE]


@pytest.mark.parametrize(
    "value", [12, True, 0.5, None, 99_999_999, pytest.param(id(object()), id="identity"), "a" * 501]
)
def test_other_values_are_not_noted(program: dict[str, Any], value: object) -> None:
    program["value"] = value
    assert in_cell(program, lambda: list(slots_of_program())) == []


def test_numbers_and_objects_of_a_library_are_its_own_affair(program: dict[str, Any]) -> None:
    program["parser"] = parser = argparse.ArgumentParser(f"prog_{HERE}")
    parser.number = 1_764_429_161  # type: ignore[attr-defined]
    paths = {slot.path for slot in in_cell(program, lambda: list(slots_of_program()))}
    assert "parser.prog" in paths
    assert "parser.number" not in paths


def test_paths_of_the_notebooks_folder_and_of_its_machine_stay_the_workers(program: dict[str, Any], work: Path) -> None:
    """``BASE = os.getcwd()`` is the working directory of each; ``sys.executable`` may be in another place."""
    mine = {"base": str(work), "out": work / "out", "option": f"--data={work}/a.csv", "python": sys.executable}
    program |= mine | {"log": f"{work}/logs/{HERE}"}
    values = {
        "": "/home/me/project",
        "base": "/home/me/project",
        "out": Path("/home/me/project/out"),
        "option": "--data=/home/me/project/a.csv",
        "python": "/home/me/venv/bin/python",
        "log": f"/home/me/project/logs/{THERE}",
    }
    in_cell(program, put_notebooks_texts, values, ())
    assert {name: program[name] for name in mine} == mine
    assert program["log"] == f"{work}/logs/{THERE}"
