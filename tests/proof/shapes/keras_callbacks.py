"""Callbacks of Keras."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a callback that logs to a file and uses numpy",
        """
$imports
import json, os, sys

class Log(keras.callbacks.Callback):
    def __init__(self, path, every=1, digits=3):
        super().__init__()
        self.path, self.every, self.digits = os.path.abspath(path), every, digits
        self.best = np.inf
        self.rows = []

    def on_epoch_end(self, epoch, logs=None):
        logs = {k: float(np.round(v, self.digits)) for k, v in (logs or {}).items()}
        self.best = min(self.best, logs["loss"])
        self.rows.append(logs)
        if epoch % self.every == 0:
            with open(self.path, "w") as f:
                json.dump(self.rows, f)
            print(os.getpid(), logs, file=sys.stderr)
# %%
$data
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(x, y, epochs=1, callbacks=[Log("log.json", every=2)])
""",
        (
            ("every=2)", "every=3)"),
            ("digits=3", "digits=5"),
            ('min(self.best, logs["loss"])', 'max(self.best, logs["loss"])'),
        ),
    ),
    Shape(
        "a callback that predicts with the global model",
        """
$imports
# %%
$data
# %%
$model
model.compile("adam", "mse")
# %%
class Show(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        shown = model.predict(x[:2], verbose=0)
        print(epoch, shown.mean())
# %%
$wrap
model.fit(x, y, epochs=1, callbacks=[Show()])
""",
        (("x[:2]", "x[:4]"), ("Dense(3)", "Dense(4)")),
    ),
    Shape(
        "EarlyStopping, ReduceLROnPlateau and ModelCheckpoint",
        """
$imports
# %%
$data
# %%
$model
model.compile("adam", "mse")
callbacks = [
    keras.callbacks.EarlyStopping(monitor="loss", patience=2, restore_best_weights=True),
    keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.2, patience=5),
    keras.callbacks.ModelCheckpoint("best.keras", monitor="loss", save_best_only=True),
]
# %%
$wrap
model.fit(x, y, epochs=1, callbacks=callbacks)
""",
        (
            ("patience=2", "patience=20"),
            ("factor=0.2", "factor=0.5"),
            ("save_best_only=True", "save_best_only=False"),
            ("restore_best_weights=True", "restore_best_weights=False"),
        ),
    ),
    Shape(
        "LearningRateScheduler and LambdaCallback with lambdas",
        """
$imports
WARMUP = 5
# %%
$data
# %%
$model
model.compile("sgd", "mse")
# %%
$wrap
model.fit(x, y, epochs=1, callbacks=[
    keras.callbacks.LearningRateScheduler(lambda epoch: 1e-3 * min(1.0, (epoch + 1) / WARMUP)),
    keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch, logs)),
])
""",
        (("WARMUP = 5", "WARMUP = 6"), ("1e-3 * min", "1e-2 * min"), ("print(epoch, logs)", "print(logs, epoch)")),
    ),
    Shape(
        "a callback that keeps an average of weights",
        """
$imports

class EMA(keras.callbacks.Callback):
    def __init__(self, decay=0.99):
        super().__init__()
        self.decay = decay
        self.average = None

    def on_train_batch_end(self, batch, logs=None):
        weights = self.model.get_weights()
        if self.average is None:
            self.average = [w.copy() for w in weights]
        self.average = [self.decay * a + (1 - self.decay) * w for a, w in zip(self.average, weights)]
# %%
$data
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(x, y, epochs=1, callbacks=[EMA(0.9)])
""",
        (("EMA(0.9)", "EMA(0.95)"), ("(1 - self.decay) * w", "w")),
    ),
)
