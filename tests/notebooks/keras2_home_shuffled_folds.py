# Folds of one shuffled Dataset, a layer frozen and thawed on an endless one; both are read afterwards.
# plain: the same losses
# same: losses, held, after, model.get_weights(), model.noise.drawn.state.numpy(), float(tf.random.normal([1])[0])
# %%
import numpy as np
import tensorflow as tf
from tensorflow import keras
import det_native as det

context = det.experimental.keras.init()
keras.utils.set_random_seed(4)
# %%
x = np.random.rand(96, 5).astype("float32")
y = (x.sum(1) > 2.5).astype("float32")
rows = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96)
endless = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96).batch(8).repeat()
once = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96, reshuffle_each_iteration=False).batch(8)
kept = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96).batch(8).cache()


class Noise(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.drawn = tf.random.Generator.from_seed(7)

    def call(self, z):
        return z + 0.05 * self.drawn.normal(tf.shape(z))


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(8, "relu")
        self.noise = Noise()
        self.drop = keras.layers.Dropout(0.1)
        self.out = keras.layers.Dense(1, "sigmoid")

    def call(self, z, training=None):
        return self.out(self.drop(self.noise(self.hidden(z)), training=training))


model = context.wrap_model(Net())
model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
losses, held = [], []
# %%
for fold in range(2):
    history = model.fit(rows.skip(32).batch(8), epochs=4, validation_data=rows.take(32).batch(8), verbose=0)
    losses += history.history["loss"]
    held += history.history["val_loss"]
# %%
for trainable in (False, True):
    model.hidden.trainable = trainable
    model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    losses += model.fit(endless, epochs=4, steps_per_epoch=12, verbose=0).history["loss"]
losses += model.fit(once, epochs=4, verbose=0).history["loss"]
for _ in range(2):
    losses += model.fit(kept, epochs=2, verbose=0).history["loss"]
# %%
after = [float(next(iter(each))[0][0].numpy().sum()) for each in (rows.batch(8), endless, once, kept)]
print(losses[0], losses[-1], after)
