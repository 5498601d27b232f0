"""Losses, metrics, layers and schedules of Keras that notebooks define."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a factory of losses",
        """
$imports

def weighted(weight):
    def loss(y_true, y_pred):
        return tf.reduce_mean(weight * tf.square(y_true - y_pred))
    return loss

def quantile(q):
    return lambda t, p: tf.reduce_mean(tf.maximum(q * (t - p), (q - 1) * (t - p)))
# %%
$data
# %%
$model
model.compile("adam", weighted(2.0), metrics=[quantile(0.9)])
# %%
$fit
""",
        (("weighted(2.0)", "weighted(3.0)"), ("quantile(0.9)", "quantile(0.8)"), ("(q - 1) *", "(1 - q) *")),
    ),
    Shape(
        "a class of a loss with a configuration",
        """
$imports

class Huber(keras.losses.Loss):
    def __init__(self, threshold=1.0, name="huber"):
        super().__init__(name=name)
        self.threshold = threshold

    def call(self, y_true, y_pred):
        error = y_true - y_pred
        small = tf.square(error) / 2
        large = self.threshold * (tf.abs(error) - self.threshold / 2)
        return tf.where(tf.abs(error) < self.threshold, small, large)
# %%
$data
# %%
$model
model.compile("adam", Huber(0.5))
# %%
$fit
""",
        (("Huber(0.5)", "Huber(0.7)"), ("tf.square(error) / 2", "tf.square(error)")),
    ),
    Shape(
        "a class of a metric",
        """
$imports

class Hits(keras.metrics.Metric):
    def __init__(self, bound=1.0, name="hits", **kwargs):
        super().__init__(name=name, **kwargs)
        self.bound = bound
        self.hits = self.add_weight(name="n", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.hits.assign_add(tf.reduce_sum(tf.cast(tf.abs(y_true - y_pred) < self.bound, tf.float32)))

    def result(self):
        return self.hits

    def reset_state(self):
        self.hits.assign(0.0)
# %%
$data
# %%
$model
model.compile("adam", "mse", metrics=[Hits(bound=0.5)])
# %%
$fit
""",
        (("bound=0.5", "bound=0.6"), ("tf.abs(y_true - y_pred)", "tf.square(y_true - y_pred)")),
    ),
    Shape(
        "a layer with weights of its own and a configuration",
        """
$imports

class Linear(layers.Layer):
    def __init__(self, units=4, scale=0.5, **kwargs):
        super().__init__(**kwargs)
        self.units, self.scale = units, scale

    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="random_normal", trainable=True)
        self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=True)

    def call(self, inputs):
        return self.scale * (tf.matmul(inputs, self.w) + self.b)

    def get_config(self):
        return {**super().get_config(), "units": self.units, "scale": self.scale}
# %%
$data
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), Linear(3), layers.Dense(1)])
model.compile("adam", "mse")
# %%
$fit
""",
        (("scale=0.5", "scale=0.6"), ("(tf.matmul(inputs, self.w) + self.b)", "(tf.matmul(inputs, self.w) - self.b)")),
    ),
    Shape(
        "Lambda layers, short and by a function",
        """
$imports

def halves(t):
    return tf.concat([t[:, :2], -t[:, 2:]], axis=1)
# %%
$data
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((4,)),
    layers.Lambda(lambda t: t / 255.0),
    layers.Lambda(halves),
    layers.Dense(1),
])
model.compile("adam", "mse")
# %%
$fit
""",
        (("t / 255.0", "t / 127.0"), ("-t[:, 2:]", "t[:, 2:]")),
    ),
    Shape(
        "a class of a schedule",
        """
$imports

class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, d_model, warmup_steps=100):
        super().__init__()
        self.d_model = tf.cast(d_model, tf.float32)
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        return tf.math.rsqrt(self.d_model) * tf.math.minimum(tf.math.rsqrt(step), step * (self.warmup_steps**-1.5))
# %%
$data
# %%
$model
model.compile(keras.optimizers.Adam(Warmup(64), beta_2=0.98), "mse")
# %%
$fit
""",
        (
            ("Warmup(64)", "Warmup(128)"),
            ("warmup_steps=100", "warmup_steps=10"),
            ("**-1.5", "**-1.0"),
            ("beta_2=0.98", "beta_2=0.9"),
        ),
    ),
    Shape(
        "a frozen base and a new head",
        """
