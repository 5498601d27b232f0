# Magics, a function defined twice, a failed fit() that was mended, a counter, a plain training before; out of order.
# runs: 1 3 2 4 3 5 6 7 8 5 9
# %%
%matplotlib inline
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
import det_native as det
tf.get_logger().setLevel("ERROR")
built = 0
# %%
x = (x - x.mean()) / x.std()
plt.hist(x[:, 0])
# %%
from sklearn.datasets import make_regression
x, y = make_regression(400, 6, noise=5.0)
y = y / y.std()
# %%
def make():
    global built
    built += 1
    return tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])

first = make()
first.compile("sgd", "mse")
first.fit(x, y, epochs=1, verbose=0)
# %%
def make(units=(16, 8)):
    global built
    built += 1
    model = tf.keras.Sequential(name=f"net_{built}")
    for n in units:
        model.add(tf.keras.layers.Dense(n, activation=lambda t: tf.nn.relu(t)))
    model.add(tf.keras.layers.Dense(1))
    return model
# %%
first.evaluate(x, y, verbose=0)
# %% raises
context = det.experimental.keras.init()
model = context.wrap_model(make())
model.compile("adam", "mse", metrics=["mae"])
model.fit(x, y, validation_splt=0.25, epochs=3)
# %%
print(built, "models")
# %%
%%time
context = det.experimental.keras.init()
model = context.wrap_model(make())
model.compile("adam", "mse", metrics=["mae"])
model.fit(x, y, validation_split=0.25, epochs=3)
