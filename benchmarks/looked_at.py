"""Notebooks whose cells are looked at: what the names hold, and a cell that uses some of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Notebook:
    """Cells that make something, and one that is measured; `imports` decide in which process."""

    what: str
    setup: str
    cell: str


_OWN = """
class Own:
    def __init__(self, number):
        self.number, self.children = number, []
root = Own(0)
level = [root]
for depth in range(5):
    level = [child for one in level for child in [Own(depth) for _ in range(10)] if one.children.append(child) is None]
"""

_CNN = """
import numpy as np, tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
    layers.Conv2D(64, 3, activation="relu"), layers.Flatten(), layers.Dense(128, "relu"), layers.Dropout(0.5),
    layers.Dense(10, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
"""

_CONVOLUTIONS = """
import torch
from torch import nn
blocks = []
for _ in range(50):
    blocks += [nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()]
model = nn.Sequential(*blocks)
optimizer = torch.optim.Adam(model.parameters())
model(torch.zeros(1, 32, 4, 4)).sum().backward()
optimizer.step()
"""

PLAIN = [
    Notebook("2,000 small names", "for n in range(2000): globals()[f'name{n}'] = [n, str(n)]", "len(name7)"),
    Notebook("a dict of 1e5 lists", "table = {n: [n, n + 1] for n in range(100_000)}", "table[5].append(3)"),
    Notebook("a list of 1e6 numbers", "numbers = list(range(1_000_000))", "numbers[7] = 8"),
    Notebook("an array of 2 GB", "import numpy as np\nbig = np.zeros(250_000_000)", "big[5] = 3"),
    Notebook("111,111 objects of the user's", _OWN, "root.children[3].number = 5"),
    Notebook(
        "a table of 1e6 rows and 10 columns",
        "import numpy as np, pandas as pd\n"
        "table = pd.DataFrame({f'c{n}': np.arange(1_000_000) for n in range(9)})\n"
        "table['text'] = [f'row {n}' for n in range(1_000_000)]",
        "table.head()",
    ),
]
TORCH = [
    Notebook("50 convolutions with Adam", _CONVOLUTIONS, "optimizer.zero_grad()"),
    Notebook(
        "a DataLoader",
        "import torch\ndata = torch.utils.data.TensorDataset(torch.zeros(60_000, 784))\n"
        "loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)",
        "len(loader)",
    ),
]
KERAS = [
    Notebook("a CNN of Keras, compiled", _CNN, "model.optimizer.learning_rate"),
    Notebook(
        "a CNN of Keras, fitted",
        _CNN + "model.fit(np.zeros((64, 28, 28, 1)), np.zeros(64), verbose=0)",
        "model.optimizer.learning_rate",
    ),
    Notebook(
        "MobileNetV2 with a head",
        "import tensorflow as tf\n"
        "base = tf.keras.applications.MobileNetV2(weights=None, include_top=False, input_shape=(96, 96, 3))\n"
        "model = tf.keras.Sequential([base, tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(3)])\n"
        "model.compile('adam', 'mse')",
        "model.name",
    ),
    Notebook(
        "a Dataset of TensorFlow",
        "import tensorflow as tf\n"
        "pipeline = tf.data.Dataset.range(1000).map(lambda x: x + 1).shuffle(100).batch(32).prefetch(2)",
        "pipeline.element_spec",
    ),
]
