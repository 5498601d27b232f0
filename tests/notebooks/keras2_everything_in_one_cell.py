# Imports, unseeded data, the model and fit(), all in one cell.
# %%
import det_native as det
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

x = np.random.rand(500, 10)
y = (x.sum(axis=1) > 5).astype(int)
x_val, y_val = np.random.rand(100, 10), np.random.randint(0, 2, 100)

context = det.experimental.keras.init()
model = keras.Sequential([
    keras.Input((10,)),
    layers.Dense(16, activation="relu"),
    layers.Dropout(0.2),
    layers.Dense(1, activation="sigmoid"),
])
model = context.wrap_model(model)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, validation_data=(x_val, y_val), epochs=3, batch_size=32)
