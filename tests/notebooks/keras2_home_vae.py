# The VAE of keras.io: a sampling layer, a train_step, trackers; then samples of the decoder, and the latent space.
# same: vae.history.history, z_mean, z_log_var, digit, vae.encoder.get_weights(), vae.decoder.get_weights()
# same: float(vae.total_loss_tracker.result()), int(vae.optimizer.iterations)
# %%
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.datasets import load_digits
import det_native as det

context = det.experimental.keras.init({"name": "vae"})
keras.utils.set_random_seed(1234)
# %%
class Sampling(layers.Layer):
    """Uses (z_mean, z_log_var) to sample z, the vector encoding a digit."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.generator = tf.random.Generator.from_seed(1)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        epsilon = self.generator.normal(tf.shape(z_mean))
        return z_mean + tf.exp(0.5 * z_log_var) * epsilon
# %%
latent_dim = 2
encoder_inputs = keras.Input(shape=(64,))
x = layers.Dense(32, activation="relu")(encoder_inputs)
z_mean = layers.Dense(latent_dim, name="z_mean")(x)
z_log_var = layers.Dense(latent_dim, name="z_log_var")(x)
z = Sampling()([z_mean, z_log_var])
encoder = keras.Model(encoder_inputs, [z_mean, z_log_var, z], name="encoder")

latent_inputs = keras.Input(shape=(latent_dim,))
x = layers.Dense(32, activation="relu")(latent_inputs)
decoder = keras.Model(latent_inputs, layers.Dense(64, activation="sigmoid")(x), name="decoder")
# %%
class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.reconstruction_loss_tracker = keras.metrics.Mean(name="reconstruction_loss")
        self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.reconstruction_loss_tracker, self.kl_loss_tracker]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            z_mean, z_log_var, z = self.encoder(data)
            reconstruction = self.decoder(z)
            reconstruction_loss = tf.reduce_mean(64 * keras.losses.binary_crossentropy(data, reconstruction))
            kl_loss = -0.5 * (1 + z_log_var - tf.square(z_mean) - tf.exp(z_log_var))
            kl_loss = tf.reduce_mean(tf.reduce_sum(kl_loss, axis=1))
            total_loss = reconstruction_loss + kl_loss
        grads = tape.gradient(total_loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total_loss_tracker.update_state(total_loss)
        self.reconstruction_loss_tracker.update_state(reconstruction_loss)
        self.kl_loss_tracker.update_state(kl_loss)
        return {
            "loss": self.total_loss_tracker.result(),
            "reconstruction_loss": self.reconstruction_loss_tracker.result(),
            "kl_loss": self.kl_loss_tracker.result(),
        }
# %%
digits = load_digits().data.astype("float32") / 16
vae = context.wrap_model(VAE(encoder, decoder))
vae.compile(optimizer=keras.optimizers.Adam(0.003))
vae.fit(digits, epochs=4, batch_size=128)
# %%
z_mean, z_log_var, _ = vae.encoder.predict(digits)
print("latent space:", z_mean.min(axis=0), z_mean.max(axis=0))
# %%
digit = decoder.predict(np.array([[0.5, -0.5], [1.0, 1.0]]))
print((digit[0].reshape(8, 8) > 0.5).astype(int))
