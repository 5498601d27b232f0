import numpy as np, tensorflow as tf
from tensorflow import keras
keras.utils.set_random_seed(7)
x = np.ones((16, 4), "f"); y = x[:, :1]
class Own(keras.optimizers.legacy.SGD):
    def __init__(self): super().__init__(0.1, momentum=0.5); self.calls = 0; self._seen = []
    def apply_gradients(self, *a, **k): self.calls += 1; return super().apply_gradients(*a, **k)
class Note(keras.callbacks.Callback):
    def on_epoch_end(self, e, logs=None): own._seen.append(e); own.best = sorted(logs); own.slow = tf.Variable(3.0)
own = Own(); m = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)]); m.compile(own, "mse", run_eagerly=True)
kept_elsewhere = [*m.weights, own]
#! train
m.fit(x, y, epochs=2, verbose=0, callbacks=[Note()])
#! check
own.calls, own._seen, own.best, float(own.slow), m.optimizer is own
m.fit(x, y, verbose=0) and (len(own.variables()), own.calls)
