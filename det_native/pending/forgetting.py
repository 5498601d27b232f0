"""``det.forget()``: no code waits for the weights of a model any more."""

from __future__ import annotations

from typing import Any

from det_native.pending import registry
from det_native.pending.reach import Reach
from det_native.pending.reading import READS_NO_WEIGHTS, main_namespace


def forget(model: Any) -> None:
    """Go on with the weights that a model has here, while the cluster trains.

    Nothing waits for its training from now on, and no weights are loaded into it when that has ended. The experiment
    goes on; ``experiment.load_into(model)`` gives it the weights all the same.

    Parameters
    ----------
    model : keras.Model, torch.nn.Module or what holds one
        One that does not train is left alone.
    """
    trainings = registry.pending()
    if trainings:
        reach = Reach(main_namespace(), trainings)
        reach.add_values([model])
        for training in reach.met():
            registry.end(training)


setattr(forget, READS_NO_WEIGHTS, True)
