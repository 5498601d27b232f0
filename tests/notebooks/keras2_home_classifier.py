# An image classifier with the seeds of Kaggle, and what people do with it: keys of the curves, evaluate, predict, a confusion matrix.
# same: history.history, history.epoch, score, predicted, matrix, model.get_weights()
# %%
import os, random
import numpy as np
import tensorflow as tf
from tensorflow import keras
from sklearn.datasets import load_digits
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import train_test_split
import det_native as det

context = det.experimental.keras.init()

def seed_everything(seed):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)

seed_everything(42)
# %%
digits = load_digits()
x = (digits.images / 16.0).astype("float32")[..., None]
x_train, x_test, y_train, y_test = train_test_split(x, digits.target, test_size=0.2, random_state=42)
# %%
model = keras.Sequential([
    keras.layers.Input((8, 8, 1)),
    keras.layers.Conv2D(8, 3, activation="relu"),
    keras.layers.MaxPooling2D(),
    keras.layers.Flatten(),
    keras.layers.Dropout(0.2),
    keras.layers.Dense(10, activation="softmax"),
])
model = context.wrap_model(model)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.summary()
# %%
history = model.fit(x_train, y_train, epochs=4, batch_size=32, validation_split=0.1)
# %%
print(history.history.keys())
for key in ("accuracy", "val_accuracy"):
    print(key, [round(value, 3) for value in history.history[key]])
# %%
score = model.evaluate(x_test, y_test, verbose=0)
print("Test loss:", score[0])
print("Test accuracy:", score[1])
# %%
predicted = model.predict(x_test)
y_pred = np.argmax(predicted, axis=1)
matrix = confusion_matrix(y_test, y_pred)
print(matrix)
print(classification_report(y_test, y_pred))
