# TensorBoard's callback into a folder named by the time, and a writer of the callback's own; the event files are read back below, by two readers.
# put right
# same: history.history, tags, losses, images, len(records), runs
# %%
import datetime, os
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_iris
import det_native as det

context = det.experimental.keras.init({"description": "iris"})
tf.keras.utils.set_random_seed(2)
# %%
iris = load_iris()
x, y = (iris.data - iris.data.mean(0)) / iris.data.std(0), iris.target
def create_model():
    return tf.keras.models.Sequential([
        tf.keras.layers.Input((4,)),
        tf.keras.layers.Dense(16, activation="relu"),
        tf.keras.layers.Dense(3, activation="softmax"),
    ])
# %%
log_dir = "logs/fit/" + datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
tensorboard_callback = tf.keras.callbacks.TensorBoard(log_dir=log_dir, histogram_freq=1)

class Rates(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.writer = tf.summary.create_file_writer(log_dir + "/rates")

    def on_epoch_end(self, epoch, logs=None):
        with self.writer.as_default():
            tf.summary.scalar("learning rate", self.model.optimizer.learning_rate, step=epoch)
            tf.summary.image("weights", tf.reshape(self.model.layers[0].kernel, (1, 4, 16, 1)), step=epoch)

    def on_train_end(self, logs=None):
        self.writer.close()
# %%
model = context.wrap_model(create_model())
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x=x, y=y, epochs=4, validation_split=0.2, callbacks=[tensorboard_callback, Rates()])
# %%
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
accumulator = EventAccumulator(os.path.join(log_dir, "train"))
accumulator.Reload()
tags = accumulator.Tags()["tensors"]
losses = [float(tf.make_ndarray(event.tensor_proto)) for event in accumulator.Tensors("epoch_loss")]
print(tags, losses)
assert np.allclose(losses, history.history["loss"])
# %%
import glob
records = []
for path in sorted(glob.glob("logs/fit/*/rates/events*")):
    for record in tf.data.TFRecordDataset(path):
        event = tf.compat.v1.Event.FromString(record.numpy())
        records += [(value.tag, event.step) for value in event.summary.value]
images = [step for tag, step in records if tag == "weights"]
runs = sorted(os.path.relpath(root, log_dir) for root, _, files in os.walk("logs") if files)
