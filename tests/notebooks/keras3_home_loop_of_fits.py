# A loop of fits of one epoch, with the best weights kept by hand, then a slower rate; a plot's numbers and weights below.
# same: losses, val_accuracy, best, final, model.get_weights(), int(model.optimizer.iterations), proba
# %%
import keras
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import det_native as det

context = det.experimental.keras.init()
keras.utils.set_random_seed(0)
# %%
X, y = load_wine(return_X_y=True)
X = ((X - X.mean(0)) / X.std(0)).astype("float32")
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, random_state=0)
model = keras.Sequential([
    keras.layers.Dense(16, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.Dense(3, activation="softmax"),
])
model = context.wrap_model(model)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
# %%
losses, val_accuracy, best = [], [], 0.0
for epoch in range(3):
    h = model.fit(X_train, y_train, epochs=1, batch_size=16, verbose=0)
    losses += h.history["loss"]
    _, accuracy = model.evaluate(X_val, y_val, verbose=0)
    val_accuracy.append(accuracy)
    if accuracy > best:
        best, best_weights = accuracy, model.get_weights()
    print(f"epoch {epoch}: {losses[-1]:.3f} {accuracy:.3f}")
# %%
model.set_weights(best_weights)
model.optimizer.learning_rate = 1e-4
model.fit(X_train, y_train, initial_epoch=3, epochs=4, batch_size=16, verbose=0)
final = model.evaluate(X_val, y_val, verbose=0)
proba = model.predict(X_val[:4], verbose=0)
assert losses == sorted(losses, reverse=True), losses
