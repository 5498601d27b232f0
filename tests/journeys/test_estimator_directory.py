"""The digits of ``examples/mnist_estimator``: trained from the shell, as a Determined directory is."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from journey_kernel import Script

from det_native.schema.loading import load_config

pytestmark = [pytest.mark.slow, pytest.mark.long]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mnist_estimator"
SERVED = """
import sys
import tensorflow as tf
from sklearn.datasets import load_digits
assert not any(name.startswith(("det_native", "det_harness", "determined")) for name in sys.modules)
images, labels = load_digits(return_X_y=True)
served = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
found = served(image=tf.constant(images / 16.0, tf.float32))["class"].numpy()
print("right:", (found == labels).mean())
"""


def trained(script: Script, folder: Path, config: str, *words: str) -> str:
    """Return what ``det experiment create`` prints."""
    shutil.copytree(EXAMPLE, folder / "mnist_estimator", ignore=shutil.ignore_patterns("__pycache__"))
    run = ("-m", "det_native.client.command", "experiment", "create", f"mnist_estimator/{config}", "mnist_estimator")
    return script(*run, *words, folder=folder).stdout


def test_it_has_the_files_of_determineds_example_which_are_valid() -> None:
    names = {"README.md", "adaptive-advanced.yaml", "adaptive.yaml", "const.yaml", "distributed.yaml", "model_def.py"}
    assert {path.name for path in EXAMPLE.iterdir() if path.is_file()} == names
    for path in EXAMPLE.glob("*.yaml"):
        assert load_config(yaml.safe_load(path.read_text())).entrypoint == "model_def:MNistTrial"


def test_the_digits_are_learnt_and_served_elsewhere(script: Script, tmp_path: Path) -> None:
    printed = trained(script, tmp_path, "const.yaml", "--follow")
    number = re.findall(r"Experiment (\d+) is Completed\.", printed)[0]
    det = ("-m", "det_native.client.command")
    [best] = json.loads(script(*det, "checkpoint", "list", number, "--best", "1", "--json", folder=tmp_path).stdout)
    script(*det, "checkpoint", "download", best["uuid"], "-o", "fetched", folder=tmp_path)
    assert "batches in this run" in (tmp_path / "fetched/notes.txt").read_text()
    (saved,) = (tmp_path / "fetched/digits").iterdir()
    right = script("-c", SERVED, str(saved), folder=tmp_path).stdout
    assert float(right.partition("right:")[2]) > 0.9


def test_the_digits_are_learnt_on_two_slots(script: Script, tmp_path: Path) -> None:
    printed = trained(script, tmp_path, "distributed.yaml", "--follow", "--config", "searcher.max_length=20")
    assert re.search(r"Experiment \d+ is Completed\.", printed)
