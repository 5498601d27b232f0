# Magics, a counter, a callback that reads the model of a cell below, whose fit() failed first; cells run again.
# runs: 1 2 3 4 5 2 6 3 7
# %%
%matplotlib inline
import matplotlib.pyplot as plt
import numpy as np
import keras
import det_native as det
from sklearn.datasets import load_iris
# %%
iris = load_iris()
perm = np.random.permutation(150)
X = iris.data[perm]
Y = keras.utils.to_categorical(iris.target[perm])
count = 0
plt.plot(X[:, 0])
# %%
class Net(keras.Model):
    def __init__(self, n=8):
        super().__init__()
        self.d1 = keras.layers.Dense(n, activation="relu")
        self.d2 = keras.layers.Dense(3, activation="softmax")

    def call(self, x):
        return self.d2(self.d1(x))

def make(n=8):
    global count
    count += 1
    print("model", count)
    return Net(n)

class Look(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        sure = model.predict(X[:5], verbose=0).max(axis=1)
        print(f"epoch {epoch}: loss {logs['loss']:.3f}, sure of {np.round(sure, 2)}")
# %%
test_model = make()
test_model(X[:2]).shape
# %% raises
context = det.experimental.keras.init()
model = context.wrap_model(make())
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
model.fit(X, Y, epoch=4, batch_size=15, callbacks=[Look()])
# %%
!echo $HOME
test_model.summary()
# %%
%%time
context = det.experimental.keras.init()
model = context.wrap_model(make(16))
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
model.fit(X, Y, epochs=4, batch_size=15, callbacks=[Look()])
