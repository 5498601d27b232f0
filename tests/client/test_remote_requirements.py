"""What another machine gets: the packages in the versions of here, and det_native itself."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

import pytest

from det_native import __version__
from det_native.client.remote import requirements
from det_native.client.remote.requirements import pinned
from det_native.client.remote.wheels import NAME, pack_wheel
from det_native.errors import ArgumentError


@pytest.fixture(scope="module", autouse=True)
def _packages_are_looked_for_once() -> Iterator[None]:
    """To read what is installed takes half a second, each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requirements, "packages_distributions", cache(packages_distributions))
        yield


def notebook(folder: Path, *cells: str) -> Path:
    """Write a notebook with these cells."""
    path = folder / "notebook.ipynb"
    found = [{"cell_type": "code", "source": [cell]} for cell in cells]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "import pandas"}, *found]}))
    return path


def plain(name: str) -> str:
    """Return the pin of a package as it is installed here."""
    return f"{name}=={version(name).partition('+')[0]}"


def test_what_the_notebook_imports_and_what_det_native_needs(tmp_path: Path) -> None:
    cells = (
        "%matplotlib inline\nimport os, sklearn.datasets as data",
        "from yaml import load\nfrom . import mine",
        "%%bash\nls (",
    )
    found = pinned(notebook(tmp_path, *cells, "import my_own_module, det_native"), ("psutil", "something==1.2"))
    assert {plain("scikit-learn"), plain("pyyaml"), plain("cloudpickle"), "something==1.2"} <= set(found)
    names = [each.partition("==")[0] for each in found]
    assert not {"pandas", "torch", "det-native", "my-own-module"} & set(names)
    assert len(names) == len(set(names))
    assert not any("+" in each for each in found)


def test_without_a_notebook_the_frameworks_of_here() -> None:
    known = requirements.packages_distributions()
    installed = {module: known[module][0] for module in ("torch", "tensorflow") if find_spec(module)}
    expected = {f"{module}=={version(name).partition('+')[0]}" for module, name in installed.items()}
    assert expected
    assert expected <= set(pinned(None, ())), "what was built for processors only, as what uses GPUs too"


def test_what_a_configuration_may_ask_for_comes_too(tmp_path: Path) -> None:
    """No cell imports the searcher's package: ``searcher.name`` asks for it."""
    pytest.importorskip("optuna", reason="optuna is not installed")
    pytest.importorskip("cmaes", reason="cmaes is not installed")
    needed = {plain("optuna"), plain("cmaes"), plain("scipy")}
    assert needed <= set(pinned(None, ()))
    assert needed <= set(pinned(notebook(tmp_path, "import numpy"), ()))


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"no-such-package==1\.0"):
        pinned(None, ("no-such-package",))
    with pytest.raises(ArgumentError, match="cannot be read as a notebook"):
        pinned(tmp_path / "none.ipynb", ())
    (tmp_path / "text.ipynb").write_text("[]")
    with pytest.raises(ArgumentError, match="cannot be read as a notebook"):
        pinned(tmp_path / "text.ipynb", ())


def test_the_wheel_has_what_runs_here(tmp_path: Path) -> None:
    pack_wheel(tmp_path / NAME)
    with zipfile.ZipFile(tmp_path / NAME) as wheel:
        assert wheel.testzip() is None
        names = set(wheel.namelist())
        metadata = wheel.read(f"det_native-{__version__}.dist-info/METADATA").decode()
        record = wheel.read(f"det_native-{__version__}.dist-info/RECORD").decode()
    assert {"det_native/client/remote/there.py", "det_harness/__init__.py", "det_jupyter/extension.py"} <= names
    assert "Name: det-native" in metadata
    assert len(record.splitlines()) == len(names)
    assert not any("__pycache__" in name for name in names)
