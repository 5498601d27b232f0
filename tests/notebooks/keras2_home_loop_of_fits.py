# An LSTM on a sine wave, fit epoch by epoch; after each it is evaluated, and goes on with its own predictions.
# same: losses, generated, scores, model.get_weights(), int(model.optimizer.iterations)
# %%
import numpy as np
import tensorflow as tf
from tensorflow.keras.models import Sequential
from tensorflow.keras.layers import LSTM, Dense, Input
import det_native as det

context = det.experimental.keras.init()
tf.keras.utils.set_random_seed(5)
# %%
wave = np.sin(np.arange(400) / 8.0) + np.random.normal(scale=0.05, size=400)
window = 12
X = np.array([wave[i:i + window] for i in range(len(wave) - window)])[..., None]
Y = wave[window:]
X_train, Y_train, X_test, Y_test = X[:300], Y[:300], X[300:], Y[300:]
# %%
model = context.wrap_model(Sequential([Input((window, 1)), LSTM(8), Dense(1)]))
model.compile(loss="mse", optimizer="adam")
# %%
losses, scores, generated = [], [], []
for epoch in range(3):
    print("epoch", epoch + 1)
    history = model.fit(X_train, Y_train, epochs=1, batch_size=30, verbose=0)
    losses.append(history.history["loss"][0])
    scores.append(model.evaluate(X_test, Y_test, verbose=0))
    seed = list(wave[:window])
    for _ in range(4):
        seed.append(float(model.predict(np.array(seed[-window:])[None, :, None], verbose=0)[0, 0]))
    generated.append(seed[window:])
    print("loss %.4f, test %.4f, goes on with %s" % (losses[-1], scores[-1], np.round(generated[-1], 3)))
