# The GAN of keras.io: two models, two optimizers, a train_step; then images of the generator, judged by the discriminator.
# same: gan.history.history, images, verdict, generator.get_weights(), discriminator.get_weights()
# same: gan.d_optimizer.variables(), gan.g_optimizer.variables(), int(gan.g_optimizer.iterations)
# %%
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.datasets import load_digits
import det_native as det
# %%
context = det.experimental.keras.init()
keras.utils.set_random_seed(0)
LATENT = 16
real = (load_digits().data / 8.0 - 1.0).astype("float32")
# %%
discriminator = keras.Sequential(
    [keras.Input((64,)), layers.Dense(32), layers.LeakyReLU(0.2), layers.Dropout(0.3), layers.Dense(1)],
    name="discriminator",
)
generator = keras.Sequential(
    [keras.Input((LATENT,)), layers.Dense(32), layers.BatchNormalization(), layers.LeakyReLU(0.2), layers.Dense(64, activation="tanh")],
    name="generator",
)
# %%
class GAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.latent_dim = latent_dim

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.loss_fn = loss_fn
        self.d_loss_metric = keras.metrics.Mean(name="d_loss")
        self.g_loss_metric = keras.metrics.Mean(name="g_loss")

    @property
    def metrics(self):
        return [self.d_loss_metric, self.g_loss_metric]

    def train_step(self, real_images):
        batch_size = tf.shape(real_images)[0]
        noise = tf.random.normal(shape=(batch_size, self.latent_dim))
        fake = self.generator(noise, training=True)
        labels = tf.concat([tf.ones((batch_size, 1)), tf.zeros((batch_size, 1))], axis=0)
        with tf.GradientTape() as tape:
            predictions = self.discriminator(tf.concat([fake, real_images], axis=0), training=True)
            d_loss = self.loss_fn(labels, predictions)
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))

        noise = tf.random.normal(shape=(batch_size, self.latent_dim))
        with tf.GradientTape() as tape:
            predictions = self.discriminator(self.generator(noise, training=True))
            g_loss = self.loss_fn(tf.zeros((batch_size, 1)), predictions)
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        self.d_loss_metric.update_state(d_loss)
        self.g_loss_metric.update_state(g_loss)
        return {"d_loss": self.d_loss_metric.result(), "g_loss": self.g_loss_metric.result()}
# %%
gan = context.wrap_model(GAN(discriminator=discriminator, generator=generator, latent_dim=LATENT))
gan.compile(
    d_optimizer=keras.optimizers.Adam(learning_rate=0.0003, beta_1=0.5),
    g_optimizer=keras.optimizers.Adam(learning_rate=0.001, beta_1=0.5),
    loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
)
gan.fit(real, epochs=4, batch_size=64)
# %%
random_latent_vectors = np.random.default_rng(3).normal(size=(10, LATENT))
images = generator(random_latent_vectors).numpy().reshape(-1, 8, 8)
print(images.mean(), images.std())
# %%
verdict = discriminator.predict(np.concatenate([images.reshape(10, 64), real[:10]]))
print("fake:", verdict[:10].mean(), "real:", verdict[10:].mean())
