# An image classifier: fit, evaluate, predict, a confusion matrix, saved and loaded, a submodel of its features.
# plain: the same losses
# same: score, classes, cm, again, features, model.get_weights(), history.history["val_accuracy"]
# %%
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix

import det_native as det

context = det.experimental.keras.init()
keras.utils.set_random_seed(0)
# %%
digits = load_digits()
x = np.expand_dims(digits.images.astype("float32") / 16, -1)
y = keras.utils.to_categorical(digits.target, 10)
x_train, x_test, y_train, y_test = x[:1400], x[1400:], y[:1400], y[1400:]
# %%
inputs = keras.Input((8, 8, 1))
h = layers.Conv2D(8, 3, activation="relu")(inputs)
h = layers.MaxPooling2D()(h)
h = layers.Flatten(name="features")(h)
h = layers.Dropout(0.2)(h)
outputs = layers.Dense(10, activation="softmax")(h)
model = context.wrap_model(keras.Model(inputs, outputs))
model.compile(loss="categorical_crossentropy", optimizer=keras.optimizers.Adam(0.01), metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=64, epochs=4, validation_split=0.1)
# %%
score = model.evaluate(x_test, y_test, verbose=0)
print("Test loss:", score[0])
print("Test accuracy:", score[1])
# %%
classes = model.predict(x_test[:20], verbose=0).argmax(1).tolist()
cm = confusion_matrix(digits.target[1400:], model.predict(x_test, verbose=0).argmax(1))
model.save("digits.keras")
again = keras.models.load_model("digits.keras").evaluate(x_test, y_test, verbose=0)
assert score[1] > 0.7 and again == score
# %%
extractor = keras.Model(model.inputs, model.get_layer("features").output)
features = keras.ops.convert_to_numpy(extractor(x_test[:5]))
