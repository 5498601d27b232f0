"""``det.forget()``: no code waits for the weights of a model, or for a file, any more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from det_native.errors import ArgumentError
from det_native.files_home import registry as file_registry
from det_native.files_home.patterns import pattern_of
from det_native.pending import registry
from det_native.pending.reach import Reach
from det_native.pending.reading import READS_NO_WEIGHTS, main_namespace


def forget(model: Any) -> None:
    """Go on with the weights that a model has here, or with a file as it is here, while the cluster trains.

    Nothing waits for its training from now on, and no weights are loaded into it when that has ended. The experiment
    goes on; ``experiment.load_into(model)`` gives it the weights all the same, and a file comes at the end.

    Parameters
    ----------
    model : keras.Model, torch.nn.Module or what holds one; str or path
        One that does not train is left alone. A text is the path of a file, or of a folder.

    Raises
    ------
    ArgumentError
        If a text is no path.
    """
    if isinstance(model, str | os.PathLike):
        pattern = pattern_of(os.fspath(model), str(Path.cwd()))
        if pattern is None:
            raise ArgumentError(f"det.forget(): {model!r} is no path of a file, and no model.")
        file_registry.forget([pattern])
        return
    trainings = registry.pending()
    if trainings:
        reach = Reach(main_namespace(), trainings)
        reach.add_values([model])
        for training in reach.met():
            registry.end(training)


setattr(forget, READS_NO_WEIGHTS, True)
