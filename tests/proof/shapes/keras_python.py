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
)
