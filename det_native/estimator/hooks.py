"""Hooks of a training, with moments of a trial beside those of TensorFlow's sessions."""

from __future__ import annotations

import tensorflow as tf


class RunHook(tf.estimator.SessionRunHook):  # type: ignore[misc]  # TensorFlow has no types
    """A hook of ``tf.estimator`` that is also told of the trial's checkpoints and its end; goes into the TrainSpec.

    Examples
    --------
    >>> class Notes(RunHook):
    ...     def on_checkpoint_end(self, checkpoint_dir):
    ...         Path(checkpoint_dir, "notes.txt").write_text("...")
    ...
    >>> tf.estimator.TrainSpec(input_fn, hooks=[Notes()])
    """

    def on_checkpoint_load(self, checkpoint_dir: str) -> None:
        """Do something before training continues from the checkpoint whose files lie in `checkpoint_dir`."""

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Do something with the files of a checkpoint before it is published; on the first slot only."""

    def on_trial_close(self) -> None:
        """Do something at the end of the trial, however it ended."""
