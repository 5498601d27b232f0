"""Models of Keras, their layers and their training steps."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a functional model with two inputs and two outputs",
        """
$imports
# %%
keras.utils.set_random_seed(2)
title = keras.Input(shape=(3,), name="title")
tags = keras.Input(shape=(2,), name="tags")
joined = layers.concatenate([layers.Dense(4, activation="relu")(title), layers.Dense(4)(tags)])
priority = layers.Dense(1, name="priority")(joined)
department = layers.Dense(2, activation="softmax", name="department")(joined)
model = keras.Model(inputs=[title, tags], outputs=[priority, department])
model.compile(
    optimizer=keras.optimizers.RMSprop(1e-3),
    loss={"priority": "mse", "department": keras.losses.CategoricalCrossentropy(label_smoothing=0.1)},
    loss_weights={"priority": 1.0, "department": 0.2},
)
# %%
rng = np.random.default_rng(0)
x = {"title": rng.random((16, 3)), "tags": rng.random((16, 2))}
y = {"priority": rng.random((16, 1)), "department": keras.utils.to_categorical(np.arange(16) % 2)}
# %%
$fit
""",
        (
            ('"department": 0.2', '"department": 0.4'),
            ("label_smoothing=0.1", "label_smoothing=0.2"),
            ("default_rng(0)", "default_rng(1)"),
        ),
    ),
    Shape(
        "a subclassed model",
        """
$imports

class MyModel(keras.Model):
    def __init__(self, hidden=4):
        super().__init__()
        self.d1 = layers.Dense(hidden, activation="relu")
        self.d2 = layers.Dense(1)

    def call(self, x, training=False):
        return tf.math.softplus(self.d2(self.d1(x)))
# %%
$data
# %%
keras.utils.set_random_seed(0)
model = MyModel()
model.compile(keras.optimizers.Adam(), keras.losses.MeanSquaredError())
# %% look
model(x[:2])
# %%
$fit
""",
        (("tf.math.softplus", "tf.nn.relu"), ("hidden=4", "hidden=5")),
    ),
    Shape(
        "a train_step of one's own",
        """
$imports

class CustomModel(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        gradients = [tf.clip_by_norm(g, 1.0) for g in gradients]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}
# %%
$data
# %%
keras.utils.set_random_seed(0)
inputs = keras.Input(shape=(4,))
outputs = layers.Dense(1)(inputs)
model = CustomModel(inputs, outputs)
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
# %%
$fit
""",
        (("tf.clip_by_norm(g, 1.0)", "tf.clip_by_norm(g, 5.0)"), ('metrics=["mae"]', 'metrics=["mse"]')),
    ),
)
