# A model read from a SavedModel is trained in a loop of fits and in a cell below: with its class, and without.
# same: losses, model.get_weights(), functional.get_weights(), known.get_weights()
# %%
import numpy as np
import tensorflow as tf
from tensorflow import keras
import det_native as det

keras.utils.set_random_seed(2)
# %%
class Block(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.dense = keras.layers.Dense(units, activation="relu")

    def call(self, x):
        return self.dense(x)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Net(keras.Model):
    def __init__(self, units=4):
        super().__init__()
        self.units = units
        self.block = Block(units)
        self.out = keras.layers.Dense(1)

    def call(self, x):
        return self.out(self.block(x))

    def get_config(self):
        return {"units": self.units}
# %%
x = np.random.rand(32, 3).astype("float32")
y = x.sum(1)
net = Net()
net.compile("adam", "mse")
net.fit(x, y, epochs=1, verbose=0)
net.save("saved_net", save_format="tf")
inputs = keras.Input((3,))
whole = keras.Model(inputs, keras.layers.Dense(1)(Block(3)(inputs)))
whole.compile("adam", "mse")
whole.save("saved_whole", save_format="tf")
# %%
model = keras.models.load_model("saved_net")
functional = keras.models.load_model("saved_whole")
known = keras.models.load_model("saved_net", custom_objects={"Net": Net, "Block": Block})
losses = []
# %%
for each in (model, functional, known):
    context = det.experimental.keras.init()
    context.wrap_model(each)
    each.compile(keras.optimizers.Adam(0.01), "mse")
    for turn in range(2):
        losses.append(each.fit(x, y, epochs=2, verbose=0).history["loss"])
# %%
for each in (model, functional, known):
    context = det.experimental.keras.init()
    context.wrap_model(each)
    losses.append(each.fit(x, y, epochs=1, verbose=0).history["loss"])
