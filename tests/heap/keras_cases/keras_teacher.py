import numpy as np, tensorflow as tf
from tensorflow import keras
keras.utils.set_random_seed(19)
x = np.random.default_rng(2).normal(size=(64, 4)).astype("f"); y = x[:, :1] * 3
def build(): return keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(6, "tanh"), keras.layers.BatchNormalization(), keras.layers.Dense(1)])
student, teacher = build(), build()
teacher.set_weights(student.get_weights())
beta = tf.Variable(0.0, trainable=False, name="beta")
seen = tf.Variable(0, trainable=False, dtype=tf.int64)
class Count(keras.layers.Layer):
    def __init__(self): super().__init__(); self.calls_made = 0; self.hits = self.add_weight("hits", shape=(), initializer="zeros", trainable=False)
    def call(self, v): self.hits.assign_add(1.0); return v
class Distil(keras.Model):
    def __init__(self, s): super().__init__(); self.s = s; self.c = Count()
    def call(self, v, training=None): return self.c(self.s(v, training=training))
    def train_step(self, data):
        a, b = data
        with tf.GradientTape() as t:
            p = self(a, training=True); loss = self.compiled_loss(b, p) + beta * tf.reduce_mean(tf.square(p - teacher(a, training=False)))
        self.optimizer.apply_gradients(zip(t.gradient(loss, self.trainable_variables), self.trainable_variables)); seen.assign_add(tf.shape(a, out_type=tf.int64)[0])
        return {"loss": loss}
class Mean(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        teacher.set_weights([0.8 * a + 0.2 * b for a, b in zip(teacher.get_weights(), student.get_weights())])
    def on_epoch_end(self, epoch, logs=None):
        beta.assign(0.1 * (epoch + 1))
        if epoch == 1: student.layers[0].trainable = False
        keras.backend.set_value(self.model.optimizer.learning_rate, 0.01 / (epoch + 1))
m = Distil(student)
m.compile(keras.optimizers.Adam(0.01), "mse"); mean = Mean(); first = student.layers[0]

#! train
h = m.fit(x, y, epochs=3, batch_size=16, verbose=0, callbacks=[mean])

#! check
[round(float(v), 6) for v in h.history["loss"]], round(float(beta), 4), int(seen), float(m.c.hits), student.layers[0].trainable, round(float(m.optimizer.learning_rate), 6)
round(float(np.sum([w.sum() for w in student.get_weights()])), 6), round(float(np.sum([w.sum() for w in teacher.get_weights()])), 6)
round(float(teacher.predict(x[:4], verbose=0).sum()), 6), m.stop_training, int(m.optimizer.iterations), h.epoch, m.history is h
mean.model is m, first is student.layers[0], m.s is student, h.model is m
len(m.optimizer.variables), [round(float(tf.reduce_sum(tf.cast(v, tf.float32))), 5) for v in m.optimizer.variables]
round(float(m(x[:4]).numpy().sum()), 5)
[round(v, 4) for v in m.fit(x, y, epochs=2, batch_size=16, verbose=0, callbacks=[mean], shuffle=False).history["loss"]]
round(float(np.sum([w.sum() for w in teacher.get_weights()])), 5)
#! left
