"""``det.experimental.estimator`` on this machine: a call of ``train_and_evaluate()``, in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from det_native.client.estimator_experiment import last_evaluation
from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.samples import config_of_one_trial, sample_of_call
from det_native.experimental.settings import Settings
from det_native.schema.exports import read

if TYPE_CHECKING:
    from det_native.estimator.call import EstimatorCall
    from det_native.estimator.roles.call import UnchangedCall
    from det_native.experimental.origin import Origin


def train_and_evaluate_here(call: EstimatorCall, settings: Settings, origin: Origin) -> tuple[Any, list[Any]]:
    """Train here, to the end; return the metrics of the last evaluation, and what the exporters have exported.

    Ctrl-C ends the training with a checkpoint.

    Parameters
    ----------
    call : EstimatorCall
    settings : Settings
    origin : Origin
    """
    config = config_of_one_trial(settings, call)
    experiment = LocalExperiment(call.kind, call, config, call.framework, settings, origin)
    call.context.experiment = experiment.handle  # type: ignore[attr-defined]
    with experiment.running():
        experiment.run_trial(sample_of_call(config, call))
    return _pair(experiment, call)


def unchanged_here(call: UnchangedCall, settings: Settings, origin: Origin) -> Any:
    """Have TensorFlow's own ``train_and_evaluate()`` run here, and return what it returns.

    Ctrl-C ends the training with a checkpoint.

    Parameters
    ----------
    call : UnchangedCall
    settings : Settings
    origin : Origin
    """
    config = config_of_one_trial(settings, call)
    experiment = LocalExperiment(call.kind, call, config, call.framework, settings, origin)
    call.context.experiment = experiment.handle
    with experiment.running():
        result = experiment.run_trial(sample_of_call(config, call))
    return _pair(experiment, call) if experiment.in_processes else result


def _pair(experiment: LocalExperiment, call: EstimatorCall | UnchangedCall) -> tuple[Any, list[Any]]:
    """Return the pair that TensorFlow's function returns, for a trial that ran in separate processes."""
    trial = experiment.handle.trials[0]
    checkpoints = trial.checkpoints if call.exporters else []
    exports = read(experiment.folder_of(checkpoints[-1]), call.exporters) if checkpoints else []
    return last_evaluation(trial.metrics(kind="validation")), exports
