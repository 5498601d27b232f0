# Layers, a loss and a metric by keras.ops beside the imports; registered by decorators; a small transformer; a seed.
# plain: the same losses
# %%
import os
os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np
import keras
from keras import layers, ops
from sklearn.datasets import load_digits

import det_native as det

keras.utils.set_random_seed(812)
digits = load_digits()
x, y = digits.images / 16.0, digits.target

@keras.saving.register_keras_serializable(package="mine")
class Block(layers.Layer):
    def __init__(self, dim, heads=2, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.heads = dim, heads
        self.attention = layers.MultiHeadAttention(heads, dim // heads)
        self.norms = [layers.LayerNormalization() for _ in range(2)]
        self.mlp = keras.Sequential([layers.Dense(2 * dim, activation=lambda t: ops.gelu(t)), layers.Dense(dim)])

    def call(self, x):
        h = self.norms[0](x)
        x = x + self.attention(h, h)
        return x + self.mlp(self.norms[1](x))

    def get_config(self):
        return {**super().get_config(), "dim": self.dim, "heads": self.heads}

@keras.saving.register_keras_serializable()
def smooth_loss(y_true, y_pred):
    one_hot = ops.one_hot(ops.cast(ops.reshape(y_true, (-1,)), "int32"), 10) * 0.9 + 0.01
    return -ops.sum(one_hot * ops.log_softmax(y_pred), axis=-1)

def top3(y_true, y_pred):
    return ops.mean(keras.metrics.sparse_top_k_categorical_accuracy(y_true, y_pred, k=3))
# %%
context = det.experimental.keras.init({"description": "rows as tokens"})
keras.utils.set_random_seed(812)
inputs = keras.Input((8, 8))
h = layers.Dense(16)(inputs)
for i in range(2):
    h = Block(16, name=f"block_{i}")(h)
h = layers.Lambda(lambda t: ops.mean(t, axis=1))(h)
model = context.wrap_model(keras.Model(inputs, layers.Dense(10)(h)))
model.compile(keras.optimizers.AdamW(0.01), smooth_loss, metrics=["accuracy", top3])
model.fit(x[:1500], y[:1500], validation_data=(x[1500:], y[1500:]), batch_size=100, epochs=2, shuffle=False)
