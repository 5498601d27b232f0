"""A script of TensorFlow that knows nothing of det_native: it trains a small model by ``train_and_evaluate()``.

The one thing that is the test's is the gate, a port at which a step stops, in a hook of the script's own.
"""

UNCHANGED = """
import argparse
import json
import os
import socket
import sys

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--every", type=int, default=4)
parser.add_argument("--stop", default="")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--model_dir")
arguments, _ = parser.parse_known_args()

generator = np.random.default_rng(5)
records = generator.normal(size=(60, 4)).astype("float32")
labels = records[:, :3].argmax(1)


def data(size):
    return tf.data.Dataset.from_tensor_slices(({"x": records}, labels)).repeat().shuffle(60).batch(size)


def model_fn(features, labels, mode):
    logits = tf.compat.v1.layers.dense(features["x"], 3)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, 1))
    tf.compat.v1.summary.scalar("size", tf.shape(logits)[0])
    step = tf.compat.v1.train.get_global_step()
    train_op = tf.compat.v1.train.AdagradOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy})


class Stops(tf.estimator.SessionRunHook):
    stopped_in = 0  # the process: a hook that goes on from a checkpoint has what it had there

    def begin(self):
        self.step = tf.compat.v1.train.get_global_step()

    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs(self.step)

    def after_run(self, run_context, run_values):
        task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
        role = task.get("type", "")
        wanted = arguments.stop.removeprefix(role)
        if self.stopped_in != os.getpid() and wanted.isdigit() and run_context.session.run(self.step) >= int(wanted):
            self.stopped_in = os.getpid()
            with socket.create_connection(("127.0.0.1", arguments.port)) as line:
                line.sendall(f"{os.getpid()} {role}\\n".encode())
                line.recv(1)


def receiver():
    given = {"x": tf.compat.v1.placeholder(tf.float32, [None, 4])}
    return tf.estimator.export.ServingInputReceiver(given, given)


config = tf.estimator.RunConfig(save_checkpoints_steps=arguments.every)
estimator = tf.estimator.Estimator(model_fn, arguments.model_dir, config=config)
train_spec = tf.estimator.TrainSpec(lambda: data(10), max_steps=arguments.steps, hooks=[Stops()])
exporter = tf.estimator.FinalExporter("last", receiver)
eval_spec = tf.estimator.EvalSpec(
    lambda: data(20), steps=3, exporters=exporter, start_delay_secs=0, throttle_secs=int("TF_CONFIG" in os.environ)
)
result = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
print("eager:", tf.executing_eagerly(), "returned:", result)
"""
