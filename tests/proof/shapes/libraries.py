"""The shapes of each library, the pieces that they share, and what a process has imported before it runs one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType

import keras_callbacks
import keras_layers
import keras_networks
import keras_pipelines
import keras_python
import keras_settings
import keras_tables
import pytorch_classes
import pytorch_datasets
import pytorch_loaders
import pytorch_networks
import pytorch_settings
import pytorch_tables
import pytorch_text
import pytorch_training
from shape import Shape

_PYTORCH_FILES = (
    pytorch_networks,
    pytorch_training,
    pytorch_datasets,
    pytorch_loaders,
    pytorch_tables,
    pytorch_settings,
    pytorch_classes,
    pytorch_text,
)
_KERAS_FILES = (
    keras_networks,
    keras_layers,
    keras_pipelines,
    keras_tables,
    keras_callbacks,
    keras_settings,
    keras_python,
)

_PYTORCH = {
    "imports": """
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset
""",
    "data": """
torch.manual_seed(0)
dataset = TensorDataset(torch.arange(32.0).reshape(16, 2), torch.ones(16, 1))
""",
    "model": """
torch.manual_seed(1)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
    "step": """
def train_batch(batch, epoch_idx, batch_idx):
    inputs, targets = batch
    loss = F.mse_loss(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
""",
    "wrap": """
import det_native as det
context = det.experimental.pytorch.init()
model = context.wrap_model(model)
optimizer = context.wrap_optimizer(optimizer)
""",
    "fit": """
import det_native as det
context = det.experimental.pytorch.init()
model = context.wrap_model(model)
optimizer = context.wrap_optimizer(optimizer)
context.fit(train_loader=DataLoader(dataset, batch_size=4, shuffle=True), train_batch=train_batch, epochs=1)
""",
}
_KERAS = {
    "imports": """
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
""",
    "data": """
x = np.arange(64, dtype="float32").reshape(16, 4)
y = np.ones((16, 1), "float32")
""",
    "model": """
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(1)])
""",
    "wrap": """
import det_native as det
context = det.experimental.keras.init()
model = context.wrap_model(model)
""",
    "fit": """
import det_native as det
context = det.experimental.keras.init()
model = context.wrap_model(model)
model.fit(x, y, batch_size=4, epochs=1)
""",
}

#: What notebooks import beside the framework, and what the two sides of the comparison do, so that a fork need not.
_IMPORTED = (
    "pandas",
    "sklearn.preprocessing",
    "sklearn.model_selection",
    "det_native.compat",
    "det_native.capture.call",
    "det_native.capture.cells",
    "det_native.capture.side_effects.audit",
    "det_native.capture.script",
    "det_native.experimental.cluster",
    "det_native.experimental.native",
)

_OF_KERAS = (
    "det_native.experimental.keras",
    "det_native.experimental.unwrapped",
    "det_harness.frameworks.estimator.harness",
    "det_harness.frameworks.tf_estimator.harness",
    "keras.preprocessing.image",
)

#: The shapes, the pieces, the framework, and what processes import beside it.
Library = tuple[tuple[Shape, ...], Mapping[str, str], str, tuple[str, ...]]


def _library(files: Iterable[ModuleType], pieces: Mapping[str, str], framework: str, own: Iterable[str]) -> Library:
    return tuple(shape for file in files for shape in file.SHAPES), pieces, framework, (*_IMPORTED, *own)


LIBRARIES: Mapping[str, Library] = {
    "pytorch": _library(_PYTORCH_FILES, _PYTORCH, "torch", ["det_native.experimental.pytorch"]),
    "keras": _library(_KERAS_FILES, _KERAS, "keras", _OF_KERAS),
}
