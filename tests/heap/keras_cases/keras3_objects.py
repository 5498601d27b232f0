import os; os.environ["KERAS_BACKEND"] = "tensorflow"
import numpy as np, keras
keras.utils.set_random_seed(3)
x = np.ones((16, 2), "f"); y = np.ones((16, 1), "f")
def build(): return keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(3), keras.layers.Dropout(0.2), keras.layers.Dense(1)])
student, teacher = build(), build(); beta = keras.Variable(0.0); seen = []; counts = {"steps": 0}
class Own(keras.Model):
    def __init__(self): super().__init__(); self.s = student; self.steps_made = 0; self.log = []
    def call(self, v, training=False): return self.s(v, training=training)
    def train_step(self, data):
        counts["steps"] += 1; self.steps_made += 1; self.log.append(1); return super().train_step(data)
class Mean(keras.callbacks.Callback):
    def __init__(self): super().__init__(); self.losses = []
    def on_epoch_end(self, epoch, logs=None):
        teacher.set_weights([0.5 * a + 0.5 * b for a, b in zip(teacher.get_weights(), student.get_weights())]); beta.assign(0.1 * (epoch + 1)); seen.append(float(logs["loss"])); self.losses.append(epoch)
        if epoch == 1: student.layers[0].trainable = False
m = Own(); m.compile(keras.optimizers.Adam(0.01), "mse", run_eagerly=True, metrics=["mae"])
mean = Mean(); es = keras.callbacks.EarlyStopping(monitor="loss", patience=2, restore_best_weights=True); met = keras.metrics.MeanSquaredError(); aux = build(); aux.compile("adam", "mse")
gen = keras.random.SeedGenerator(3); opt = keras.optimizers.SGD(0.1, momentum=0.9); kept = teacher
#! train
h = m.fit(x, y, epochs=3, verbose=0, callbacks=[mean, es]); met.update_state(y, m(x)); ha = aux.fit(x, y, epochs=2, verbose=0)
opt.build(teacher.trainable_variables); opt.apply([0.1 * keras.ops.ones(v.shape) for v in teacher.trainable_variables]); drawn = keras.random.normal((2,), seed=gen)
fresh = build()
#! check
seen, float(beta), counts, m.steps_made, len(m.log), mean.losses
[round(float(np.sum(w)), 5) for w in teacher.get_weights()], [round(float(np.sum(w)), 5) for w in m.get_weights()], kept is teacher, mean.model is m
student.layers[0].trainable, es.best, es.wait, es.stopped_epoch, m.stop_training, float(met.result())
[round(float(np.sum(v.numpy())), 5) for v in opt.variables], keras.random.normal((2,), seed=gen).numpy()
[round(float(np.sum(v.numpy())), 5) for v in aux.optimizer.variables], aux.predict(x[:1], verbose=0)
opt.apply([0.1 * keras.ops.ones(v.shape) for v in teacher.trainable_variables])
[round(float(np.sum(w)), 5) for w in teacher.get_weights()]
aux.fit(x, y, epochs=1, verbose=0).history
m.fit(x, y, epochs=1, verbose=0, shuffle=False).history.keys()
fresh.predict(x[:1], verbose=0)
#! left
