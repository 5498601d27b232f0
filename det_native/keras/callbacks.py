"""Callbacks that know of checkpoints and workloads, and Keras's own that act at every validation."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from det_native.tensorboard import get_base_path


class Callback(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """A Keras callback with more hooks. Plain Keras callbacks work as well; their attributes are kept too.

    A workload is what is trained between two moments at which the trial may validate, save a checkpoint or be stopped:
    ``scheduling_unit`` batches at most. In its ``on_test_end`` the names in `logs` begin with ``val_``.

    Examples
    --------
    >>> class Note(Callback):
    ...     def on_checkpoint_end(self, checkpoint_dir):
    ...         (Path(checkpoint_dir) / "vocabulary.txt").write_text("\\n".join(words))
    """

    def on_train_workload_begin(
        self, total_batches_trained: int, batches_requested: int | None, logs: dict[str, Any]
    ) -> None:
        """Run before every workload.

        Parameters
        ----------
        total_batches_trained : int
            Batches that the trial has done so far.
        batches_requested : int or None
            Batches of this workload, if it is not ended before.
        logs : dict
            Empty.
        """

    def on_train_workload_end(self, total_batches_trained: int, logs: dict[str, Any]) -> None:
        """Run after every workload.

        Parameters
        ----------
        total_batches_trained : int
            Batches that the trial has done so far.
        logs : dict
            What ``on_train_batch_end`` had after the last of them.
        """

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Run after every checkpoint is written, on the first rank only; files put into the folder belong to it.

        Parameters
        ----------
        checkpoint_dir : str
            Folder of the checkpoint.
        """

    def get_state(self) -> Any:
        """Return the state to save, anything that can be pickled; where it is not overridden, all attributes are."""
        return None

    def load_state(self, state: Any) -> None:
        """Restore what ``get_state`` returned; called after ``on_train_begin``.

        Parameters
        ----------
        state
        """


class _AtValidations(Callback):
    """Does at the end of every validation what the Keras callback does at the end of an epoch."""

    _det_can_go_on = True  # what it has counted is in checkpoints, and comes home

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.validations = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Do nothing."""

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Compare this validation with those before."""
        super().on_epoch_end(self.validations, logs)
        self.validations += 1


class EarlyStopping(_AtValidations, tf.keras.callbacks.EarlyStopping):  # type: ignore[misc]
    """``tf.keras.callbacks.EarlyStopping`` that counts validations, also those amid an epoch, instead of epochs."""


class ReduceLROnPlateau(_AtValidations, tf.keras.callbacks.ReduceLROnPlateau):  # type: ignore[misc]
    """``tf.keras.callbacks.ReduceLROnPlateau`` that counts validations instead of epochs."""


class TensorBoard(tf.keras.callbacks.TensorBoard):  # type: ignore[misc]
    """``tf.keras.callbacks.TensorBoard`` whose event files are kept with the trial; `log_dir` has no effect.

    Parameters
    ----------
    *args, **kwargs
        Those of Keras's class.
    """

    _det_can_go_on = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log_dir = str(get_base_path())

    def set_model(self, model: Any) -> None:
        """Write to the folder of the trial that runs in this process."""
        self.log_dir = str(get_base_path())
        super().set_model(model)


def keeps_own_state(callback: Any) -> bool:
    """Return whether a callback says itself what its state is."""
    return isinstance(callback, Callback) and type(callback).get_state is not Callback.get_state


TFKerasTensorBoard = TensorBoard
