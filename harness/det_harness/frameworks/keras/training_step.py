"""The training step of a model on several ranks, or one whose gradients are gathered over several batches.

With each batch the ranks tell each other, in the step itself, how many rows they have, and whether one of them is to
stop or to report: no exchange of its own is waited for.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import tensorflow as tf

from det_harness.frameworks.keras.gradients import Gradients
from det_harness.frameworks.keras.optimizers import optimizers_of
from det_native.keras.generations import NUMBER

logger = logging.getLogger("det_native")


class Told(NamedTuple):
    """What is wanted of all ranks after a batch, since it is on any.

    Attributes
    ----------
    stops : bool
        An early end of the trial.
    reports : bool
        A report of the training metrics.
    ends : bool
        ``model.stop_training``, that a callback has set.
    """

    stops: bool = False
    reports: bool = False
    ends: bool = False


class TrainingStep:
    """Stands before the ``train_step`` of a model.

    Parameters
    ----------
    model : tf.keras.Model
        Compiled.
    batch_size : int
        Rows of a full batch of this rank.
    idle_last : bool
        Whether this rank has nothing of its own in the last batch of an epoch: what it is given there counts nothing.
    """

    def __init__(
        self, model: Any, gradients: Gradients, *, batch_size: int, steps: int, done: int = 0, idle_last: bool = False
    ) -> None:
        self._model = model
        self._wire = wire = gradients.wire
        self._gradients = gradients
        self._rows = float(batch_size * wire.size)
        self._steps = steps
        self.idle_last = idle_last
        self._before = vars(model).get("train_step")
        self._step = model.train_step
        self._done = tf.Variable(done, dtype=tf.int64, trainable=False)
        self._asks = Told()
        self._asked = tf.Variable(tf.zeros(len(Told._fields)), trainable=False)
        self._told = tf.Variable(tf.zeros(len(Told._fields)), trainable=False)

    def install(self) -> None:
        """Stand there, for the training functions that the model makes from now on."""
        model = self._model
        if model.jit_compile and self._wire.size > 1:
            if NUMBER < 3:  # Keras 3 compiles by itself what it can
                logger.warning("jit_compile=True has no effect on several slots: XLA cannot exchange gradients.")
            model.jit_compile = False
        self._gradients.hook(optimizers_of(model))
        vars(model)["train_step"] = self._train_step  # past Keras's tracking of attributes
        model.train_function = model.train_tf_function = None

    def remove(self) -> None:
        """Give the model back as it was."""
        if self._before is None:
            vars(self._model).pop("train_step", None)
        else:
            vars(self._model)["train_step"] = self._before
        self._model.train_function = self._model.train_tf_function = None
        self._gradients.unhook()

    def ask(self, asks: Told) -> None:
        """Say what this rank wants, before a batch."""
        if asks != self._asks:
            self._asks = asks
            self._asked.assign([float(each) for each in asks])

    def told(self) -> Told:
        """Return what any rank has wanted before the last batch."""
        return Told(*(bool(each) for each in self._told.numpy()))

    def _train_step(self, data: Any) -> Any:
        share = _rows_of(data) / self._rows
        if self.idle_last:
            share = tf.where(tf.equal(self._done % self._steps, self._steps - 1), 0.0, share)
            self._done.assign_add(1)
        total = share
        if self._wire.size > 1:
            [sums] = self._wire.add_up([tf.concat([[share], self._asked], 0)], "det_native.step")
            self._told.assign(sums[1:])
            total = sums[0]
        self._gradients.begin_step(share, total)
        try:
            return self._step(data)
        finally:
            self._gradients.end_step()


def _rows_of(data: Any) -> Any:
    """Return the rows of a batch, as a float."""
    first = tf.nest.flatten(data)[0]
    if isinstance(first, tf.RaggedTensor):
        rows = first.nrows()
    elif isinstance(first, tf.SparseTensor):
        rows = first.dense_shape[0]
    else:
        rows = tf.shape(first)[0] if len(first.shape) else tf.constant(1)
    return tf.cast(rows, tf.float32)