$imports
# %%
keras.utils.set_random_seed(4)
base = keras.Sequential([keras.Input((4,)), layers.Dense(8, activation="relu"), layers.Dense(8)], name="base")
base.trainable = False
inputs = keras.Input((4,))
outputs = layers.Dense(1)(layers.Dropout(0.2)(base(inputs, training=False)))
model = keras.Model(inputs, outputs)
model.compile(keras.optimizers.Adam(1e-4), "mse")
# %%
$data
# %%
$fit
""",
        (
            ("base.trainable = False", "base.trainable = True"),
            ('Dense(8, activation="relu")', 'Dense(8, activation="tanh")'),
            ("Adam(1e-4)", "Adam(1e-3)"),
        ),
    ),
    Shape(
        "an LSTM over tokens",
        """
$imports
from tensorflow.keras.preprocessing.sequence import pad_sequences

texts = ["the cat sat", "a dog sat down", "the bird flew away", "a cat"] * 4
words = sorted({w for t in texts for w in t.split()})
index = {w: i + 1 for i, w in enumerate(words)}
x = pad_sequences([[index[w] for w in t.split()] for t in texts], maxlen=4, padding="post")
y = np.array([0, 1, 1, 0] * 4)
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((4,)),
    layers.Embedding(len(index) + 1, 4),
    layers.Bidirectional(layers.LSTM(3)),
    layers.Dense(1, activation="sigmoid"),
])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
# %%
$fit
""",
        (('padding="post"', 'padding="pre"'), ("[0, 1, 1, 0]", "[0, 1, 1, 1]"), ("layers.LSTM(3)", "layers.GRU(3)")),
    ),
    Shape(
        "attention in a block",
        """
$imports

class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
        self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"), layers.Dense(embed_dim)])
        self.norm1 = layers.LayerNormalization(epsilon=1e-6)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout = layers.Dropout(rate)

    def call(self, inputs, training=None):
        out = self.norm1(inputs + self.dropout(self.att(inputs, inputs), training=training))
        return self.norm2(out + self.ffn(out))
# %%
keras.utils.set_random_seed(0)
inputs = keras.Input((3, 4))
features = TransformerBlock(4, 2, 8)(inputs)
outputs = layers.Dense(1)(layers.GlobalAveragePooling1D()(features))
model = keras.Model(inputs, outputs)
model.compile("adam", "mse")
x, y = np.random.default_rng(1).random((16, 3, 4)), np.ones(16)
# %%
$fit
""",
        (
            ("rate=0.1", "rate=0.3"),
            ("self.norm2(out + self.ffn(out))", "self.norm2(self.ffn(out))"),
            ("epsilon=1e-6", "epsilon=1e-3"),
        ),
    ),
    Shape(
        "a Normalization layer that is adapted",
        """
$imports
# %%
x = np.random.default_rng(0).normal(3.0, 2.0, size=(32, 4)).astype("float32")
y = x[:, :1] * 2
normalizer = layers.Normalization(axis=-1)
normalizer.adapt(x)
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([normalizer, layers.Dense(1)])
model.compile("adam", "mse")
# %%
$fit
""",
        (("x[:, :1] * 2", "x[:, :1] * 3"), ("normal(3.0, 2.0", "normal(3.0, 2.5")),
    ),
    Shape(
        "mixed settings of compile",
        """
$imports
# %%
$data
# %%
$model
model.compile(
    optimizer=keras.optimizers.AdamW(learning_rate=1e-3, weight_decay=0.004),
    loss=keras.losses.Huber(delta=0.7),
    metrics=[keras.metrics.MeanAbsoluteError(), keras.metrics.MeanSquaredError(name="second")],
    run_eagerly=False,
)
# %%
$fit
""",
        (
            ("weight_decay=0.004", "weight_decay=0.04"),
            ("delta=0.7", "delta=0.9"),
            ("keras.metrics.MeanSquaredError(", "keras.metrics.LogCoshError("),
        ),
    ),
)
