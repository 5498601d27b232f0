import numpy as np, tensorflow as tf
from tensorflow import keras
x = np.ones((16, 2), "f"); y = np.ones((16, 1), "f")
def build():
    keras.utils.set_random_seed(1); return keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
beta = tf.Variable(0.0)
class A(keras.callbacks.Callback):
    def on_epoch_end(self, e, logs=None): beta.assign_add(1.0)
ma = build(); ma.compile("sgd", "mse")
teacher = build(); student = build(); student.compile("sgd", "mse")
class B(keras.callbacks.Callback):
    def on_epoch_end(self, e, logs=None): teacher.set_weights([0.5 * a + 0.5 * b for a, b in zip(teacher.get_weights(), student.get_weights())])
class C(keras.callbacks.Callback):
    def __init__(self, t): super().__init__(); self.teacher = t
    def on_epoch_end(self, e, logs=None): self.teacher.set_weights([0.5 * a + 0.5 * b for a, b in zip(self.teacher.get_weights(), self.model.get_weights())])
cb = C(build()); kept = cb.teacher; s2 = build(); s2.compile("sgd", "mse")
class D(keras.Model):
    def __init__(self): super().__init__(); self.s = build(); self.t = build()
    def call(self, v): return self.s(v)
    def train_step(self, data):
        r = super().train_step(data)
        for a, b in zip(self.t.variables, self.s.variables): a.assign(0.5 * a + 0.5 * b)
        return r
d = D(); d.compile("sgd", "mse")
gm = keras.metrics.Mean(); steps = []
class E(keras.Model):
    def __init__(self): super().__init__(); self.s = build()
    def call(self, v): return self.s(v)
    def train_step(self, data):
        r = super().train_step(data); gm.update_state(r["loss"]); steps.append(float(r["loss"])); return r
e_ = E(); e_.compile("sgd", "mse", run_eagerly=True)
state = {"best": None}; tracker = type("T", (), {})()
class F(keras.callbacks.Callback):
    def on_epoch_end(self, e, logs=None):
        self.model.layers[-1].trainable = False; self.model.note = e; state["best"] = [w.copy() for w in self.model.get_weights()]; tracker.last = logs["loss"]
f = build(); f.compile("sgd", "mse", metrics=["mae"])
enc = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(2)]); i = keras.Input((2,)); g = keras.Model(i, keras.layers.Dense(1)(enc(i)))
keras.utils.set_random_seed(3); g.compile("adam", "mse", metrics=[keras.metrics.MeanAbsoluteError(), keras.metrics.RootMeanSquaredError()])
es = keras.callbacks.EarlyStopping(monitor="loss", patience=1, restore_best_weights=True); rl = keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=10.0)
csvs = keras.callbacks.CSVLogger("log.csv"); lam = keras.callbacks.LambdaCallback(on_epoch_end=lambda e, logs: steps.append(e))
custom = build(); copt = keras.optimizers.Adam(0.01); cgen = tf.random.Generator.from_seed(3); acc = keras.metrics.MeanSquaredError()
class Noisy(keras.layers.Layer):
    def __init__(self): super().__init__(); self.g = tf.random.Generator.from_seed(5); self.count = 0; self.log = []; self.info = {"n": 0}
    def call(self, v, training=None): self.count += 1; self.log.append(1); self.info["n"] += 1; return v + self.g.normal(tf.shape(v)) * 0.01
class Seq(keras.utils.Sequence):
    def __init__(self): self.epochs = 0; self.order = np.arange(16)
    def __len__(self): return 4
    def __getitem__(self, k): s = self.order[k * 4:k * 4 + 4]; return x[s], y[s]
    def on_epoch_end(self): self.epochs += 1; np.random.shuffle(self.order)
seq = Seq(); keras.utils.set_random_seed(5); nz = keras.Sequential([keras.layers.Input((2,)), Noisy(), keras.layers.Dropout(0.5), keras.layers.Dense(1)]); nz.compile(keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)), "mse")
grow = build(); uncompiled = build()

#! train
ha = ma.fit(x, y, epochs=2, verbose=0, callbacks=[A()])
hb = student.fit(x, y, epochs=2, verbose=0, callbacks=[B()])
hc = s2.fit(x, y, epochs=2, verbose=0, callbacks=[cb])
hd = d.fit(x, y, epochs=2, verbose=0)
he = e_.fit(x, y, epochs=2, verbose=0)
hf = f.fit(x, y, epochs=2, verbose=0, validation_data=(x, y), callbacks=[F()])
hg = g.fit(x, y, epochs=4, verbose=0, callbacks=[es, rl, csvs, lam])
for step in range(3):
    with tf.GradientTape() as tape: loss = tf.reduce_mean((custom(x) - y + cgen.normal((16, 1))) ** 2)
    copt.apply_gradients(zip(tape.gradient(loss, custom.trainable_variables), custom.trainable_variables)); acc.update_state(y, custom(x))
hn = nz.fit(seq, epochs=2, verbose=0)
grow.add(keras.layers.Dense(2)); grow.compile("sgd", "mse"); grow.fit(x, y, epochs=1, verbose=0)
uncompiled.compile(keras.optimizers.RMSprop(0.1), "mae", metrics=["mse"]); uncompiled.fit(x, y, epochs=1, verbose=0)
fresh = build(); fresh.compile("adam", "mse"); fresh.fit(x, y, epochs=1, verbose=0)

#! check
float(beta), ha.history, ha.model is ma
round(float(teacher(x[:1])), 5), student.get_weights()
round(float(cb.teacher(x[:1])), 5), cb.teacher is kept
round(float(d.t(x[:1])), 5), round(float(d(x[:1])), 5)
round(float(gm.result()), 5), [round(v, 4) for v in steps]
f.layers[-1].trainable, getattr(f, "note", None), len(state["best"]), round(getattr(tracker, "last", -1), 4), sorted(f.history.history)
round(float(tf.reduce_sum(enc(x[:1]))), 5), es.best, es.wait, es.stopped_epoch, rl.cooldown_counter, round(float(g.optimizer.learning_rate), 7), es.model is g
custom.get_weights(), int(copt.iterations), [v.numpy().sum().round(5) for v in copt.variables], float(acc.result()), cgen.normal((2,)).numpy()
seq.epochs, seq.order, nz.layers[0].count, len(nz.layers[0].log), dict(nz.layers[0].info), nz.get_weights()
float(nz.optimizer.learning_rate), int(nz.optimizer.iterations), nz.layers[0].g.normal((2,)).numpy()
len(grow.layers), grow.predict(x[:1], verbose=0)
uncompiled.evaluate(x, y, verbose=0), uncompiled.optimizer.get_config()["name"], [v.numpy().sum().round(5) for v in uncompiled.optimizer.variables]
fresh.predict(x[:1], verbose=0), int(fresh.optimizer.iterations)
g.evaluate(x, y, verbose=0)
ma.fit(x, y, epochs=2, verbose=0).history, student.fit(x, y, epochs=1, verbose=0).history
g.fit(x, y, epochs=2, verbose=0, shuffle=False).history
f.fit(x, y, epochs=1, verbose=0).history, d.fit(x, y, epochs=1, verbose=0).history
uncompiled.fit(x, y, epochs=1, verbose=0).history, fresh.fit(x, y, epochs=1, verbose=0).history
grow.fit(x, y, epochs=1, verbose=0).history
(s2.save("s2.keras"), keras.models.load_model("s2.keras").predict(x[:1], verbose=0))[1]
#! left
