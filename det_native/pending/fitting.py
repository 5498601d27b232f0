"""A training call on the cluster: what it does before it is submitted, and whether it waits for its end."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

from det_native.capture.log import running_execution
from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.client.keras_experiment import KerasExperiment
from det_native.pending import lost, registry
from det_native.pending.cells import watch_cells
from det_native.pending.following import is_read_later
from det_native.pending.reach import Reach
from det_native.pending.reading import main_namespace
from det_native.pending.registry import PendingTraining
from det_native.pending.waiting import bring_home

AGAIN = "Run a cell that uses the model to wait again"
#: How the configuration says that weights are not to come home.
STAY = "stay"


def before_call(call: Any) -> None:
    """Have the weights come home of which a call that is to be submitted makes use.

    Raises
    ------
    DetError
        If they cannot come.
    KeyboardInterrupt
        If the waiting was interrupted.
    """
    trainings = registry.pending()
    parts = getattr(call, "trained_parts", ())
    if not trainings or not parts:
        return
    reach = Reach(main_namespace(), trainings, by_call=True)
    reach.add_values([*parts, *(value for name, value in vars(call).items() if name != "context")])
    for training in reach.met():
        bring_home(training, AGAIN)


def after_submit(experiment: Experiment, call: Any, show: Show) -> None:
    """Note that the weights of a call are to come home, and wait for them if what follows the call needs them.

    Raises
    ------
    DetError
        If they are waited for and cannot come.
    KeyboardInterrupt
        If the waiting was interrupted.
    """
    detail = experiment.detail()
    if detail.config.get("weights") == STAY:
        return
    training = registry.add(experiment, call, show=show, execution=running_execution())
    if training is None:
        return
    training.created = detail.created
    watch_cells()
    if isinstance(experiment, KerasExperiment):
        experiment.before_model = partial(_before_model, weakref.ref(training))
    read_later = is_read_later(training, loop=call.kind == "train")
    if read_later if call.wait is None else call.wait:
        bring_home(training, AGAIN)
        lost.tell(sorted(training.read))


def _before_model(reference: weakref.ref[PendingTraining]) -> None:
    """Have the weights come home of a model that its handle is asked for."""
    training = reference()
    if training is not None and training in registry.pending():
        bring_home(training, AGAIN)
