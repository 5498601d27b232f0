"""The distribution: what is in the wheel, that Jupyter finds it, and what must never be in the repository."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import det_native

ROOT = Path(__file__).parents[1]
FRONT_END = ROOT / "jupyter_ext"
LABEXTENSION = "@det-native/labext"
SHARED = f"share/jupyter/labextensions/{LABEXTENSION}"
WIDGET = ("det_native/display/static/live.js", "det_native/display/static/live.css")
WIDGET_LIMIT = 145_500

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def build(source: Path, target: str, folder: Path, **environment: str) -> Path:
    """Build a distribution; return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(
        command, cwd=source, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> Iterator[zipfile.ZipFile]:
    """The same, opened."""
    with zipfile.ZipFile(wheel_file) as opened:
        yield opened


@pytest.fixture(scope="module")
def installed(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, by a plain ``pip install``, and the rest from here.

    A line in a ``.pth`` file makes the packages of this environment importable there, but not its editable installs.
    """
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = next((folder / "lib").glob("python*/site-packages"))
    here = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{here}\n")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*command, "--ignore-installed", str(wheel_file)], check=True, capture_output=True)
    return python


def jupyter_says(python: Path, module: str, folder: Path) -> str:
    """Return what an extension list of Jupyter prints, far from the user's own settings."""
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "HOME")
    own = dict.fromkeys(names, str(folder)) | {"JUPYTER_PREFER_ENV_PATH": "1"}
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(python), "-m", module, "list"], env=kept | own, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return _COLOURS.sub("", done.stdout + done.stderr)


def check_both_lists(python: Path, folder: Path) -> None:
    """See that JupyterLab and Jupyter Server find our extensions in order."""
    front_end = jupyter_says(python, "jupyterlab.labextensions", folder)
    (line,) = [line for line in front_end.splitlines() if LABEXTENSION in line]
    assert f"v{det_native.__version__} enabled OK" in line
    assert "det-native" in line.partition("OK")[2]
    server = jupyter_says(python, "jupyter_server.extension.serverextension", folder)
    assert re.search(r"det_jupyter enabled", server), server
    assert re.search(rf"det_jupyter {re.escape(det_native.__version__)} OK", server), server


