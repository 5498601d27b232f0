"""``python train.py``: the script, its arguments and the files that it uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """\
import json, sys
from pathlib import Path
from det_native.capture.call import capture_call
from det_native.errors import DetError
import helper

OPTIONS = json.loads(sys.argv[1])


def fit(last):
    try:
        return capture_call("fit", framework="keras", **OPTIONS)
    except DetError as error:
        print("FOUND" + json.dumps({"error": f"{type(error).__name__}: {error}"}))
        sys.exit()


table = Path("table.csv")
for step in range(2):
    capture = fit(step)
print("FOUND" + json.dumps({
    "program": capture.program.model_dump(mode="json"),
    "files": [file.target for file in capture.files],
}))
"""


def _run(folder: Path, *script: str, arguments: tuple[str, ...] = (), **options: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, *script, json.dumps(options), "--lr", "0.1", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert "FOUND" in done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.split("FOUND", 1)[1])
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "helper.py").write_text("X = 1\n")
    (folder / "table.csv").write_text("a\n")
    (folder / "stray.txt").write_text("not named")
    return folder


def test_the_script_with_its_arguments_and_files(project: Path) -> None:
    found = _run(project, "train.py")
    assert found["program"]["kind"] == "script"
    assert found["program"]["command"] == ["train.py", "{}", "--lr", "0.1"]
    assert sorted(found["files"]) == ["helper.py", "table.csv", "train.py"]
    lines = SCRIPT.splitlines()
    assert found["program"]["call"] == {
        "kind": "fit",
        "cell": None,
        "file": "train.py",
        "line": 1 + next(i for i, line in enumerate(lines) if "return capture_call" in line),
        "column": 15,
        "occurrence": 2,
        "running": None,
        "running_line": None,
    }


def test_files_that_the_arguments_name_travel(project: Path) -> None:
    (project / "d.txt").write_text("1")
    for arguments in (("--file", "d.txt"), ("--file=d.txt",)):
        assert "d.txt" in _run(project, "train.py", arguments=arguments)["files"]
    assert "d.txt" in _run(project, "train.py", command=["train.py", "d.txt"])["files"]


def test_a_context_directory_is_sent_whole_and_paths_are_relative_to_it(project: Path) -> None:
    found = _run(project.parent, "project/train.py", context_dir=str(project.parent))
    assert found["program"]["command"][0] == "project/train.py"
    assert found["program"]["call"]["file"] == "project/train.py"
    assert "project/train.py" not in found["files"]


def test_a_file_that_a_context_directory_leaves_out_is_sent_if_it_is_named(project: Path) -> None:
    (project / ".env").write_text("KEY=1")
    found = _run(project, "train.py", context_dir=str(project), include=[str(project / ".env")])
    assert found["files"] == [".env"]
    assert _run(project, "train.py", context_dir=str(project), include=[str(project)])["files"] == []


def test_a_script_outside_the_context_directory_is_refused(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    found = _run(project, "train.py", context_dir=str(other))
    assert found["error"].startswith("ArgumentError: context_dir is")
    assert "does not lie in it" in found["error"]


def test_a_command_is_sent_with_what_it_imports_from_pythonpath(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no include= to name it by; a script that makes the call itself has."""
    (tmp_path / "library" / "net").mkdir(parents=True)
    (tmp_path / "library" / "net" / "__init__.py").write_text("import layers\n")
    (tmp_path / "library" / "layers.py").write_text("X = 1\n")
    (tmp_path / "library" / "unused.py").write_text("X = 1\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'library'}:{os.environ.get('PYTHONPATH', '')}")
    (project / "other.py").write_text("import net\n")
    found = _run(project, "train.py", command=["other.py"], context_dir=str(project))
    assert sorted(found["files"]) == ["layers.py", "net/__init__.py"]
    (project / "train.py").write_text(f"import net\n{SCRIPT}")
    assert "Add it: init(..., include=" in _run(project, "train.py")["error"]


def test_a_command_names_another_script(project: Path) -> None:
    (project / "other.py").write_text("import helper\n")
    found = _run(project, "train.py", command=["python", "other.py", "--fast"])
    assert found["program"]["command"] == ["other.py", "--fast"]
    assert found["program"]["call"] is None
    assert (
        "ArgumentError: command names the script 'none.py'" in _run(project, "train.py", command=["none.py"])["error"]
    )


def test_secrets_in_scripts_are_not_sent(project: Path) -> None:
    (project / "helper.py").write_text("password = 'correct-horse'\n")
    error = _run(project, "train.py")["error"]
    assert "helper.py, line 1: `password` holds a string that looks like a secret" in error
    assert "horse" not in error


def test_a_module_that_imports_relatively_is_refused_with_the_way_out(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("X = 1\n")
    (package / "train.py").write_text(SCRIPT.replace("import helper\n", "from . import helper\n"))
    found = _run(tmp_path, "-m", "pack.train")
    assert "pack.train" in found["error"]
    assert "train.py, line 5: a relative import works here, as `python -m pack.train`" in found["error"]
    assert "a script beside the folder 'pack'" in found["error"]
