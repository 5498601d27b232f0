# Transfer: a base trained on some digits is frozen, a head is trained on others, then all is tuned at a lower rate.
# same: history.history, history_fine.history, frozen, loss0, accuracy0, score, model.get_weights()
# same: base_model.get_weights(), acc, [layer.trainable for layer in model.layers], int(model.optimizer.iterations)
# %%
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
import det_native as det

X, y = load_digits(return_X_y=True)
X = X.reshape(-1, 8, 8, 1).astype("float32") / 16
source, target = y < 5, y >= 5
X_train, y_train = X[target][:700], y[target][:700] - 5
X_val, y_val = X[target][700:], y[target][700:] - 5
# %%
context = det.experimental.keras.init()
tf.keras.utils.set_random_seed(123)

base_model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(8, 3, activation="relu"),
    tf.keras.layers.BatchNormalization(),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(16, activation="relu"),
])
pretrained = tf.keras.Sequential([base_model, tf.keras.layers.Dense(5, activation="softmax")])
pretrained = context.wrap_model(pretrained)
pretrained.compile("adam", "sparse_categorical_crossentropy")
pretrained.fit(X[source], y[source], epochs=2, verbose=0)
# %%
base_model.trainable = False
inputs = tf.keras.Input(shape=(8, 8, 1))
x = base_model(inputs, training=False)
x = tf.keras.layers.Dropout(0.2)(x)
model = context.wrap_model(tf.keras.Model(inputs, tf.keras.layers.Dense(5)(x)))
model.compile(
    optimizer=tf.keras.optimizers.Adam(learning_rate=0.01),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
# %%
loss0, accuracy0 = model.evaluate(X_val, y_val)
print("initial accuracy: {:.2f}".format(accuracy0))
history = model.fit(X_train, y_train, epochs=3, validation_data=(X_val, y_val))
# %%
frozen = base_model.get_weights()
base_model.trainable = True
for layer in base_model.layers[:1]:
    layer.trainable = False
model.compile(
    optimizer=tf.keras.optimizers.RMSprop(learning_rate=0.001),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
# %%
history_fine = model.fit(X_train, y_train, epochs=6, initial_epoch=history.epoch[-1] + 1, validation_data=(X_val, y_val))
# %%
acc = history.history["accuracy"] + history_fine.history["accuracy"]
score = model.evaluate(X_val, y_val, return_dict=True)
print(acc, score)
