# A model with compute_loss and train_step of its own, a seed generator in it, tf.data, adapted normalization.
# %%
import numpy as np
import tensorflow as tf
import keras
import det_native as det
from keras import ops
from sklearn.datasets import load_wine

wine = load_wine()
order = np.random.permutation(len(wine.data))
x, y = wine.data[order].astype("float32"), wine.target[order]
normalize = keras.layers.Normalization()
normalize.adapt(x)

class Mixed(keras.Model):
    """Trains on mixtures of two records."""
    def __init__(self, hidden=16, alpha=0.3):
        super().__init__()
        self.alpha = alpha
        self.seeds = keras.random.SeedGenerator(99)
        self.normalize = normalize
        self.hidden = keras.layers.Dense(hidden, activation="swish")
        self.out = keras.layers.Dense(3)

    def call(self, inputs, training=False):
        return self.out(self.hidden(self.normalize(inputs)))

    def train_step(self, data):
        x, y = data
        share = keras.random.uniform((), 0.0, self.alpha, seed=self.seeds)
        x = x * (1 - share) + ops.flip(x, axis=0) * share
        y = ops.one_hot(y, 3)
        y = y * (1 - share) + ops.flip(y, axis=0) * share
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply(gradients, self.trainable_weights)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
        return {"loss": self.metrics[0].result()}
# %%
ds = tf.data.Dataset.from_tensor_slices((x, y))
ds = ds.batch(20, drop_remainder=True).map(lambda a, b: (a, tf.cast(b, tf.int32))).prefetch(tf.data.AUTOTUNE)
next(iter(ds))[0].shape
# %%
context = det.experimental.keras.init()
model = context.wrap_model(Mixed(hidden=24))
model.compile(optimizer=keras.optimizers.Adam(0.01), loss=keras.losses.CategoricalCrossentropy(from_logits=True))
model.fit(ds, epochs=3)
