"""What else Python has, in notebooks with Keras: classes, annotations, patterns, await."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a class that is defined twice, and super() without arguments",
        """
$imports

class Head(layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x):
        return self.dense(x)
# %% look
Head()(np.ones((1, 4)))
# %%
class Head(layers.Layer):
    def __init__(self, units=1):
        super().__init__()
        self.dense = layers.Dense(units)

    def call(self, x):
        return tf.nn.tanh(self.dense(x))
# %%
$data
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), layers.Dense(3), Head()])
model.compile("adam", "mse")
# %%
$fit
""",
        (("tf.nn.tanh", "tf.nn.sigmoid"),),
    ),
    Shape(
        "a mixin and a registered layer",
        """
$imports

class Gated:
    gate = 0.5

    def gated(self, x):
        return x * tf.cast(x > self.gate, x.dtype)

@keras.utils.register_keras_serializable(package="mine")
class Gate(Gated, layers.Layer):
    def call(self, x):
        return self.gated(x)
# %%
$data
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), layers.Dense(3), Gate(), layers.Dense(1)])
model.compile("adam", "mse")
# %%
$fit
""",
        (("gate = 0.5", "gate = 0.7"), ("x > self.gate", "x < self.gate")),
    ),
    Shape(
        "a method that is replaced",
        """
$imports

class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.d = layers.Dense(1)

    def call(self, x):
        return self.d(x)

def call(self, x):
    return 2 * self.d(x)

Net.call = call
# %%
$data
# %%
keras.utils.set_random_seed(0)
model = Net()
model.build((None, 4))
model.compile("adam", "mse")
# %%
$fit
""",
        (("2 * self.d(x)", "3 * self.d(x)"),),
    ),
    Shape(
        "from __future__ import annotations, docstrings, types",
        '''
from __future__ import annotations
$imports
from typing import Callable, Optional

LossFn = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

def scaled(loss: LossFn, factor: Optional[float] = 2.0) -> LossFn:
    """Scale a loss."""

    def inner(t: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        "Return the scaled loss."
        value: tf.Tensor = loss(t, p)  # of each row
        return value * factor

    return inner
# %%
$data
# %%
$model
model.compile("adam", scaled(keras.losses.mean_squared_error))
# %%
$fit
''',
        (("= 2.0", "= 3.0"), ("keras.losses.mean_squared_error", "keras.losses.mean_absolute_error")),
    ),
    Shape(
        "match, walrus, comprehensions and star arguments",
        """
$imports
spec = [("dense", 4), ("drop", 0.1), ("dense", 1)]

def layer_of(kind, value):
    match kind:
        case "dense":
            return layers.Dense(value)
        case "drop":
            return layers.Dropout(value)
    raise ValueError(kind)
# %%
$data
if (n := len(x)) > 10:
    y = y * n
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), *(layer_of(*one) for one in spec)])
model.compile("adam", "mse")
# %%
$fit
""",
        (('("drop", 0.1)', '("drop", 0.2)'), ("y = y * n", "y = y + n")),
    ),
    Shape(
        "await at the top level, and global in a function",
        """
$imports
import asyncio
calls = 0

async def fetch(n):
    await asyncio.sleep(0)
    return np.arange(4.0 * n).reshape(n, 4)

def counted(t, p):
    global calls
    calls += 1
    return tf.reduce_mean(tf.abs(t - p))
# %%
x = await fetch(16)
y = np.ones(16)
# %%
$model
model.compile("adam", counted)
# %% look
counted(tf.zeros(3), tf.ones(3)), calls
# %%
$fit
""",
        (("np.arange(4.0 * n)", "np.arange(1.0, 4 * n + 1)"), ("tf.reduce_mean(tf.abs", "tf.reduce_mean(tf.square")),
    ),
    Shape(
        "a main function behind __name__",
        """
$imports
import det_native as det

def load(seed):
    rng = np.random.default_rng(seed)
    x = rng.random((16, 4))
    return x, x.sum(axis=1)

def main():
    context = det.experimental.keras.init()
    x, y = load(7)
    model = context.wrap_model(keras.Sequential([keras.Input((4,)), layers.Dense(2), layers.Dense(1)]))
    model.compile("adam", "mse")
    return model.fit(x, y, epochs=1, batch_size=4)

if __name__ == "__main__":
    history = main()
""",
        (("load(7)", "load(8)"), ("x.sum(axis=1)", "x.max(axis=1)"), ("layers.Dense(2)", 'layers.Dense(2, "relu")')),
    ),
    Shape(
        "a history that a callback of lambda fills, and a lookup",
        """
$imports
from collections import defaultdict

seen = defaultdict(list)
LABELS = {0: "zero", 1: "one"}
# %%
$data
# %%
$model
model.compile("adam", "mse")
keep = keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: seen[LABELS[batch % 2]].append(logs["loss"]))
# %%
$wrap
model.fit(x, y, epochs=1, callbacks=[keep])
""",
        (("batch % 2", "(batch + 1) % 2"), ('0: "zero"', '0: "null"')),
    ),
    Shape(
        "mixed precision left as it is, and a seed function",
        """
$imports
import os, random

def reset_seeds(seed=123):
    os.environ["PYTHONHASHSEED"] = str(seed)
    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)

reset_seeds()
keras.backend.set_floatx("float32")
# %%
x = np.random.rand(16, 4)
y = np.array([random.random() for _ in range(16)])
# %%
reset_seeds(7)
model = keras.Sequential([keras.Input((4,)), layers.Dense(3, kernel_initializer="he_normal"), layers.Dense(1)])
model.compile("adam", "mse")
# %%
$fit
""",
        (("reset_seeds(7)", "reset_seeds(8)"), ("he_normal", "he_uniform")),
    ),
    Shape(
        "layers that are shared and named by f-strings",
        """
$imports
# %%
$data
# %%
keras.utils.set_random_seed(0)
inputs = keras.Input((4,))
shared = layers.Dense(4, name="shared")
h = inputs
for i in range(3):
    h = layers.Activation("relu", name=f"act_{i}")(shared(h))
    h = layers.Add(name=f"res_{i}")([h, inputs])
model = keras.Model(inputs, layers.Dense(1)(h), name=f"net_{3}")
model.compile("adam", "mse")
# %%
$fit
""",
        (('Activation("relu"', 'Activation("elu"'), ("layers.Add(", "layers.Multiply(")),
    ),
)
