# All in one cell: CSVLogger, its file read by pandas behind fit() and drawn; a log of the same name from before; then read again in a cell below.
# same: log, best_epoch, shown.shape, columns, sorted(os.listdir("results"))
# %%
import os
os.makedirs("results", exist_ok=True)
with open("results/training_log.csv", "w") as f:
    f.write("epoch,loss\n0,99.0\n")
# %%
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
import tensorflow as tf
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
import det_native as det

context = det.experimental.keras.init()
tf.random.set_seed(3)
np.random.seed(3)
data = load_wine()
X, y = StandardScaler().fit_transform(data.data), data.target
model = context.wrap_model(tf.keras.Sequential([
    tf.keras.layers.Input((13,)),
    tf.keras.layers.Dense(16, activation="relu", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1)),
    tf.keras.layers.Dense(3, activation="softmax", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2)),
]))
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(X, y, epochs=5, batch_size=16, shuffle=False, verbose=0,
          callbacks=[tf.keras.callbacks.CSVLogger(os.path.join(os.getcwd(), "results", "training_log.csv"))])
log = pd.read_csv("results/training_log.csv")
log.plot(x="epoch", y=["loss", "accuracy"], title="Training")
plt.savefig("results/curves.png")
plt.show()
best_epoch = int(log["loss"].idxmin())
print(log.tail(2), best_epoch)
# %%
shown = plt.imread("results/curves.png")
columns = list(pd.read_csv("results/training_log.csv", sep=",").columns)
assert len(log) == 5 and log.loss.max() < 10
