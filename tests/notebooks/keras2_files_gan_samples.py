# A GAN whose callback draws samples into a folder each epoch, glob and imread in a cell below; cells run out of order, and twice.
# runs: 1 2 4 3 5 4 6 7 3 7
# same: shapes, means, [path.name for path in files], sorted(os.listdir(".")), last.shape, generator.get_weights()
# %%
import os
from pathlib import Path
import det_native as det
context = det.experimental.keras.init()
# %%
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.datasets import load_digits
tf.keras.utils.set_random_seed(11)
LATENT = 8
images = (load_digits().data[:512] / 8.0 - 1.0).astype("float32")
SAMPLES = Path("samples")
# %%
class GANMonitor(keras.callbacks.Callback):
    import matplotlib.pyplot as plt

    def __init__(self, folder, num_img=4):
        self.folder, self.num_img = folder, num_img
        self.noise = np.random.default_rng(0).normal(size=(num_img, LATENT)).astype("float32")

    def on_epoch_end(self, epoch, logs=None):
        generated = self.model.generator(self.noise).numpy().reshape(-1, 8, 8)
        fig, axes = self.plt.subplots(1, self.num_img, figsize=(4, 1))
        for image, ax in zip(generated, axes):
            ax.imshow(image, cmap="gray")
            ax.axis("off")
        self.plt.savefig(f"{self.folder}/generated_{epoch:03d}.png")
        self.plt.close(fig)
        det.log_image("samples", (generated + 1) / 2)
# %%
class GAN(keras.Model):
    def __init__(self, generator, discriminator):
        super().__init__()
        self.generator, self.discriminator = generator, discriminator
        self.g_loss, self.d_loss = keras.metrics.Mean(name="g_loss"), keras.metrics.Mean(name="d_loss")

    def compile(self, g_optimizer, d_optimizer, loss_fn):
        super().compile()
        self.g_optimizer, self.d_optimizer, self.loss_fn = g_optimizer, d_optimizer, loss_fn

    @property
    def metrics(self):
        return [self.g_loss, self.d_loss]

    def train_step(self, real):
        batch = tf.shape(real)[0]
        noise = tf.random.normal((batch, LATENT))
        with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
            fake = self.generator(noise, training=True)
            fake_out, real_out = self.discriminator(fake, training=True), self.discriminator(real, training=True)
            g_loss = self.loss_fn(tf.ones_like(fake_out), fake_out)
            d_loss = self.loss_fn(tf.ones_like(real_out), real_out) + self.loss_fn(tf.zeros_like(fake_out), fake_out)
        weights = self.generator.trainable_weights
        self.g_optimizer.apply_gradients(zip(g_tape.gradient(g_loss, weights), weights))
        weights = self.discriminator.trainable_weights
        self.d_optimizer.apply_gradients(zip(d_tape.gradient(d_loss, weights), weights))
        self.g_loss.update_state(g_loss)
        self.d_loss.update_state(d_loss)
        return {"g_loss": self.g_loss.result(), "d_loss": self.d_loss.result()}
# %%
generator = keras.Sequential([keras.Input((LATENT,)), layers.Dense(32, activation="relu"), layers.Dense(64, activation="tanh")])
discriminator = keras.Sequential([keras.Input((64,)), layers.Dense(32), layers.LeakyReLU(0.2), layers.Dense(1)])
gan = context.wrap_model(GAN(generator, discriminator))
gan.compile(keras.optimizers.Adam(1e-3), keras.optimizers.Adam(1e-3), keras.losses.BinaryCrossentropy(from_logits=True))
SAMPLES.mkdir(exist_ok=True)
# %%
gan.fit(images, epochs=3, batch_size=64, callbacks=[GANMonitor(SAMPLES)], verbose=0)
# %%
import glob
import matplotlib.pyplot as plt
files = sorted(SAMPLES.glob("*.png"))
shapes = [plt.imread(path).shape for path in files]
means = [round(float(plt.imread(path)[..., :3].mean()), 3) for path in sorted(glob.glob("samples/generated_*.png"))]
last = plt.imread(files[-1])
plt.imshow(last)
plt.title(files[-1].stem)
plt.show()
assert len(files) == 3
