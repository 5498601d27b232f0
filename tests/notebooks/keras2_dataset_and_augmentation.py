# tf.data: map with lambdas and random operations, shuffle, batch, prefetch; layers that augment; a split by take and skip.
# %%
import tensorflow as tf
import numpy as np
import det_native as det
from sklearn.datasets import load_digits

AUTOTUNE = tf.data.AUTOTUNE
BATCH_SIZE = 64
tf.random.set_seed(1)

images, labels = load_digits(return_X_y=True)
images = images.reshape((-1, 8, 8, 1)).astype("float32")
print(images.shape, np.bincount(labels))
ds = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1800, seed=0, reshuffle_each_iteration=False)
n_val = int(0.2 * len(images))
val_ds, train_ds = ds.take(n_val), ds.skip(n_val)

def augment(image, label):
    image = tf.image.random_brightness(image, 0.1, seed=2)
    image = tf.pad(image, [[1, 1], [1, 1], [0, 0]])
    image = tf.image.random_crop(image, (8, 8, 1), seed=3)
    return image, label

scale = lambda image, label: (tf.cast(image, tf.float32) / 16.0, label)
train_ds = train_ds.map(scale, num_parallel_calls=AUTOTUNE).map(augment).batch(BATCH_SIZE).prefetch(AUTOTUNE)
val_ds = val_ds.map(scale).batch(BATCH_SIZE).cache()
# %%
for batch, _ in train_ds.take(1):
    print(batch.shape, float(tf.reduce_max(batch)))
# %%
augmentation = tf.keras.Sequential([
    tf.keras.layers.RandomRotation(0.02),
    tf.keras.layers.RandomZoom(0.1),
])
context = det.experimental.keras.init()
model = tf.keras.Sequential([
    tf.keras.Input((8, 8, 1)),
    augmentation,
    tf.keras.layers.Conv2D(8, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(10),
])
model = context.wrap_model(model)
model.compile(
    optimizer=tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.ExponentialDecay(0.01, 20, 0.9)),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="acc")],
)
model.fit(train_ds, validation_data=val_ds, epochs=2)
