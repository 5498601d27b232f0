"""``det.log`` and its siblings: called from any callback, hook or loop of a training, on a cluster or in the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_native.logged.place import taker


def log(metrics: Mapping[str, Any] | None = None, /, **named: Any) -> None:
    """Log numbers of your own, at the batch that the training has come to.

    What is logged after the same batch is one row: of a name that is logged twice, the last value counts. These rows
    are no metrics of the training: ``trial.metrics("logged")`` has them. Logging never stops the training: a value that
    is no number is left out, and a warning says so once. Outside a training nothing is kept.

    Parameters
    ----------
    metrics : mapping, optional
        Scalars by name: numbers, or tensors and arrays of one element. Not-a-number and infinities are values.
    named
        Likewise: ``det.log(f1=0.9)``.

    Examples
    --------
    >>> class Scores(tf.keras.callbacks.Callback):
    ...     def on_epoch_end(self, epoch, logs=None):
    ...         det.log(f1=f1_score(y_val, self.model.predict(x_val).argmax(axis=1), average="macro"))
    """
    found = taker()
    if found is not None:
        found.log(named if metrics is None else _joined(metrics, named))


def log_image(name: str, image: Any, caption: str | None = None) -> None:
    """Log a picture, at the batch that the training has come to.

    Pictures of one name make a series over the batches. It never stops the training: what is no picture is left out,
    and a warning says so once. Outside a training nothing is kept.

    Parameters
    ----------
    name : str
    image : array, tensor, figure, PIL image, path or bytes
        An array has the shape (height, width), (height, width, channels) or (channels, height, width), with 1, 3 or 4
        channels; one more dimension before makes a grid of pictures. Values are booleans, integers of 0 to 255, or
        floats of 0 to 1, -1 to 1 or 0 to 255; others are scaled from the smallest to the largest.
    caption : str, optional
    """
    found = taker()
    if found is not None:
        found.log_image(name, image, caption)


def log_table(name: str, table: Any, caption: str | None = None) -> None:
    """Log a table, at the batch that the training has come to; see :func:`log_image`.

    Parameters
    ----------
    name : str
    table : DataFrame, list of dicts, dict of lists, or two-dimensional array
    caption : str, optional
    """
    found = taker()
    if found is not None:
        found.log_table(name, table, caption)


def log_text(name: str, text: Any) -> None:
    """Log a text, at the batch that the training has come to; see :func:`log_image`."""
    found = taker()
    if found is not None:
        found.log_text(name, text)


def log_histogram(name: str, values: Any, bins: Any = 64) -> None:
    """Log how values are distributed, at the batch that the training has come to; see :func:`log_image`.

    Parameters
    ----------
    name : str
    values : array, tensor or sequence of numbers
        Of any shape. Values that are not finite are counted apart.
    bins : int or sequence of float
        How many bins of equal width, or their edges.
    """
    found = taker()
    if found is not None:
        found.log_histogram(name, values, bins)


def _joined(metrics: Any, named: dict[str, Any]) -> dict[Any, Any]:
    if isinstance(metrics, Mapping):
        return {**metrics, **named}
    return {"": metrics, **named}  # which is told to be no name
