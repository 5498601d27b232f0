# Callbacks with time, os and np; a schedule by a lambda; a folder named by the date; one callback looks at the model.
# %%
import os, time, datetime
import numpy as np
import tensorflow as tf
import det_native as det
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

log_dir = os.path.join("logs", datetime.datetime.now().strftime("%Y%m%d-%H%M%S"))
os.makedirs(log_dir, exist_ok=True)

x, y = load_iris(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, stratify=y)

class TimeHistory(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.created = time.time()
        self.times = []

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.perf_counter() - self.began)
        with open(os.path.join(log_dir, "times.txt"), "a") as file:
            file.write(f"{epoch}: {np.mean(self.times):.3f}s at {datetime.datetime.now()}\n")

class Confusion(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs={}):
        predicted = np.argmax(model.predict(x_test, verbose=0), axis=1)
        logs["test_accuracy"] = float(np.mean(predicted == y_test))
        print(f"{time.ctime()} pid {os.getpid()}: test accuracy {logs['test_accuracy']:.3f}")
# %%
def build_model(units=12):
    return tf.keras.Sequential([
        tf.keras.layers.Input((4,)),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(units, "tanh", kernel_regularizer=tf.keras.regularizers.l2(1e-4)),
        tf.keras.layers.Dense(3, "softmax"),
    ])

context = det.experimental.keras.init()
model = context.wrap_model(build_model())
model.compile(tf.keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
callbacks = [
    TimeHistory(),
    Confusion(),
    tf.keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.9 if epoch > 1 else lr),
    tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True),
    tf.keras.callbacks.ReduceLROnPlateau(patience=1),
    tf.keras.callbacks.CSVLogger(os.path.join(log_dir, "training.csv")),
    tf.keras.callbacks.LambdaCallback(on_train_end=lambda logs: print("done", time.time())),
]
start = time.time()
history = model.fit(x_train, y_train, validation_split=0.2, epochs=4, batch_size=16, callbacks=callbacks, verbose=2)
print(f"took {time.time() - start:.1f}s")
