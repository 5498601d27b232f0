"""Settings of notebooks with Keras, functions that functions make, and the moments and places of a run."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "build_model with defaults and keyword arguments",
        """
$imports

def build_model(hidden=(8, 4), dropout=0.1, lr=1e-3, *, activation="relu", **options):
    '''Return a compiled model.'''
    model = keras.Sequential([keras.Input((4,))])
    for units in hidden:
        model.add(layers.Dense(units, activation=activation))
        model.add(layers.Dropout(dropout))
    model.add(layers.Dense(1))
    model.compile(keras.optimizers.Adam(lr), **options)
    return model
# %%
$data
# %%
keras.utils.set_random_seed(0)
model = build_model(dropout=0.2, loss="mse", metrics=["mae"])
# %%
$fit
""",
        (
            ("dropout=0.2", "dropout=0.3"),
            ('activation="relu"', 'activation="elu"'),
            ('loss="mse"', 'loss="mae"'),
            ("lr=1e-3", "lr=1e-2"),
        ),
    ),
    Shape(
        "a decorated loss, by tf.function and by one's own",
        """
$imports
import functools

def named(name):
    def decorate(function):
        @functools.wraps(function)
        def inner(t, p):
            return tf.identity(function(t, p), name=name)
        return inner
    return decorate

@named("my_loss")
def my_loss(t, p):
    return tf.reduce_mean(tf.abs(t - p))

@tf.function
def penalty(t, p):
    return tf.reduce_max(tf.abs(p))
# %%
$data
# %%
$model
model.compile("adam", my_loss, metrics=[penalty])
# %%
$fit
""",
        (("reduce_mean(tf.abs", "reduce_mean(tf.square"), ("tf.reduce_max", "tf.reduce_min")),
    ),
    Shape(
        "a partial as the loss",
        """
$imports
from functools import partial, update_wrapper

def tilted(t, p, q=0.5):
    return tf.reduce_mean(tf.maximum(q * (t - p), (q - 1) * (t - p)))

loss = update_wrapper(partial(tilted, q=0.9), tilted)
# %%
$data
# %%
$model
model.compile("adam", loss)
# %%
$fit
""",
        (("q=0.9", "q=0.8"), ("tf.maximum", "tf.minimum")),
    ),
    Shape(
        "a run of its own name and folder",
        """
$imports
import getpass, os, socket, tempfile, time, uuid
from datetime import datetime
from pathlib import Path

run = f"{getpass.getuser()}@{socket.gethostname()}-{datetime.now():%d%m%Y-%H%M%S}-{uuid.uuid4()}"
folder = Path(tempfile.mkdtemp()) / run
folder.mkdir()
started, tick, pid = time.time(), time.perf_counter(), os.getpid()

class Saver(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(run, pid, time.time() - started, time.perf_counter() - tick)
        (folder / f"{epoch:03d}.txt").write_text(str(logs))
# %%
$data
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(x, y, epochs=1, callbacks=[Saver(), keras.callbacks.CSVLogger(str(folder / "log.csv"))])
""",
        (('f"{epoch:03d}.txt"', 'f"{epoch:05d}.txt"'),),
        put_right=True,
    ),
    Shape(
        "a callback with an identity and a moment of its own",
        """
$imports
import datetime, os, random, string, uuid

class Run(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.id = uuid.uuid4().hex
        self.pid = os.getpid()
        self.began = datetime.datetime.now()
        self.root = os.path.join(os.getcwd(), "out")

    def on_train_end(self, logs=None):
        print(self.id, self.pid, datetime.datetime.now() - self.began, self.root)
# %%
$data
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(x, y, epochs=1, callbacks=[Run()])
""",
        (("np.ones(", "np.zeros("),),
        put_right=True,
    ),
)
