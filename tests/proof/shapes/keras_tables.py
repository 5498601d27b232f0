"""Data of Keras from Sequences, generators, tables and random numbers."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a Sequence that shuffles at the end of an epoch",
        """
$imports

class Batches(keras.utils.Sequence):
    def __init__(self, x, y, size=4, shuffle=True):
        self.x, self.y, self.size, self.shuffle = x, y, size, shuffle
        self.on_epoch_end()

    def __len__(self):
        return int(np.ceil(len(self.x) / self.size))

    def __getitem__(self, i):
        at = self.indices[i * self.size : (i + 1) * self.size]
        return self.x[at], self.y[at]

    def on_epoch_end(self):
        self.indices = np.arange(len(self.x))
        if self.shuffle:
            np.random.shuffle(self.indices)
# %%
$data
gen = Batches(x, y)
# %% look
gen[0][0].shape
gen.on_epoch_end()
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(gen, epochs=1)
""",
        (
            ("size=4", "size=8"),
            ("self.y[at]", "-self.y[at]"),
            ("shuffle=True", "shuffle=False"),
            ("np.ones((16, 1)", "np.zeros((16, 1)"),
        ),
    ),
    Shape(
        "a generator with yield",
        """
$imports
# %%
$data

def batches(x, y, size=4):
    while True:
        order = np.random.permutation(len(x))
        for i in range(0, len(x), size):
            at = order[i : i + size]
            yield x[at] + np.random.normal(0, 0.1, x[at].shape), y[at]
# %% look
next(batches(x, y))
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(batches(x, y), steps_per_epoch=4, epochs=1)
""",
        (
            ("np.random.normal(0, 0.1", "np.random.normal(0, 0.3"),
            ("np.ones(", "np.zeros("),
            ("batches(x, y), steps", "batches(x, y, 8), steps"),
        ),
    ),
    Shape(
        "ImageDataGenerator",
        """
$imports
from tensorflow.keras.preprocessing.image import ImageDataGenerator

images = np.random.RandomState(0).rand(16, 4, 4, 3)
labels = np.arange(16) % 2
datagen = ImageDataGenerator(rescale=1.0 / 2, horizontal_flip=True, width_shift_range=0.1, validation_split=0.25)
train = datagen.flow(images, labels, batch_size=4, subset="training", seed=1)
val = datagen.flow(images, labels, batch_size=4, subset="validation", seed=1)
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4, 4, 3)), layers.Flatten(), layers.Dense(1)])
model.compile("adam", "mse")
# %%
$wrap
model.fit(train, validation_data=val, epochs=1)
""",
        (
            ("rescale=1.0 / 2", "rescale=1.0 / 3"),
            ("width_shift_range=0.1", "width_shift_range=0.2"),
            ("RandomState(0)", "RandomState(1)"),
            ("np.arange(16) % 2", "np.arange(16) % 3"),
        ),
    ),
    Shape(
        "a table of pandas, scaled and split with a seed",
        """
import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from tensorflow import keras
from tensorflow.keras import layers

df = pd.DataFrame(np.random.RandomState(7).rand(40, 5), columns=list("abcde"))
df["e"] = (df["e"] > 0.5).astype(int)
X, y = df.drop(columns="e"), df.pop("e")
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=42, stratify=y)
scaler = StandardScaler()
X_train = scaler.fit_transform(X_train)
X_test = scaler.transform(X_test)
# %% look
df.describe()
# %%
$model
model.compile("adam", "binary_crossentropy")
# %%
$wrap
model.fit(X_train, y_train, validation_data=(X_test, y_test), epochs=1)
""",
        (("RandomState(7)", "RandomState(8)"), ("random_state=42", "random_state=0"), ("> 0.5)", "> 0.4)")),
    ),
    Shape(
        "a StringLookup and a TextVectorization",
        """
$imports
texts = np.array(["good film", "bad film", "good play", "bad play and film"] * 4)
y = np.array([1, 0, 1, 0] * 4)
vectorize = layers.TextVectorization(max_tokens=20, output_sequence_length=4)
vectorize.adapt(texts)
x = vectorize(texts).numpy()
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), layers.Embedding(20, 3), layers.Flatten(), layers.Dense(1)])
model.compile("adam", "mse")
# %%
$fit
""",
        (('"good play"', '"fine play"'), ("max_tokens=20", "max_tokens=4"), ("[1, 0, 1, 0]", "[1, 0, 1, 1]")),
    ),
    Shape(
        "random tensors of TensorFlow",
        """
$imports
tf.random.set_seed(5)
x = tf.random.normal((16, 4))
y = tf.random.uniform((16, 1), maxval=2, dtype=tf.int32)
g = tf.random.Generator.from_seed(3)
x = x + 0.1 * g.normal((16, 4))
# %%
$model
model.compile("adam", "mse")
# %%
$fit
""",
        (("set_seed(5)", "set_seed(6)"), ("from_seed(3)", "from_seed(4)"), ("maxval=2", "maxval=3")),
    ),
    Shape(
        "arrays that lie in files",
        """
$imports
import os

np.savez("data.npz", x=np.arange(64.0).reshape(16, 4), y=np.ones(16))
with np.load("data.npz") as data:
    x, y = data["x"], data["y"]
path = os.path.abspath("data.npz")
# %%
$model
model.compile("adam", "mse")
# %%
$fit
""",
        (("np.arange(64.0)", "np.arange(64.0)[::-1]"), ("y=np.ones(16)", "y=np.zeros(16)")),
    ),
)
