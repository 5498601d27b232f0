# Texts: TextVectorization that was adapted, a dataclass, a timing decorator, a custom schedule, weights of a shuffled list.
# %%
from __future__ import annotations

import random
import time
from dataclasses import dataclass
from functools import wraps

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

import det_native as det


@dataclass
class Params:
    vocab: int = 100
    length: int = 8
    dim: int = 8
    epochs: int = 3

    @property
    def shape(self):
        return (self.length, self.dim)


def timed(f):
    @wraps(f)
    def wrapper(*args, **kwargs):
        t = time.time()
        result = f(*args, **kwargs)
        print(f"{f.__name__}: {time.time() - t:.2f} s")
        return result
    return wrapper


P = Params(dim=12)
POSITIVE = {"good", "great", "nice", "happy"}
NEGATIVE = {"bad", "sad", "poor", "angry"}


@timed
def sentences(count):
    rows = []
    for _ in range(count):
        label = random.random() > 0.5
        words = [random.choice(sorted(POSITIVE if label else NEGATIVE)) for _ in range(2)]
        words += random.choices("the a film actor was scene not very".split(), k=random.randint(2, 5))
        random.shuffle(words)
        rows.append((" ".join(words), int(label)))
    return map(np.array, zip(*rows))


texts, labels = sentences(400)
# %%
texts[:3]
# %%
vectorize = layers.TextVectorization(max_tokens=P.vocab, output_sequence_length=P.length,
                                     standardize=lambda t: tf.strings.lower(t))
vectorize.adapt(texts)
print(vectorize.get_vocabulary()[:5])


class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, steps):
        self.peak, self.steps = peak, steps

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        return self.peak * tf.minimum(1.0, (step + 1.0) / self.steps)

    def get_config(self):
        return {"peak": self.peak, "steps": self.steps}


@timed
def build():
    return tf.keras.Sequential([
        tf.keras.Input((P.length,), dtype=tf.int64),
        layers.Embedding(P.vocab, P.dim),
        layers.Bidirectional(layers.GRU(6)),
        layers.Dense(1),
    ])
# %%
context = det.experimental.keras.init()
model = context.wrap_model(build())
model.compile(tf.keras.optimizers.Adam(WarmUp(0.02, 10)), tf.keras.losses.BinaryCrossentropy(from_logits=True),
              metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.0)])
weights = np.where(labels == 1, 1.0, 1.2)
model.fit(vectorize(texts), labels, sample_weight=weights, validation_split=0.1, epochs=P.epochs)
