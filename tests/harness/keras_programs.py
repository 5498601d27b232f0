"""Programs of a user's, by name: what is run, killed and resumed by the tests of exact continuation."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from keras_support import Run, Session, digits, make_model


def _arrays(model: Any, **more: Any) -> Any:
    x, y, x_val, y_val = digits()
    return model.fit(x[:640], y[:640], epochs=3, validation_data=(x_val, y_val), verbose=0, **more)


def arrays(session: Session) -> Any:
    model = session.context.wrap_model(make_model(dropout=0.3))
    _arrays(model, class_weight={n: 1.0 + n / 10 for n in range(10)}, sample_weight=np.linspace(0, 1, 640))
    return model


def lazy_model_and_old_optimizer(session: Session) -> Any:
    optimizer = tf.keras.optimizers.legacy.SGD(0.05, momentum=0.9)
    model = session.context.wrap_model(make_model(dropout=0.2, lazy=True, optimizer=optimizer))
    _arrays(model, batch_size=48, initial_epoch=1, shuffle="batch")
    return model


def dataset(session: Session) -> Any:
    x, y, x_val, y_val = digits()
    rows = tf.data.Dataset.from_tensor_slices((x[:640], y[:640])).shuffle(100)
    batches = session.context.wrap_dataset(rows.map(lambda x, y: (x * 2.0, y), tf.data.AUTOTUNE).batch(32))
    model = session.context.wrap_model(make_model(dropout=0.3))
    model.fit(batches.prefetch(2), epochs=3, validation_data=(x_val, y_val), verbose=0)
    return model


def validation_generator(session: Session) -> Any:
    def batches() -> Iterator[Any]:
        x, y = digits()[2:]
        while True:
            rows = np.random.randint(len(x), size=40)
            yield x[rows] + np.random.normal(scale=0.1, size=(40, 64)), y[rows]

    x, y, _, _ = digits()
    model = session.context.wrap_model(make_model())
    stopping = tf.keras.callbacks.EarlyStopping("val_loss", patience=9)
    model.fit(
        x[:640], y[:640], epochs=3, validation_data=batches(), validation_steps=3, callbacks=[stopping], verbose=0
    )
    return model


class Jitter(tf.keras.layers.Layer):
    """Adds noise from a generator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = tf.random.Generator.from_seed(5)

    def call(self, inputs: Any, training: Any = None) -> Any:
        return inputs + self.generator.normal(tf.shape(inputs)) if training else inputs


def own_generator_in_a_layer(session: Session) -> Any:
    inner = make_model()
    model = tf.keras.Sequential([tf.keras.Input((64,)), Jitter(), *inner.layers])
    model.compile("adam", inner.loss, metrics=["accuracy"])
    session.context.wrap_model(model)
    _arrays(model)
    return model


class NoisyStep(tf.keras.Sequential):  # type: ignore[misc]  # TensorFlow has no types
    """Draws in its training step."""

    def train_step(self, data: Any) -> Any:
        x, y, weight = tf.keras.utils.unpack_x_y_sample_weight(data)
        return super().train_step((x + tf.random.normal(tf.shape(x), stddev=0.1), y, weight))


def drawing_eagerly(session: Session) -> Any:
    inner = make_model()
    model = NoisyStep([tf.keras.Input((64,)), *inner.layers])
    model.compile("adam", inner.loss, metrics=["accuracy"], run_eagerly=True)
    session.context.wrap_model(model)
    _arrays(model)
    return model


PROGRAMS: dict[str, Callable[[Session], Any]] = {
    function.__name__: function
    for function in (
        arrays,
        lazy_model_and_old_optimizer,
        dataset,
        validation_generator,
        own_generator_in_a_layer,
        drawing_eagerly,
    )
}


def run(name: str, directory: Path, resume: int | None = None, every: int = 7) -> tuple[Session, Run]:
    """Run a program, with a checkpoint every so many batches."""
    session = Session(directory, min_checkpoint_period={"batches": every})
    session.folders.resume = resume
    PROGRAMS[name](session)
    return session, session.runs[0]


def main(name: str, directory: str, kill_after: str, resume: str) -> None:
    """Run a program in a process of its own, to be killed after a checkpoint; write its weights when it ends."""
    session = Session(Path(directory), min_checkpoint_period={"batches": 7})
    session.folders.resume = int(resume) if resume else None
    if kill_after:
        # The checkpoint is there; what was trained after it is lost.
        last = int(kill_after)
        session.after_batch = lambda batch: os.kill(os.getpid(), signal.SIGKILL) if batch > last else None
    model = PROGRAMS[name](session)
    np.savez(Path(directory) / "weights.npz", *model.get_weights())


if __name__ == "__main__":
    main(*sys.argv[1:])
