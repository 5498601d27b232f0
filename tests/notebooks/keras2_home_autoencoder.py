# An autoencoder whose encoder is a model of its own: its codes train a classifier of scikit-learn.
# same: history.history, codes, accuracy, decoder.predict(codes[:3], verbose=0), encoder.get_weights(), decoder.get_weights()
# same: autoencoder.get_weights(), autoencoder.optimizer.variables()
# %%
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, Model
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
import det_native as det
# %%
context = det.experimental.keras.init()
tf.keras.utils.set_random_seed(7)
# %%
X, y = load_digits(return_X_y=True)
X = X.astype("float32") / 16.0
X_train, X_test = X[:1400], X[1400:]
# %%
inp = layers.Input(shape=(64,))
h = layers.Dense(32, activation="relu")(inp)
code = layers.Dense(8, activation="relu", name="code")(h)
encoder = Model(inp, code, name="encoder")

dec_in = layers.Input(shape=(8,))
dec_out = layers.Dense(64, activation="sigmoid")(layers.Dense(32, activation="relu")(dec_in))
decoder = Model(dec_in, dec_out, name="decoder")

autoencoder = context.wrap_model(Model(inp, decoder(encoder(inp)), name="autoencoder"))
autoencoder.compile(optimizer="adam", loss="binary_crossentropy")
# %%
history = autoencoder.fit(X_train, X_train, epochs=5, batch_size=64, shuffle=True, validation_data=(X_test, X_test), verbose=0)
# %%
codes = encoder.predict(X, verbose=0)
classifier = LogisticRegression(max_iter=500).fit(codes[:1400], y[:1400])
accuracy = classifier.score(codes[1400:], y[1400:])
print("accuracy on the codes: %.3f" % accuracy)
