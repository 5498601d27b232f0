# Imports, unseeded data, a layer of one's own, the model and fit(), all in one cell; Keras and numpy only.
# %%
import keras
import numpy as np
from keras import layers, ops
import det_native as det

x_train = np.random.normal(size=(640, 8)).astype("float32")
y_train = (x_train[:, :3].sum(axis=1) > 0).astype("float32")

class Scale(layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones")

    def call(self, inputs):
        return ops.tanh(inputs) * self.factor

context = det.experimental.keras.init()
inputs = keras.Input(shape=(8,))
x = Scale()(inputs)
x = layers.Dense(16, activation="relu")(x)
x = layers.Dropout(0.25)(x)
outputs = layers.Dense(1, activation="sigmoid")(x)
model = context.wrap_model(keras.Model(inputs, outputs))
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=64, epochs=3, validation_split=0.1)
