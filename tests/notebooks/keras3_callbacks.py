# Callbacks with time, os and np, one that predicts by the global model, a lambda, a file named by the date.
# %%
import det_native as det
# %%
import os
import time
from datetime import date, datetime
from pathlib import Path

import keras
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

OUT = Path("out") / f"{date.today():%d-%m-%y}"
OUT.mkdir(parents=True, exist_ok=True)
frame = load_diabetes(as_frame=True).frame
pipeline = Pipeline([("poly", PolynomialFeatures(2, include_bias=False)), ("scale", StandardScaler())])
train, test = train_test_split(frame, test_size=0.2)
x_train, x_test = pipeline.fit_transform(train.drop(columns="target")), pipeline.transform(test.drop(columns="target"))
y_train, y_test = train["target"] / 100, test["target"] / 100
print(f"[{datetime.now():%H:%M}] {os.getlogin() if False else os.environ.get('USER', 'me')}: {x_train.shape}")

class Progress(keras.callbacks.Callback):
    """Says how far it is, and keeps some predictions."""
    def __init__(self, every=1):
        super().__init__()
        self.every = every
        self.predictions = []
        self.t0 = time.time()

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        if epoch % self.every == 0:
            self.predictions.append(np.asarray(model.predict(x_test[:5], verbose=0)).ravel())
            print(f"{epoch}: {logs.get('loss', np.nan):.3f} after {time.time() - self.t0:.0f} s, spread {np.std(self.predictions):.3f}")

    def on_train_end(self, logs=None):
        pd.DataFrame(self.predictions).to_csv(os.path.join(OUT, "predictions.csv"))
# %%
context = det.experimental.keras.init(dict(name=f"diabetes {datetime.now().isoformat(timespec='minutes')}"))
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model = context.wrap_model(model)
model.compile(keras.optimizers.Adam(1e-2), keras.losses.Huber(), metrics=["mae"])
model.fit(x_train, y_train, validation_data=(x_test, y_test), batch_size=32, epochs=3, callbacks=[
    Progress(),
    keras.callbacks.LearningRateScheduler(lambda epoch, lr: float(lr * np.exp(-0.1))),
    keras.callbacks.ModelCheckpoint(str(OUT / "best.weights.h5"), save_best_only=True, save_weights_only=True),
    keras.callbacks.CSVLogger(OUT / f"log-{int(time.time())}.csv"),
])
