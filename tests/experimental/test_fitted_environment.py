"""A bundle beside the Python of the workers: what is refused, what is told, and what is installed for its trials."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tiny_wheels import make_wheel, unpack_wheel

from det_native._version import PROTOCOL
from det_native.capture.model import Bundle
from det_native.errors import WorkerEnvironmentError
from det_native.experimental.worker_environment import fit_to_workers
from det_native.master.launch.packages import WorkerPackages
from det_native.master.runtime_file import announce
from det_native.schema import routes
from det_native.schema.home import Home
from det_native.schema.manifests import BundleManifest, Interpreter, Program, ValueEntry
from det_native.schema.worker_environment import EnvironmentAnswer, EnvironmentQuestion, PackageUse

NUMPY = PackageUse("numpy", "[1]")
HERE = version("numpy")


class Answering:
    """A session whose master says this of its workers."""

    url = "http://elsewhere"
    route = None

    def __init__(self, python: str, **modules: dict[str, str]) -> None:
        self.answer = EnvironmentAnswer(python=python, executable="/env/bin/python", modules=modules)

    def call(self, route: routes.Route[Any, Any], body: EnvironmentQuestion) -> EnvironmentAnswer:
        assert route is routes.ASK_ENVIRONMENT
        return self.answer


def bundle(*values: ValueEntry) -> Bundle:
    interpreter = Interpreter(python=".".join(map(str, sys.version_info[:3])), executable="")
    program = Program(kind="cells", framework="torch")
    return Bundle(BundleManifest(protocol=PROTOCOL, interpreter=interpreter, program=program, values=values), {}, [])


def test_another_python_is_refused_for_what_is_pickled_and_told_for_source() -> None:
    other = Answering("3.9.1", numpy={"numpy": "0.1"})
    pickled = ValueEntry(name="weights", sha256="0" * 64, size=1)
    with pytest.raises(WorkerEnvironmentError, match=r"Python 3\.9, and pickled values are to be sent \(weights\)"):
        fit_to_workers(other, bundle(pickled), [], None)  # type: ignore[arg-type]
    fitted = fit_to_workers(other, bundle(), [NUMPY], None)  # type: ignore[arg-type]
    assert "have Python 3.9" in fitted.warnings[0]
    assert f"have numpy 0.1, here it is {HERE}" in fitted.warnings[1]


def test_auto_lists_what_differs_and_a_list_is_taken_as_it_is() -> None:
    same = ".".join(map(str, sys.version_info[:3]))
    lacking = Answering(same)
    fitted = fit_to_workers(lacking, bundle(), [NUMPY], "auto")  # type: ignore[arg-type]
    assert fitted.bundle.manifest.packages == (f"numpy=={HERE}",)
    assert not fitted.warnings
    listed = fit_to_workers(lacking, bundle(), [NUMPY], ["NumPy>1"])  # type: ignore[arg-type]
    assert listed.bundle.manifest.packages == ("NumPy>1",)
    with pytest.raises(WorkerEnvironmentError, match=f"pip install numpy=={re.escape(HERE)}"):
        fit_to_workers(lacking, bundle(), [NUMPY], ["pandas"])  # type: ignore[arg-type]
    optional = PackageUse("numpy", "[1]", required=False)
    told = fit_to_workers(lacking, bundle(), [optional], None)  # type: ignore[arg-type]
    assert "do not have numpy" in told.warnings[0]


def test_machines_of_a_cluster_are_asked_though_the_master_is_in_this_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_HOME", str(tmp_path))
    monkeypatch.setattr(Answering, "url", "unix:/here")
    own = bundle()
    interpreter = own.manifest.interpreter.model_copy(update={"executable": sys.executable})
    own = replace(own, manifest=own.manifest.model_copy(update={"interpreter": interpreter}))
    lacking = Answering(".".join(map(str, sys.version_info[:3])))
    lacking.answer.place = "the Ray cluster"
    announce(Home(tmp_path), "unix:/here")
    assert not fit_to_workers(lacking, own, [NUMPY], None).warnings  # type: ignore[arg-type]
    announce(Home(tmp_path), "unix:/here", launcher="ray")
    with pytest.raises(WorkerEnvironmentError, match="imports numpy, which the workers of the Ray cluster do not have"):
        fit_to_workers(lacking, own, [NUMPY], None)  # type: ignore[arg-type]


def test_ids_of_bundles_without_packages_are_what_they_were() -> None:
    manifest = bundle().manifest
    assert b"packages" not in manifest.canonical().replace(b'"packages":{}', b"")
    assert manifest.model_copy(update={"packages": ("a",)}).id != manifest.id


@pytest.mark.slow
def test_another_interpreter_tells_what_it_has_and_again_once_something_is_installed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    [packages] = (tmp_path / "env").glob("lib/python3*/site-packages")
    places = [place for place in sys.path if "site-packages" in place]
    (packages / "all.pth").write_text("".join(f"import site; site.addsitedir({place!r})\n" for place in places))
    known = WorkerPackages()
    installed, modules = known.modules(str(python), ["numpy", "tiny_pack", "json"])
    assert installed.python == ".".join(map(str, sys.version_info[:3]))
    assert set(modules) == {"numpy", "json"}
    unpack_wheel(make_wheel(tmp_path, "tiny_pack", "1.0"), packages)
    assert known.modules(str(python), ["tiny_pack"])[1] == {"tiny_pack": {"tiny-pack": "1.0"}}
