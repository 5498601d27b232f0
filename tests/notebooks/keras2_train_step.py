# A model with a train_step and a layer of its own, trackers, a gradient tape; a batch tried before the training.
# %%
import tensorflow as tf
import numpy as np
from tensorflow import keras
from sklearn.datasets import load_digits
import det_native as det

class Noise(keras.layers.Layer):
    def __init__(self, rate=0.1, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x, training=None):
        if training:
            x = x * tf.cast(tf.abs(tf.sin(100.0 * x + 1.0)) > self.rate, x.dtype)
        return x

class Linear(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, shape):
        self.w = self.add_weight(name="w", shape=(shape[-1], self.units), initializer="glorot_uniform")
        self.b = self.add_weight(name="b", shape=(self.units,), initializer="zeros")

    def call(self, x):
        return tf.matmul(x, self.w) + self.b

class Denoiser(keras.Model):
    def __init__(self, dim=16):
        super().__init__()
        self.noise = Noise(0.3)
        self.encoder = keras.Sequential([Linear(dim), keras.layers.Activation("elu")])
        self.decoder = keras.Sequential([Linear(64), keras.layers.Activation(tf.nn.sigmoid)])
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.mae = keras.metrics.MeanAbsoluteError(name="mae")

    @property
    def metrics(self):
        return [self.loss_tracker, self.mae]

    def call(self, x, training=None):
        return self.decoder(self.encoder(self.noise(x, training=training)))

    def train_step(self, x):
        with tf.GradientTape() as tape:
            out = self(x, training=True)
            loss = tf.reduce_mean(tf.reduce_sum(tf.square(out - x), axis=1))
        grads = tape.gradient(loss, self.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, 5.0)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        self.mae.update_state(x, out)
        return {m.name: m.result() for m in self.metrics}

data = (load_digits().data / 16).astype(np.float32)
np.random.shuffle(data)
# %%
Denoiser()(data[:2]).shape
# %%
context = det.experimental.keras.init({"name": "denoiser"})
model = context.wrap_model(Denoiser(dim=8))
model.compile(optimizer=keras.optimizers.Adam(5e-3))
model.fit(data, epochs=3, batch_size=100)
