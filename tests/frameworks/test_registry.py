"""Descriptions of frameworks: found in a table or by entry points, read without importing a framework."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from installed_toy import install_toy, toy_in_this_process
from pydantic import ValidationError

from det_native.errors import MissingDependencyError
from det_native.frameworks import (
    Description,
    find_framework,
    framework_taking,
    framework_with_init,
    get_framework,
    known_frameworks,
    registry,
    resolve,
    trial_class_names,
)
from det_native.schema.manifests import FRAMEWORK_NAME, Program

ROOT = Path(__file__).parents[2]


def test_ours_are_declared_as_those_of_others_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][registry.GROUP] == registry.BUILT_IN


@pytest.mark.parametrize("name", sorted(registry.BUILT_IN))
def test_every_reference_of_ours_names_a_module_that_is_there(name: str) -> None:
    described = get_framework(name)
    assert re.match(FRAMEWORK_NAME, described.name)
    references = [described.harness, described.trial_class, *described.calls, described.init]
    for reference in filter(None, references):
        module, _, inner = reference.partition(":")
        root = ROOT / "harness" if module.startswith("det_harness") else ROOT
        source = root.joinpath(*module.split(".")).with_suffix(".py").read_text()
        assert not inner or f"class {inner}" in source, reference


def test_asking_for_names_and_titles_imports_nothing_of_theirs(tmp_path: Path) -> None:
    code = """
import sys
from det_native.frameworks import known_frameworks
print([(one.name, one.title) for one in known_frameworks()])
print([name for name in ("torch", "tensorflow", "numpy", "pydantic", "toy_framework.trial") if name in sys.modules])
"""
    environment = {"PYTHONPATH": str(install_toy(tmp_path))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    of_tensorflow = [(name, "TensorFlow") for name in ("keras", "estimator", "tf_estimator")]
    expected = [("torch", "PyTorch"), *of_tensorflow, ("core", "the Core API"), ("toy", "Toy")]
    assert done.stdout.splitlines() == [str(expected), "[]"], done.stderr


def test_ours_are_found_without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source checkout on PYTHONPATH has none; nor are they searched."""

    def metadata_are_read() -> dict[str, str]:
        raise AssertionError

    monkeypatch.setattr(registry, "_declared", metadata_are_read)
    for name in registry.BUILT_IN:
        assert get_framework(name).name == name
    room = framework_with_init("pytorch")
    assert room is not None
    assert room.name == "torch"


def test_one_that_is_not_known_is_refused_with_those_that_are() -> None:
    assert find_framework("jax") is None
    with pytest.raises(
        MissingDependencyError,
        match=r"'jax' is no framework .* it knows: core, estimator, keras, tf_estimator, torch\. Install",
    ):
        get_framework("jax")


def test_one_that_is_installed_later_is_found(tmp_path: Path) -> None:
    assert find_framework("toy") is None
    with toy_in_this_process(tmp_path):
        assert get_framework("toy").title == "Toy"
        assert "toy_framework.trial" not in sys.modules
        trial_class = resolve(get_framework("toy").trial_class)
        assert isinstance(trial_class, type)
        assert framework_taking(type("Mine", (trial_class,), {})) is get_framework("toy")
        assert trial_class_names() == "PyTorchTrial or a TFKerasTrial or an EstimatorTrial or a ToyTrial"
    assert find_framework("toy") is None


def test_a_broken_one_is_left_out_and_named_when_it_is_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with toy_in_this_process(tmp_path), caplog.at_level(logging.WARNING, "det_native"):
        (tmp_path / "site-packages" / "toy_framework" / "description.py").write_text("import not_there\n")
        assert [one.name for one in known_frameworks()] == list(registry.BUILT_IN)
        sentence = "The framework 'toy' is installed, but its entry point toy_framework.description:DESCRIPTION"
        assert caplog.messages[0].startswith(sentence)
        with pytest.raises(MissingDependencyError, match="No module named 'not_there'"):
            get_framework("toy")


def test_what_is_no_trial_of_any_is_taken_by_none() -> None:
    assert framework_taking(3) is None
    assert framework_taking(dict) is None


@pytest.mark.parametrize("name", ["", "Torch", "1st", "torch;", "a" * 17, "../torch", "torch\n"])
def test_a_manifest_takes_no_name_that_could_be_none(name: str) -> None:
    with pytest.raises(ValidationError, match="framework"):
        Program(kind="cells", framework=name)


def test_the_title_of_a_trial_class_is_what_users_write() -> None:
    assert get_framework("torch").trial_class_title == "det.pytorch.PyTorchTrial"
    theirs = Description("toy", "Toy", "toy", "toy", api="toy_framework", trial_class="toy_framework.trial:ToyTrial")
    assert theirs.trial_class_title == "toy_framework.ToyTrial"
