"""The weights of a submitted training, into the objects that the call was given."""

from __future__ import annotations

from typing import Any

from det_native.client import loading_into
from det_native.client.handles import Experiment
from det_native.errors import CheckpointCorruptError, CheckpointError
from det_native.schema import rest
from det_native.schema.config import WeightsAfter


def load_state(experiment: Experiment, call: Any, weights: WeightsAfter | None = None) -> rest.Checkpoint | None:
    """Put the state that local training would have left into the objects of a call; they keep their devices.

    Parameters
    ----------
    experiment : Experiment
        Has ended.
    call : FitCall or TorchCall
        What was submitted.
    weights : {"last", "best", "stay"}, optional
        Which state: after the last batch, or the best checkpoint. The configuration's by default.

    Returns
    -------
    rest.Checkpoint or None
        What was loaded; None where the weights are to stay as they are.

    Raises
    ------
    ExperimentFailedError
        If the experiment has failed, or was stopped.
    CheckpointError
        If there is no such checkpoint any more, it is damaged, or it does not fit; nothing is changed then.
    MasterError
        If the master does not answer, or does not know the experiment.
    """
    detail = loading_into.detail_of(experiment.source, experiment.id)
    weights = weights or loading_into.weights_setting(detail)
    if weights == "stay":
        return None
    loading_into.refuse_unfinished(experiment.source, experiment.id, detail)
    checkpoint = loading_into.checkpoint_to_load(experiment.source, experiment.id, detail, weights)
    try:
        loading_into.into_call(experiment.source, experiment.id, checkpoint, call)
    except CheckpointCorruptError:
        raise
    except CheckpointError as error:
        raise CheckpointError(f"{error}{_other_hyperparameters(checkpoint, call)}") from None
    return checkpoint


def _other_hyperparameters(checkpoint: rest.Checkpoint, call: Any) -> str:
    """Return a sentence for a trial of other hyperparameters than the notebook has, which its layers may follow."""
    here, there = call.context.env.hparams, checkpoint.manifest.hparams
    names = sorted(name for name in here if name in there and here[name] != there[name])
    if not names:
        return ""
    values = [", ".join(f"{name} = {given[name]!r}" for name in names) for given in (there, here)]
    return f" The best trial has {values[0]}; this notebook has made its model with {values[1]}."
