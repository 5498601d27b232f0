# A Normalization layer that was adapted, EarlyStopping that restores, ReduceLROnPlateau, a list that a lambda fills; a frame of the history below.
# plain: the same losses
# same: frame, results, predictions, float(model.optimizer.learning_rate.numpy()), best_epoch, early_stopping_best, model.get_weights(), int(model.optimizer.iterations), losses, callbacks[0].stopped_epoch
# %%
import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

import det_native as det

context = det.experimental.keras.init()
tf.keras.utils.set_random_seed(0)
# %%
df = load_diabetes(as_frame=True, scaled=False).frame
df["bmi_bp"] = df["bmi"] * df["bp"]
train_df, test_df = train_test_split(df, test_size=0.2, random_state=0)
train_df, val_df = train_test_split(train_df, test_size=0.25, random_state=0)

def xy(frame):
    frame = frame.copy()
    target = frame.pop("target") / 100
    return frame.to_numpy("float32"), target.to_numpy("float32")

(x_train, y_train), (x_val, y_val), (x_test, y_test) = map(xy, (train_df, val_df, test_df))
# %%
normalizer = tf.keras.layers.Normalization(axis=-1)
normalizer.adapt(x_train)

inputs = tf.keras.Input((x_train.shape[1],))
h = normalizer(inputs)
h = tf.keras.layers.Dense(32, activation="relu", kernel_regularizer="l2")(h)
h = tf.keras.layers.Dropout(0.1)(h)
outputs = tf.keras.layers.Dense(1)(h)
model = context.wrap_model(tf.keras.Model(inputs, outputs))
model.compile(optimizer=tf.keras.optimizers.Adam(0.05), loss="mse", metrics=["mae"])
# %%
losses = []
callbacks = [
    tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=1, restore_best_weights=True),
    tf.keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.3, patience=1, min_lr=1e-5),
    tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: losses.append(logs["loss"])),
]
history = model.fit(x_train, y_train, validation_data=(x_val, y_val), epochs=12, batch_size=32,
                    callbacks=callbacks, verbose=2)
# %%
frame = pd.DataFrame(history.history)
frame.insert(0, "epoch", history.epoch)
best_epoch = int(frame["val_loss"].idxmin())
early_stopping_best = float(frame["val_loss"].min())
frame.tail()
# %%
results = dict(zip(model.metrics_names, model.evaluate(x_test, y_test, verbose=0)))
predictions = model.predict(x_test).ravel()
print(results, "R2", r2_score(y_test, predictions))
restored = model.evaluate(x_val, y_val, verbose=0)[0]
assert len(frame) < 12, "it was to stop early"
assert abs(restored - early_stopping_best) < 1e-4, (restored, early_stopping_best)
