"""Data of Keras as arrays and as tf.data."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "validation_data, and its own weights",
        """
$imports
# %%
$data
x_val, y_val = x[:4] + 1, y[:4]
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(x, y, validation_data=(x_val, y_val, np.full(4, 0.5)), epochs=1)
""",
        (("x[:4] + 1", "x[:4] + 2"), ("np.full(4, 0.5)", "np.full(4, 0.7)")),
    ),
    Shape(
        "tf.data with map, shuffle, batch and prefetch",
        """
$imports

def scale(image, label):
    return tf.cast(image, tf.float32) / 255.0, label
# %%
$data
ds = tf.data.Dataset.from_tensor_slices((x, y)).map(scale).shuffle(16).batch(4).prefetch(tf.data.AUTOTUNE)
# %% look
for a, b in ds.take(1):
    print(a.shape)
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(ds, epochs=1)
""",
        (
            ("/ 255.0", "/ 127.0"),
            ("np.arange(64", "np.arange(1, 65"),
            (".batch(4)", ".batch(8)"),
            (".shuffle(16)", ".shuffle(4)"),
        ),
    ),
    Shape(
        "tf.data with augmentation by random operations",
        """
$imports
# %%
images = np.random.RandomState(1).randint(0, 255, (8, 4, 4, 3)).astype("uint8")
labels = np.arange(8) % 2
IMG_SIZE = 4

def augment(image, label):
    image = tf.image.resize(image, [IMG_SIZE, IMG_SIZE]) / 255.0
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, max_delta=0.5)
    return tf.clip_by_value(image, 0, 1), label

def make(batch=4, train=True):
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    if train:
        ds = ds.shuffle(8).map(augment)
    return ds.batch(batch)

train_ds, val_ds = make(), make(train=False)
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4, 4, 3)), layers.Flatten(), layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
# %%
$wrap
model.fit(train_ds, validation_data=val_ds, epochs=1)
""",
        (
            ("max_delta=0.5", "max_delta=0.2"),
            ("RandomState(1)", "RandomState(2)"),
            ("from_logits=True", "from_logits=False"),
            ("random_flip_left_right", "random_flip_up_down"),
        ),
    ),
    Shape(
        "tf.data by from_generator",
        """
$imports
# %%
def samples():
    for i in range(16):
        yield np.full(4, i, "float32"), np.float32(i % 2)

ds = tf.data.Dataset.from_generator(
    samples,
    output_signature=(tf.TensorSpec((4,), tf.float32), tf.TensorSpec((), tf.float32)),
).batch(4)
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(ds, epochs=1, steps_per_epoch=4)
""",
        (("np.full(4, i,", "np.full(4, 2 * i,"), ("i % 2)", "i % 3)")),
    ),
    Shape(
        "tf.data with py_function and filter",
        """
$imports
# %%
def slow(a):
    return np.sqrt(np.abs(a)).astype("float32")

def wrapped(a, b):
    out = tf.numpy_function(slow, [a], tf.float32)
    out.set_shape((4,))
    return out, b
# %%
$data
ds = tf.data.Dataset.from_tensor_slices((x, y)).filter(lambda a, b: a[0] < 50).map(wrapped).batch(4)
# %%
$model
model.compile("adam", "mse")
# %%
$wrap
model.fit(ds, epochs=1, steps_per_epoch=3)
""",
        (("np.sqrt(np.abs(a))", "np.square(np.abs(a))"), ("a[0] < 50", "a[0] < 40")),
    ),
    Shape(
        "image_dataset_from_directory of a folder that is made",
        """
$imports
from pathlib import Path

for kind in ("cats", "dogs"):
    folder = Path("images") / kind
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(4):
        keras.utils.save_img(folder / f"{i}.png", np.full((4, 4, 3), 20 * i))
train_ds = keras.utils.image_dataset_from_directory("images", image_size=(4, 4), batch_size=4, seed=123)
class_names = train_ds.class_names
# %%
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4, 4, 3)), layers.Flatten(), layers.Dense(len(class_names))])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
# %%
$wrap
model.fit(train_ds, epochs=1)
""",
        (("seed=123", "seed=124"), ("batch_size=4", "batch_size=2")),
    ),
)
