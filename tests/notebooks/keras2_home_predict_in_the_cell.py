# All in one cell, as the last one of a competition: fit with early stopping, predict, a file of answers, save; then load.
# same: history.history, predictions, rmse, submission, reloaded.predict(X_test, verbose=0), reloaded.get_weights(), model.get_weights()
# same: loaded.get_weights(), reloaded.evaluate(X_test, y_test, verbose=0), int(reloaded.optimizer.iterations)
# %%
import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
import det_native as det

tf.keras.utils.set_random_seed(99)
context = det.experimental.keras.init()
X, y = load_diabetes(return_X_y=True)
y = y / 100
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

def build():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(32, activation="relu", input_shape=[X.shape[1]]),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(1),
    ])
    return model
# %%
model = context.wrap_model(build())
model.compile("adam", "mse", metrics=["mae"])
early = tf.keras.callbacks.EarlyStopping(patience=1, min_delta=0.5, restore_best_weights=True)
history = model.fit(X_train, y_train, validation_split=0.2, epochs=8, callbacks=[early], verbose=0)
predictions = model.predict(X_test).ravel()
rmse = float(np.sqrt(((predictions - y_test) ** 2).mean()))
print("RMSE: %.4f after %d epochs" % (rmse, len(history.epoch)))
submission = pd.DataFrame({"id": range(len(predictions)), "target": predictions})
submission.to_csv("submission.csv", index=False)
model.save("model.keras")
model.save_weights("model.weights.h5")
# %%
reloaded = tf.keras.models.load_model("model.keras")
np.testing.assert_allclose(reloaded.predict(X_test), model.predict(X_test), rtol=1e-5)
loaded = build()
loaded.load_weights("model.weights.h5")
print(pd.read_csv("submission.csv").head())
