# train_and_evaluate() of TensorFlow itself with an exporter; below, the estimator is evaluated, the SavedModel and the checkpoints are found by glob.
# same: accuracy, probabilities, names, latest, sorted(os.listdir("iris_model/export"))
# %%
import os, glob
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
import det_native as det
# %%
iris = load_iris()
x_train, x_test, y_train, y_test = train_test_split(iris.data.astype("float32"), iris.target, random_state=0)

def input_fn(x, y, epochs=None, batch_size=16):
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
    return dataset.repeat(epochs).batch(batch_size)

def serving_input_receiver_fn():
    features = {"x": tf.compat.v1.placeholder(tf.float32, [None, 4], name="x")}
    return tf.estimator.export.ServingInputReceiver(features, features)
# %%
context = det.experimental.estimator.init()
columns = [tf.feature_column.numeric_column("x", shape=(4,))]
estimator = tf.estimator.DNNClassifier(
    hidden_units=[12], feature_columns=columns, n_classes=3, model_dir="iris_model",
    optimizer=lambda: tf.keras.optimizers.legacy.Adam(0.02),
    config=tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=20, save_summary_steps=10),
)
exporter = tf.estimator.FinalExporter("final", serving_input_receiver_fn)
train_spec = tf.estimator.TrainSpec(lambda: input_fn(x_train, y_train), max_steps=40)
eval_spec = tf.estimator.EvalSpec(lambda: input_fn(x_test, y_test, 1), steps=None, exporters=exporter, start_delay_secs=0, throttle_secs=0)
tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
# %%
accuracy = float(estimator.evaluate(lambda: input_fn(x_test, y_test, 1))["accuracy"])
assert accuracy > 0.6
# %%
export_dir = sorted(glob.glob("iris_model/export/final/*"))[-1]
served = tf.saved_model.load(export_dir)
probabilities = served.signatures["predict"](x=tf.constant(x_test))["probabilities"].numpy()
assert abs((probabilities.argmax(1) == y_test).mean() - accuracy) < 1e-6
# %%
latest = os.path.relpath(tf.train.latest_checkpoint("iris_model"))
names = [name for name, _ in tf.train.list_variables(latest)]
