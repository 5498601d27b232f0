"""The distribution: what is in the wheel, and what must never be in the repository."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.mark.slow
def test_one_wheel_holds_the_three_packages_and_no_other(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"det_native", "det_harness", "det_jupyter"}


@pytest.mark.slow
def test_the_wheel_holds_what_is_not_python(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert {"det_native/py.typed", "det_harness/py.typed", "det_jupyter/py.typed"} <= names
    assert any(name.startswith("det_native/master/store/migrations/versions/") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_every_python_file_of_the_source_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    roots = [ROOT, ROOT / "harness", ROOT / "jupyter_ext"]
    packages = ["det_native", "det_harness", "det_jupyter"]
    expected = {
        path.relative_to(root).as_posix()
        for root, package in zip(roots, packages, strict=True)
        for path in (root / package).rglob("*.py")
    }
    assert expected <= set(wheel.namelist())


def test_metadata_names_the_command_and_an_extra_for_each_framework_and_engine() -> None:
    distribution = metadata.distribution("det-native")
    assert [point.value for point in distribution.entry_points if point.name == "det"] == [
        "det_native.client.command:main"
    ]
    extras = set(distribution.metadata.get_all("Provides-Extra") or [])
    assert {"torch", "keras", "estimator", "horovod", "ray", "postgres", "s3", "lab"} <= extras


def _tracked_text_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.is_file() and path.suffix not in {".png", ".ico"}]


def test_no_machine_path_and_no_registry_host_is_committed() -> None:
    # Written in pieces, so that this file does not contain them.
    home, index, registry = "/ro" + "ot/", "file:///" + "opt/", "registry." + "npmjs"
    forbidden = re.compile("|".join(map(re.escape, [home, "/wo" + "rk/", "/fa" + "rm/", index, registry])))
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in _tracked_text_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if forbidden.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_large_artefact_is_committed() -> None:
    large = [str(path.relative_to(ROOT)) for path in _tracked_text_files() if path.stat().st_size > 1_000_000]
    assert not large


def test_no_two_test_files_share_a_name() -> None:
    names = sorted(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert len(names) == len(set(names)), [name for name in names if names.count(name) > 1]
