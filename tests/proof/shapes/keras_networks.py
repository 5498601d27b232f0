"""Models of Keras, their layers and their training steps."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "imports, data, model and call, a cell of each",
        """
$imports
# %%
$data
# %%
$model
model.compile("adam", "mse")
# %%
$fit
""",
        (
            ("np.ones(", "np.zeros("),
            ("Dense(3)", 'Dense(3, "relu")'),
            ('"adam"', '"sgd"'),
            ("set_random_seed(0)", "set_random_seed(1)"),
        ),
    ),
    Shape(
        "everything in one cell",
        """
$imports
import det_native as det

context = det.experimental.keras.init()
x = np.random.rand(64, 4)
y = (x.sum(axis=1) > 2).astype(int)

def my_loss(t, p):
    return tf.reduce_mean(tf.abs(tf.cast(t, tf.float32) - p))

model = context.wrap_model(keras.Sequential([
    keras.Input(shape=(4,)),
    layers.Dense(8, activation="relu"),
    layers.Dense(1, activation="sigmoid"),
]))
model.compile(optimizer="adam", loss=my_loss, metrics=["accuracy"])
model.fit(x, y, epochs=2, batch_size=16, validation_split=0.25)
""",
        (("tf.abs(", "tf.square("), ("> 2)", "> 1)"), ('activation="relu"', 'activation="tanh"')),
    ),
    Shape(
        "convolutions with augmentation layers",
        """
$imports
x = np.random.RandomState(0).rand(8, 8, 8, 1).astype("float32")
y = keras.utils.to_categorical(np.arange(8) % 2, 2)
# %%
keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        keras.Input(shape=(8, 8, 1)),
        layers.Rescaling(1.0 / 255),
        layers.RandomFlip("horizontal"),
        layers.RandomRotation(0.1),
        layers.Conv2D(4, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(2, activation="softmax"),
    ]
)
model.summary()
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
# %%
$fit
""",
        (("RandomRotation(0.1)", "RandomRotation(0.2)"), ("Dropout(0.5)", "Dropout(0.25)"), ("1.0 / 255", "1.0 / 127")),
    ),
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
    Shape(
        "a variational autoencoder",
        """
$imports

latent_dim = 2

class Sampling(layers.Layer):
    def call(self, inputs):
        mean, log_var = inputs
        epsilon = tf.random.normal(shape=tf.shape(mean))
        return mean + tf.exp(0.5 * log_var) * epsilon

class VAE(keras.Model):
    def __init__(self, encoder, decoder, beta=1.0, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.decoder, self.beta = encoder, decoder, beta
        self.total = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.total]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, log_var, z = self.encoder(data)
            error = tf.reduce_mean(tf.square(data - self.decoder(z)))
            kl = -0.5 * tf.reduce_mean(1 + log_var - tf.square(mean) - tf.exp(log_var))
            loss = error + self.beta * kl
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total.update_state(loss)
        return {"loss": self.total.result()}
# %%
keras.utils.set_random_seed(0)
inputs = keras.Input((4,))
h = layers.Dense(8, activation="relu")(inputs)
mean, log_var = layers.Dense(latent_dim, name="mean")(h), layers.Dense(latent_dim, name="log_var")(h)
encoder = keras.Model(inputs, [mean, log_var, Sampling()([mean, log_var])], name="encoder")
decoder = keras.Sequential([keras.Input((latent_dim,)), layers.Dense(4)], name="decoder")
model = VAE(encoder, decoder, beta=0.5)
model.compile(optimizer=keras.optimizers.Adam())
x = np.random.default_rng(0).random((16, 4)).astype("float32")
# %%
$wrap
model.fit(x, epochs=1, batch_size=8)
""",
        (
            ("beta=0.5", "beta=2.0"),
            ("tf.exp(0.5 * log_var)", "tf.exp(log_var)"),
            ("-0.5 * tf.reduce_mean", "-0.5 * tf.reduce_sum"),
            ("layers.Dense(8", "layers.Dense(9"),
        ),
    ),
    Shape(
        "a generator and a discriminator in a model",
        """
$imports

class GAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.latent_dim = latent_dim

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn

    def train_step(self, real):
        size = tf.shape(real)[0]
        noise = tf.random.normal((size, self.latent_dim))
        with tf.GradientTape() as tape:
            loss = self.loss_fn(tf.ones((size, 1)), self.discriminator(self.generator(noise)))
        grads = tape.gradient(loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        return {"loss": loss}
# %%
keras.utils.set_random_seed(0)
discriminator = keras.Sequential([keras.Input((2,)), layers.Dense(4), layers.LeakyReLU(0.2), layers.Dense(1)])
generator = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
model = GAN(discriminator, generator, latent_dim=3)
model.compile(
    d_optimizer=keras.optimizers.Adam(learning_rate=0.0003),
    g_optimizer=keras.optimizers.Adam(learning_rate=0.0003),
    loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
)
x = np.random.default_rng(0).random((16, 2)).astype("float32")
# %%
$wrap
model.fit(x, epochs=1, batch_size=8)
""",
        (
            (
                "g_optimizer=keras.optimizers.Adam(learning_rate=0.0003)",
                "g_optimizer=keras.optimizers.Adam(learning_rate=0.003)",
            ),
            ("from_logits=True", "from_logits=False"),
            ("LeakyReLU(0.2)", "LeakyReLU(0.3)"),
        ),
    ),
)
