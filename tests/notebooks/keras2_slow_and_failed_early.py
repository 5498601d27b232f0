# A cell that failed in its middle and goes on below, a slow one that reads a file, a model trained slowly before.
# %%
import time
import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.datasets import load_diabetes
import det_native as det
# %%
load_diabetes(as_frame=True).frame.to_csv("diabetes.csv", index=False)
# %% raises
raw = pd.read_csv("diabetes.csv")
target = raw.pop("target") / 100
raw["ratio"] = raw["s1"] / raw["s7"]
# %%
parts = []
for name in ["bmi", "bp", "s1", "s2", "s5"]:
    time.sleep(1.2)
    parts.append(raw[name].rank().to_numpy() / len(raw))
x = np.stack(parts, axis=1).astype("float32")
y = target.to_numpy()
# %%
split = 350
train_x, test_x = x[:split], x[split:]
print(train_x.shape, test_x.shape)
# %%
tf.keras.utils.set_random_seed(2)
base = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(4, "relu")])
probe = tf.keras.Sequential([base, tf.keras.layers.Dense(1)])
probe.compile("adam", "mse")
probe.fit(train_x, y[:split], epochs=5, verbose=0, callbacks=[tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: time.sleep(1.2))])
# %%
class Rate(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"{epoch}: {logs['loss']:.3f} at {float(self.model.optimizer.learning_rate):.4f}")
# %%
context = det.experimental.keras.init()
model = context.wrap_model(tf.keras.Sequential([base, tf.keras.layers.Dense(1)]))
model.compile(tf.keras.optimizers.Adam(0.01), "mse")
model.fit(train_x, y[:split], validation_data=(test_x, y[split:]), epochs=3, batch_size=25, callbacks=[Rate()], verbose=0)
