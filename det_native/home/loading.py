"""The weights of a submitted training, into the objects that the call was given."""

from __future__ import annotations

from typing import Any

from det_native.client import loading_into
from det_native.client.handles import Experiment
from det_native.errors import CheckpointError
from det_native.schema import rest
from det_native.schema.states import ExperimentState


def load_state(experiment: Experiment, call: Any, detail: rest.ExperimentDetail) -> tuple[rest.Checkpoint, list[str]]:
    """Put the state that local training would have left into the objects of a call; they keep their devices.

    Parameters
    ----------
    experiment : Experiment
        Has ended. Of one that was stopped it is the last checkpoint.
    call : FitCall or TorchCall
        What was submitted.
    detail : ExperimentDetail
        What is known of it.

    Returns
    -------
    rest.Checkpoint, list of str
        What was loaded, and a sentence for each object that stays as it was.

    Raises
    ------
    ExperimentFailedError
        If the experiment has failed.
    CheckpointError
        If there is no such checkpoint any more, it is damaged, or it does not fit; nothing is changed then.
    MasterError
        If the master does not answer, or does not know the experiment.
    """
    source, number = experiment.source, experiment.id
    weights = loading_into.weights_setting(detail)
    if detail.state is ExperimentState.CANCELED:
        weights = "last"
    else:
        loading_into.refuse_unfinished(source, number, detail)
    checkpoint = loading_into.checkpoint_to_load(source, number, detail, weights)
    return checkpoint, loading_into.into_call(source, number, checkpoint, call)


def mismatch(experiment: Experiment, call: Any, error: CheckpointError) -> str:
    """Return why the weights of a search do not come: its best trial may have other layers than the notebook."""
    remedy = "its weights stay on the cluster; experiment.top_checkpoint().load() makes the model."
    here, there = call.context.env.hparams, experiment.best_trial.hparams
    names = sorted(name for name in here if name in there and here[name] != there[name])
    if not names:
        return f"The weights of the best trial do not fit ({error}): {remedy}"
    best, own = (", ".join(f"{name} = {given[name]!r}" for name in names) for given in (there, here))
    return f"The best trial has {best}, this notebook has {own}: {remedy}"
