# A hand-made tokenizer, padded sequences and an LSTM; one cell fits and predicts, a function of above classifies below.
# plain: the same losses
# same: first, answers, table, model.get_weights()
# %%
import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow.keras.layers import LSTM, Dense, Embedding
from tensorflow.keras.models import Sequential
from tensorflow.keras.utils import pad_sequences, to_categorical

import det_native as det

context = det.experimental.keras.init()
tf.keras.utils.set_random_seed(0)
# %%
intents = {
    "greeting": ["hello there", "hi", "good morning", "hey you", "hello again"],
    "weather": ["will it rain", "is it sunny today", "rain tomorrow", "how cold is it today", "sunny tomorrow"],
    "food": ["a pizza please", "i want some soup", "bread and soup", "one pizza", "some bread please"],
}
labels = list(intents)
texts, targets = zip(*[(text, labels.index(name)) for name in labels for text in intents[name] for _ in range(6)])

class Tokenizer:
    def __init__(self):
        self.word_index = {}

    def fit_on_texts(self, texts):
        for text in texts:
            for word in text.lower().split():
                self.word_index.setdefault(word, len(self.word_index) + 1)
        return self

    def texts_to_sequences(self, texts):
        return [[self.word_index[w] for w in t.lower().split() if w in self.word_index] for t in texts]

tokenizer = Tokenizer().fit_on_texts(texts)
maxlen = 6
X = pad_sequences(tokenizer.texts_to_sequences(texts), maxlen=maxlen)
Y = to_categorical(targets)
# %%
def classify(text):
    padded = pad_sequences(tokenizer.texts_to_sequences([text]), maxlen=maxlen)
    probabilities = model.predict(padded, verbose=0)[0]
    return labels[int(np.argmax(probabilities))], float(np.max(probabilities))
# %%
model = Sequential()
model.add(Embedding(len(tokenizer.word_index) + 1, 12, mask_zero=True))
model.add(LSTM(12))
model.add(Dense(len(labels), activation="softmax"))
model = context.wrap_model(model)
model.compile(loss="categorical_crossentropy", optimizer=tf.keras.optimizers.Adam(0.03), metrics=["accuracy"])
model.fit(X, Y, epochs=5, batch_size=16, verbose=0)
first = classify("good morning you")
print(first)
# %%
answers = {text: classify(text) for text in ("soup please", "is it cold tomorrow", "hey hello")}
table = pd.DataFrame(answers, index=["intent", "confidence"]).T
assert list(table["intent"]) == ["food", "weather", "greeting"], table
table
