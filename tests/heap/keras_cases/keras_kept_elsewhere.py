import numpy as np, tensorflow as tf
from tensorflow import keras
keras.utils.set_random_seed(7)
x = np.ones((16, 4), "f"); y = x[:, :1]
class Own(keras.optimizers.SGD):
    def __init__(self): super().__init__(0.1, momentum=0.5); self.calls = 0; self._seen = []; self.rates = {}
    def apply_gradients(self, *a, **k): self.calls += 1; return super().apply_gradients(*a, **k)
class Error(keras.metrics.MeanAbsoluteError):
    def __init__(self): super().__init__(); self.asked = 0
    def result(self): self.asked += 1; return super().result()
class Note(keras.callbacks.Callback):
    def __init__(self, own): super().__init__(); self.own = own
    def on_epoch_end(self, e, logs=None):
        own = self.own; own._seen.append(e); own.rates[str(e)] = 0.5; own.best = sorted(logs); own.clipnorm = 2.0; own.slow = tf.Variable(3.0)
def made(optimizer, error):
    m = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)]); m.compile(optimizer, "mse", metrics=[error], run_eagerly=True); return m
own, inner, around = Own(), Own(), keras.mixed_precision.LossScaleOptimizer
error, wrapped = Error(), around(inner); m, n = made(own, error), made(wrapped, Error()); notes = [Note(own), Note(inner)]
def counters(m): return [m.asked for m in getattr(m, "_compile_metrics", getattr(m, "compiled_metrics", None))._user_metrics]
parts = [getattr(each, name, None) for each in (m, n) for name in ("compiled_metrics", "_compile_metrics")]
kept_elsewhere = [*m.weights, *n.weights, own, wrapped, *filter(None, parts)]
def own_parts(o): return o.calls, [*o._seen], dict(o.rates), [*o.best], o.clipnorm, float(o.slow)
#! train
m.fit(x, y, epochs=2, verbose=0, callbacks=[notes[0]]); n.fit(x, y, epochs=2, verbose=0, callbacks=[notes[1]])
#! check
own_parts(own), own_parts(inner), notes[0].own is m.optimizer is own
counters(m), counters(n), error.asked > 0
m.fit(x, y, verbose=0) and n.fit(x, y, verbose=0) and (len(own.variables), len(inner.variables), own.calls, inner.calls)
