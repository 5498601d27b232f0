"""Every name of the lists in ``docs/names`` is there and has its test."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from documented_names import NAMES, entries, missing, names_of_document, table, unproved  # noqa: E402

SOURCES = sorted(NAMES.glob("*.toml"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_table_has_every_name_of_the_list(source: Path) -> None:
    rows = [line.split("`")[1] for line in table(source).splitlines() if line.startswith("| `")]
    assert rows == [entry.name for entry in entries(source)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_name_has_a_test(source: Path) -> None:
    listed = entries(source)
    assert len({entry.name for entry in listed}) == len(listed)
    assert [problem for problem in map(unproved, listed) if problem] == []


@pytest.fixture(scope="module")
def frameworks() -> None:
    """What the names need, imported before a test does: TensorFlow sets variables of the environment for good."""
    importlib.import_module("tensorflow")


@pytest.mark.slow
@pytest.mark.usefixtures("frameworks")
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_name_is_there_with_its_parameters(source: Path) -> None:
    listed = [entry for entry in entries(source) if entry.is_looked_up]
    assert [problem for problem in map(missing, listed) if problem] == []


def test_names_are_found_in_a_document() -> None:
    text = (
        "class determined.pytorch.Reducer\n\nAVG\nabstract reset() → None\n"
        "class Mine(PyTorchTrial):\n    def f(self):\n"
        "class StepMode\nwrap_model(model: nn.Module) → nn.Module\nGradient Clipping\n"
    )
    assert list(names_of_document(text)) == ["Reducer", "AVG", "reset", "StepMode", "wrap_model"]
    text = (
        "determined.keras.TFKerasTrial\n¶\n-\nclass\ndetermined.keras.\nTFKerasTrial\n(trial_context: Any)¶ trials\n"
        "abstract\nbuild_model\n() → tf.keras.Model¶ Defines\nUsage Examples\nDisregard\n"
    )
    assert list(names_of_document(text)) == ["TFKerasTrial", "build_model"]
