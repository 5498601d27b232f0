# A loss and a metric of one's own beside the import of TensorFlow, a Lambda layer, a seed.
# plain: the same losses
# %%
import numpy as np
import tensorflow as tf
import det_native as det
from functools import partial

tf.keras.utils.set_random_seed(13)

def focal_loss(gamma=2.0):
    def loss(y_true, y_pred):
        y_true = tf.one_hot(tf.cast(tf.reshape(y_true, [-1]), tf.int32), 10)
        y_pred = tf.clip_by_value(y_pred, 1e-7, 1.0)
        return -tf.reduce_sum(y_true * tf.pow(1 - y_pred, gamma) * tf.math.log(y_pred), axis=-1)
    return loss

class MacroRecall(tf.keras.metrics.Metric):
    def __init__(self, classes=10, name="recall", **kwargs):
        super().__init__(name=name, **kwargs)
        self.classes = classes
        self.right = self.add_weight(name="right", shape=(classes,), initializer="zeros")
        self.all = self.add_weight(name="all", shape=(classes,), initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels = tf.cast(tf.reshape(y_true, [-1]), tf.int32)
        hits = tf.cast(tf.equal(labels, tf.argmax(y_pred, -1, output_type=tf.int32)), tf.float32)
        self.right.assign_add(tf.math.unsorted_segment_sum(hits, labels, self.classes))
        self.all.assign_add(tf.math.unsorted_segment_sum(tf.ones_like(hits), labels, self.classes))

    def result(self):
        return tf.reduce_mean(tf.math.divide_no_nan(self.right, self.all))

    def reset_state(self):
        for variable in (self.right, self.all):
            variable.assign(tf.zeros_like(variable))

Conv = partial(tf.keras.layers.Conv2D, kernel_size=3, padding="same", activation="relu")
# %%
from sklearn.datasets import load_digits
digits = load_digits()
x_train, y_train = digits.images[:1500, ..., None], digits.target[:1500]
x_test, y_test = digits.images[1500:, ..., None], digits.target[1500:]
# %%
context = det.experimental.keras.init(config={"description": "focal loss"})
tf.keras.utils.set_random_seed(13)
inputs = tf.keras.Input((8, 8, 1))
x = tf.keras.layers.Lambda(lambda t: t / 16.0)(inputs)
x = Conv(8)(x)
x = tf.keras.layers.MaxPooling2D()(x)
x = Conv(filters=16)(x)
outputs = tf.keras.layers.Dense(10, "softmax")(tf.keras.layers.GlobalAveragePooling2D()(x))
model = context.wrap_model(tf.keras.Model(inputs, outputs))
model.compile(tf.keras.optimizers.Adam(0.01), focal_loss(gamma=1.5), metrics=["accuracy", MacroRecall()])
model.fit(x_train, y_train, validation_data=(x_test, y_test), batch_size=100, epochs=2, shuffle=False)
