# TextVectorization, Embedding and pooling; new sentences are predicted, and a model from text to label is exported below.
# plain: the same losses
# same: probs, verdicts, end_to_end.predict(tf.constant(new), verbose=0), embeddings, model.evaluate(x_val, y_val, verbose=0), reloaded.predict(x_val, verbose=0), sorted(history.history)
# %%
import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.model_selection import train_test_split

import det_native as det

context = det.experimental.keras.init()
keras.utils.set_random_seed(0)
# %%
GOOD, BAD = ["good", "great", "lovely", "fun"], ["bad", "dull", "awful", "slow"]
reviews = pd.DataFrame(
    [(f"a {w} {n} with {m} {v}!", int(w in GOOD)) for w in GOOD + BAD for n in ("film", "Book", "show")
     for m in ("many", "few") for v in ("songs", "jokes", "pages", "scenes")], columns=["review", "label"])
reviews = reviews.sample(frac=1, random_state=1).reset_index(drop=True)
print(reviews["label"].value_counts())
# %%
max_features, sequence_length = 60, 8
vectorize_layer = layers.TextVectorization(max_tokens=max_features, output_sequence_length=sequence_length)
vectorize_layer.adapt(reviews["review"].to_numpy())
x = vectorize_layer(reviews["review"].to_numpy()).numpy()
x_train, x_val, y_train, y_val = train_test_split(x, reviews["label"].to_numpy(), test_size=0.25, random_state=3)
# %%
model = keras.Sequential([
    layers.Embedding(max_features, 8, input_length=sequence_length, name="embedding"),
    layers.Dropout(0.2),
    layers.GlobalAveragePooling1D(),
    layers.Dense(8, activation="relu"),
    layers.Dense(1, activation="sigmoid"),
])
model = context.wrap_model(model)
model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(0.03), metrics=["accuracy"])
history = model.fit(x_train, y_train, validation_data=(x_val, y_val), batch_size=16, epochs=4)
# %%
new = ["what a lovely book", "an awful, dull show", "GREAT fun!"]
probs = model.predict(vectorize_layer(np.array(new)), verbose=0).ravel()
verdicts = ["positive" if p > 0.5 else "negative" for p in probs]
for text, verdict, p in zip(new, verdicts, probs):
    print(f"{verdict} ({p:.2f}): {text}")
# %%
end_to_end = keras.Sequential([keras.Input((), dtype=tf.string), vectorize_layer, model])
embeddings = model.get_layer("embedding").get_weights()[0]
model.save("reviews.keras")
reloaded = keras.models.load_model("reviews.keras")
print(pd.DataFrame(history.history).round(3))
assert verdicts == ["positive", "negative", "positive"]
