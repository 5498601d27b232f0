"""A script of TensorFlow in the cells of a notebook, unchanged, and TensorBoard below it, through Jupyter's server."""

from __future__ import annotations

import re

import pytest
from browser_parts import Keep, Lab, Opened
from playwright.sync_api import expect
from training_notebook import write_notebook

pytestmark = [pytest.mark.slow, pytest.mark.long]

BEGIN = """
import det_native as det
context = det.experimental.estimator.init({"name": "of old"}, local=True)
"""
# As it stands in books of the time of TensorFlow 1.
UNCHANGED = """
from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow.compat.v1 as tf

tf.logging.set_verbosity(tf.logging.ERROR)
records = np.random.RandomState(1).normal(size=[60, 4]).astype(np.float32)
labels = (records.sum(axis=1) > 0).astype(np.int32)

train_input_fn = tf.estimator.inputs.numpy_input_fn(
    x={"x": records}, y=labels, batch_size=10, num_epochs=None, shuffle=True
)
eval_input_fn = tf.estimator.inputs.numpy_input_fn({"x": records}, labels, num_epochs=1, shuffle=False)

classifier = tf.estimator.DNNClassifier(
    hidden_units=[8],
    feature_columns=[tf.feature_column.numeric_column("x", shape=[4])],
    optimizer=tf.train.AdagradOptimizer(0.1),
    config=tf.estimator.RunConfig(model_dir="model", save_checkpoints_steps=100, save_summary_steps=10),
)
train_spec = tf.estimator.TrainSpec(input_fn=train_input_fn, max_steps=300)
eval_spec = tf.estimator.EvalSpec(input_fn=eval_input_fn, steps=None, throttle_secs=0)
metrics, exports = tf.estimator.train_and_evaluate(classifier, train_spec, eval_spec)
print("accuracy", metrics["accuracy"], "at step", metrics["global_step"])
"""
BOARD = "board = context.experiment.tensorboard()\nboard"


def test_tensorboard_stands_under_the_cell(lab_alone: Lab, opened: Opened, keep: Keep) -> None:
    screen = opened(lab_alone)
    screen.open(write_notebook(lab_alone.root / "old.ipynb", BEGIN, UNCHANGED, BOARD, "board.close()"))
    screen.run(0, 1)
    expect(screen.cell(1).locator(".jp-OutputArea").first).to_contain_text(re.compile(r"accuracy [01]\.\d+ at step"))
    screen.run(2)
    screen.show(2)
    board = screen.cell(2).frame_locator("iframe")
    expect(board.locator("body")).to_contain_text("trial-1")
    expect(board.locator("card-view, tf-scalar-card").first).to_be_visible()
    keep(screen, "tensorboard")
    screen.run(3)
