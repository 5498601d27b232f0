# ModelCheckpoint and load_model in the cell below, where a file of that name is there from an earlier try; weights by a template with the epoch.
# same: history.history, score, best.get_weights(), restored.get_weights(), predictions, names(), names("weights")
# %%
import os
import numpy as np
import tensorflow as tf
from tensorflow import keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
import det_native as det

tf.keras.utils.set_random_seed(7)
# %%
def names(folder="."):
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))

X, y = load_digits(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X / 16.0, y, test_size=0.25, random_state=1)
# %%
def build_model(units):
    model = keras.Sequential([
        keras.Input((64,)),
        keras.layers.Dense(units, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ])
    return model
# %%
# a first try, without training
baseline = build_model(8)
baseline.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
baseline.save("best_model.keras")
print("baseline", baseline.evaluate(X_val, y_val, verbose=0))
# %%
context = det.experimental.keras.init()
tf.keras.utils.set_random_seed(7)
model = context.wrap_model(build_model(32))
model.compile(optimizer=keras.optimizers.Adam(0.02), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
callbacks = [
    keras.callbacks.ModelCheckpoint("best_model.keras", monitor="val_accuracy", mode="max", save_best_only=True),
    keras.callbacks.ModelCheckpoint("weights/epoch_{epoch:02d}.h5", save_weights_only=True),
]
history = model.fit(X_train, y_train, validation_data=(X_val, y_val), epochs=4, batch_size=64, callbacks=callbacks)
# %%
best = keras.models.load_model("best_model.keras")
score = best.evaluate(X_val, y_val, verbose=0)
print("best", score, "of", max(history.history["val_accuracy"]))
assert abs(score[1] - max(history.history["val_accuracy"])) < 1e-6
# %%
restored = build_model(32)
restored.load_weights(f"weights/epoch_{2:02d}.h5")
predictions = restored.predict(X_val[:5])
print(predictions.argmax(axis=1), names(), names("weights"))
