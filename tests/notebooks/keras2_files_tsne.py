# A callback draws a t-SNE of the hidden features when the training ends, and saves them by NumPy; no seeds before init(), absolute paths by os.path.
# same: embedding.shape, np.isfinite(embedding).all(), figure.shape, labels, features, sorted(os.listdir(OUTPUT_DIR))
# %%
import os
OUTPUT_DIR = os.path.abspath("output")
if not os.path.exists(OUTPUT_DIR):
    os.makedirs(OUTPUT_DIR)
# %%
import numpy as np
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
x, labels = load_digits(return_X_y=True)
x, labels = x[:150].astype("float32") / 16, labels[:150]
# %%
import keras
class HiddenFeatures(keras.callbacks.Callback):
    def __init__(self, layer, x, labels):
        super().__init__()
        self.layer, self.x, self.labels = layer, x, labels

    def on_train_end(self, logs=None):
        encoder = keras.Model(self.model.input, self.model.get_layer(self.layer).output)
        features = encoder(self.x).numpy()
        points = TSNE(perplexity=20, random_state=0, max_iter=250, init="random").fit_transform(features)
        np.savez(os.path.join(OUTPUT_DIR, "features.npz"), features=features, points=points)
        plt.figure(figsize=(4, 4))
        plt.scatter(points[:, 0], points[:, 1], c=self.labels, cmap="tab10", s=8)
        plt.title("t-SNE of the hidden features")
        plt.savefig(os.path.join(OUTPUT_DIR, "tsne.png"))
        plt.show()
# %%
import det_native as det
context = det.experimental.keras.init()
keras.utils.set_random_seed(5)
inputs = keras.Input((64,))
hidden = keras.layers.Dense(16, activation="relu", name="hidden")(inputs)
outputs = keras.layers.Dense(10, activation="softmax")(hidden)
model = context.wrap_model(keras.Model(inputs, outputs))
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, labels, epochs=5, batch_size=32, verbose=2, callbacks=[HiddenFeatures("hidden", x, labels)])
# %%
with np.load(os.path.join(OUTPUT_DIR, "features.npz")) as stored:
    features, embedding = stored["features"], stored["points"]
assert np.allclose(features, keras.Model(model.input, model.get_layer("hidden").output).predict(x), atol=1e-6)
# %%
from IPython.display import Image, display
display(Image(filename=f"{OUTPUT_DIR}/tsne.png"))
figure = plt.imread(f"{OUTPUT_DIR}/tsne.png")
