"""A directory that was written for Determined, with a TFKerasTrial: here, on the master, and as an instance."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from journey_kernel import Notebook, Script

import det_native as det
from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.long]

MODEL_DEF = '''
"""Eager execution is off, as it was for every model of TensorFlow 1."""
import tensorflow as tf

import determined as det
from determined.keras import InputData, TFKerasTrial, TFKerasTrialContext

from layers import stack


class FashionTrial(TFKerasTrial):
    def __init__(self, context: TFKerasTrialContext) -> None:
        tf.compat.v1.disable_eager_execution()
        self.context = context
        assert det.keras.TFKerasTrial is TFKerasTrial

    def session_config(self) -> tf.compat.v1.ConfigProto:
        return tf.compat.v1.ConfigProto(allow_soft_placement=True)

    def build_model(self) -> tf.keras.models.Model:
        model = self.context.wrap_model(stack(self.context.get_hparam("units")))
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    def build_training_data_loader(self) -> InputData:
        import data

        return data.rows(self.context.get_data_config()["records"])

    def build_validation_data_loader(self) -> InputData:
        return self.build_training_data_loader()
'''
LAYERS = """
import tensorflow as tf


def stack(units):
    return tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(units, "relu"), tf.keras.layers.Dense(3)])
"""
DATA = """
import numpy as np


def rows(records):
    x = np.random.default_rng(1).normal(size=(records, 6)).astype("float32")
    return x, x[:, :3].argmax(1)
"""
CONST = """
description: fashion_keras_const
data:
  records: 40
hyperparameters:
  global_batch_size: 8
  units: 4
records_per_epoch: 40
searcher:
  name: single
  metric: val_loss
  max_length:
    epochs: 2
min_validation_period:
  epochs: 1
reproducibility:
  experiment_seed: 777
entrypoint: model_def:FashionTrial
"""
SCRIPT = """
import tensorflow as tf
import det_native as det

there = det.experimental.create(config="const.yaml", context_dir=".")
here = det.experimental.create("model_def:FashionTrial", "const.yaml", context_dir=".", local=True)
print("submitted", there.id, "here", here.state, here.history, tf.executing_eagerly())
"""
KERNEL = """
import sys
import tensorflow as tf
import det_native as det
import det_native.compat
sys.path.insert(0, "fashion")
from model_def import FashionTrial
"""
INSTANCES = """
SIZE = {"global_batch_size": 8}
made = det.experimental.create_trial_instance("model_def:FashionTrial", "", "fashion/const.yaml", {"units": 5, **SIZE})
same = FashionTrial(FashionTrial.trial_context_class.from_config("fashion/const.yaml"))
model = made.build_model()
print(tf.executing_eagerly(), model.layers[0].units, same.build_model().layers[0].units)
print(len(model.fit(*made.build_training_data_loader(), verbose=0).history["loss"]))
"""
ONE_BATCH = """
checked = det.experimental.test_one_batch(trial_class=FashionTrial, config="fashion/const.yaml")
print(tf.executing_eagerly(), checked.state, len(checked.trials[0].metrics("training")))
"""


CACHED = """
import tensorflow as tf
from determined.keras import TFKerasTrial

import data
from layers import stack


class CachedTrial(TFKerasTrial):
    def __init__(self, context):
        self.context = context

    def build_model(self):
        model = self.context.wrap_model(stack(4))
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    def build_training_data_loader(self):
        @self.context.experimental.cache_train_dataset("rows of fashion", "v1")
        def rows():
            return tf.data.Dataset.from_tensor_slices(data.rows(40))

        return rows().batch(8)

    def build_validation_data_loader(self):
        return data.rows(40)
"""
SUBMIT_CACHED = """
import det_native as det

config = {"hyperparameters": {"global_batch_size": 8}, "searcher": {"metric": "val_loss", "max_length": {"batches": 5}}}
experiment = det.experimental.create("model_def:CachedTrial", config, context_dir=".")
print("submitted", experiment.wait().state)
"""


def write_directory(folder: Path) -> Path:
    folder.mkdir()
    for name, content in {"model_def": MODEL_DEF, "layers": LAYERS, "data": DATA}.items():
        (folder / f"{name}.py").write_text(content)
    (folder / "const.yaml").write_text(CONST)
    return folder


def test_from_a_script(tmp_path: Path, script: Script, at_home: Home) -> None:
    folder = write_directory(tmp_path / "fashion")
    (folder / "run.py").write_text(SCRIPT)
    printed = script("run.py", folder=folder).stdout
    [(number, state, history, eager)] = re.findall(r"submitted (\d+) here (\w+) (\{.*\}) (\w+)", printed)
    assert (state, eager) == ("Completed", "True")
    experiment = det.attach(int(number)).wait()
    assert experiment.state == "Completed", str(experiment.logs())
    assert experiment.history == ast.literal_eval(history), "the same training here and there"
    assert experiment.trials[0].hparams["units"] == 4


def test_instances_and_quick_checks_leave_a_kernel_eager(notebook: Notebook) -> None:
    write_directory(notebook.folder / "fashion")
    notebook.run(KERNEL)
    ran = notebook.run(INSTANCES)
    assert "True 5 4\n1\n" in ran.stdout
    said = "FashionTrial: tf.compat.v1.disable_eager_execution() is passed over, the model is built eagerly."
    assert ran.stderr.count(said) == 2
    assert "create_trial_instance() is deprecated" in ran.stderr
    ran = notebook.run(ONE_BATCH)
    assert "the trial starts over in a process of its own." in ran.stdout
    assert "True Completed 1" in ran.stdout


def test_what_a_trial_caches_lies_in_the_masters_home(tmp_path: Path, script: Script, at_home: Home) -> None:
    folder = write_directory(tmp_path / "fashion")
    (folder / "model_def.py").write_text(CACHED)
    (folder / "run.py").write_text(SUBMIT_CACHED)
    assert "submitted Completed" in script("run.py", folder=folder).stdout
    assert list(at_home.datasets.rglob("records.tfrecord")), "DET_HOME holds on workers"