@pytest.mark.slow
def test_one_wheel_holds_the_three_packages_and_no_other(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    packages = {top for top in tops if not top.endswith((".dist-info", ".data"))}
    assert packages == {"det_native", "det_harness", "det_jupyter"}


@pytest.mark.slow
def test_the_wheel_holds_what_is_not_python(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert {"det_native/py.typed", "det_harness/py.typed", "det_jupyter/py.typed"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.long
@pytest.mark.slow
def test_the_example_notebooks_come_with_the_wheel_and_are_copied(
    wheel: zipfile.ZipFile, installed: Path, tmp_path: Path
) -> None:
    notebooks = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks == {name.rpartition("/")[2] for name in wheel.namelist() if "share/det_native/notebooks/" in name}
    command = [str(installed.parent / "det"), "examples", "mine"]
    for expected in ("01_quickstart.ipynb\n", "01_quickstart.ipynb (was there)\n"):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
        assert "jupyter lab mine" in done.stdout
    assert {path.name for path in (tmp_path / "mine").iterdir()} == notebooks
    (tmp_path / "mine" / "01_quickstart.ipynb").write_text("of mine")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "01_quickstart.ipynb (stays as it is: it was changed)" in done.stdout
    assert (tmp_path / "mine" / "01_quickstart.ipynb").read_text() == "of mine"


def test_one_install_command_has_what_the_notebooks_import() -> None:
    """The README's: ``pip install 'det-native[keras,torch,lab]'``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for name in ("keras", "torch", "lab") for line in project["optional-dependencies"][name]]
    names = {re.split(r"[^\w-]", line)[0] for line in [*project["dependencies"], *extras]}
    imported = {
        word.partition(".")[0]
        for path in (ROOT / "notebooks").glob("*.ipynb")
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "code"
        for word in re.findall(r"^(?:from|import) ([\w.]+)", "".join(cell["source"]), re.MULTILINE)
    }
    brought = {"sklearn": "scikit-learn", "tensorflow": "tensorflow", "det_native": "det-native"}
    wanted = {brought.get(name, name) for name in imported - set(sys.stdlib_module_names)} - {"det-native"}
    assert wanted
    assert wanted <= names


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
    # A folder `work` within another folder is no path of a machine.
    work = r"(?<![\w.*}])" + "/wo" + "rk/"
    forbidden = re.compile("|".join([work, *map(re.escape, [home, "/fa" + "rm/", index, registry])]))
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
    # The same notebooks, plain and moved, and folders of experiments; nobody imports them.
    apart = {ROOT / "tests/notebooks/loops", ROOT / "tests/determined_0_38"}
    files = [path for path in (ROOT / "tests").rglob("*.py") if not apart.intersection(path.parents)]
    names = sorted(path.name for path in files if path.name not in ("conftest.py", "__init__.py"))
    assert len(names) == len(set(names)), [name for name in names if names.count(name) > 1]


@pytest.mark.slow
def test_the_wheel_carries_the_extension_and_the_widget(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    data = next(name.split("/")[0] for name in names if ".data/" in name)
    shared = f"{data}/data/{SHARED}"
    assert {f"{shared}/package.json", f"{shared}/install.json", f"{shared}/static/style.js", *WIDGET} <= names
    assert f"{data}/data/etc/jupyter/jupyter_server_config.d/det_jupyter.json" in names
    assert len([name for name in names if "/static/remoteEntry." in name]) == 1
    assert not [name for name in names if name.endswith((".map", ".ts", ".tsbuildinfo")) or "node_modules" in name]
    assert sum(wheel.getinfo(name).file_size for name in WIDGET) < WIDGET_LIMIT


@pytest.mark.long
@pytest.mark.slow
def test_both_lists_are_in_order_after_a_plain_install(installed: Path, tmp_path: Path) -> None:
    check_both_lists(installed, tmp_path)
    code = "import det_native, det_jupyter; print(det_native.__file__, det_jupyter.__file__)"
    told = subprocess.run([installed, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert all(str(installed.parents[1]) in path for path in told.split())


@pytest.mark.long
@pytest.mark.slow
def test_the_script_that_builds_horovod_comes_with_a_plain_install(installed: Path, tmp_path: Path) -> None:
    code = "from det_native.frameworks import missing_horovod; print(missing_horovod())"
    told = subprocess.run([installed, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    environment = installed.parents[1]
    script = environment / "share" / "det_native" / "horovod.sh"
    assert f"VENV={environment} sh {script}  " in told
    assert script.read_text() == (ROOT / "tools" / "horovod.sh").read_text()


@pytest.mark.long
@pytest.mark.slow
def test_an_sdist_is_built_without_node(tmp_path: Path) -> None:
    archive = build(ROOT, "sdist", tmp_path)
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    assert not (source / "jupyter_ext" / "node_modules").exists()
    assert (source / "jupyter_ext" / "src" / "generated" / "rest.ts").is_file()
    made = build(source, "wheel", tmp_path, PATH=str(tmp_path))
    with zipfile.ZipFile(made) as wheel:
        assert set(WIDGET) <= set(wheel.namelist())
        assert any(SHARED in name for name in wheel.namelist())


@pytest.mark.long
@pytest.mark.slow
def test_a_tree_that_is_not_built_says_what_it_needs(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "tools", "jupyter_ext/package.json"):
        target = tmp_path / "tree" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile)(ROOT / name, target)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    for name in ("package-lock.json", "tsconfig.json", "tsconfig.build.json", "build-widget.mjs", "build-page.mjs"):
        shutil.copyfile(FRONT_END / name, tmp_path / "tree" / "jupyter_ext" / name)
    environment = os.environ | {"PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path / "tree", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Install Node.js" in done.stderr


@pytest.fixture
def front_end(tmp_path: Path) -> Any:
    """The front end of a tree that counts as built, by what the build hook knows of it."""
    specification = importlib.util.spec_from_file_location("build_hook", ROOT / "tools" / "build_hook.py")
    assert specification is not None
    assert specification.loader is not None
    hook = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hook)
    for name in ("package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json", "src/index.ts"):
        (tmp_path / "jupyter_ext" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "jupyter_ext" / name).write_text(name)
    for name in ("jupyter_ext/build-widget.mjs", "jupyter_ext/build-page.mjs", "tools/openapi.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for name in ("det_native/schema/rest.py", "det_native/master/api/app.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    found = hook.FrontEnd(tmp_path)
    for path in found.results:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found.stamp.write_text(found.fingerprint())
    return found


@pytest.mark.parametrize(
    "name", ["det_native/schema/rest.py", "det_native/master/api/app.py", "tools/openapi.py", "jupyter_ext/src/new.ts"]
)
def test_a_change_of_the_interface_or_the_front_end_has_it_built_again(front_end: Any, name: str) -> None:
    assert front_end.is_built()
    (front_end.root / name).write_text("changed")
    assert not front_end.is_built()


def test_what_the_build_makes_is_no_source_of_it(front_end: Any) -> None:
    (front_end.folder / "src" / "generated" / "rest.ts").write_text("made anew")
    (front_end.root / "det_native" / "schema" / "__pycache__").mkdir()
    (front_end.root / "det_native" / "schema" / "__pycache__" / "rest.cpython-311.pyc").touch()
    assert front_end.is_built()
    (front_end.folder / "src" / "generated" / "rest.ts").unlink()
    assert not front_end.is_built()


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    package = json.loads((FRONT_END / "package.json").read_text())
    lock = json.loads((FRONT_END / "package-lock.json").read_text())
    assert project == det_native.__version__ == package["version"] == lock["version"] == lock["packages"][""]["version"]
    assert package["name"] == LABEXTENSION


def test_the_lock_pins_by_hash_and_names_no_host() -> None:
    lock = json.loads((FRONT_END / "package-lock.json").read_text())
    packages: dict[str, dict[str, Any]] = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(packages) > 50
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert [name for name, entry in packages.items() if "integrity" not in entry and not entry.get("link")] == []
    hosts = [
        name
        for name, entry in packages.items()
        if "://" in json.dumps({key: value for key, value in entry.items() if key != "funding"})
    ]
    assert hosts == []
    assert "omit-lockfile-registry-resolved=true" in (FRONT_END / ".npmrc").read_text()


def test_nothing_that_is_built_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    built = re.compile(r"jupyter_ext/(labextension|lib|node_modules|src/generated)/|display/static/live|\.tsbuildinfo")
    assert [line for line in listed.stdout.splitlines() if built.search(line)] == []
