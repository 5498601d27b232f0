# A PyDataset that augments with np.random and random, shuffles at an epoch's end, and reads a file it was given.
# %%
import math, random
import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
import det_native as det

images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1) / 16
np.savez("digits.npz", images=images, labels=labels)
x_train, x_val, y_train, y_val = train_test_split(images, labels, test_size=0.2, random_state=1)

class Batches(keras.utils.PyDataset):
    def __init__(self, x, y, batch_size, augment=None, **kwargs):
        super().__init__(**kwargs)
        self.x, self.y, self.batch_size, self.augment = x, y, batch_size, augment
        self.order = np.arange(len(x))
        self.on_epoch_end()

    def __len__(self):
        return math.ceil(len(self.x) / self.batch_size)

    def __getitem__(self, index):
        rows = self.order[index * self.batch_size:(index + 1) * self.batch_size]
        x = self.x[rows]
        if self.augment is not None:
            x = np.stack([self.augment(image) for image in x])
        return x, self.y[rows]

    def on_epoch_end(self):
        np.random.shuffle(self.order)

def jitter(image):
    return np.roll(image, random.choice([-1, 0, 1]), axis=1) + np.random.normal(0, 0.02, image.shape)
# %%
with np.load("digits.npz") as file:
    print(file["images"].shape)
train = Batches(x_train, y_train, 64, augment=jitter)
val = Batches(x_val, y_val, 128)
train[0][0].shape
# %%
context = det.experimental.keras.init({"hyperparameters": {"filters": 8, "global_batch_size": 64}})
model = context.wrap_model(keras.Sequential([
    keras.Input((8, 8, 1)),
    keras.layers.Conv2D(context.get_hparam("filters"), 3, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(10, activation="softmax"),
]))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train, validation_data=val, epochs=2)
