"""``det.experimental.estimator`` on this machine: a call of ``train_and_evaluate()``, in a process of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.samples import config_of_one_trial, sample_of_call
from det_native.experimental.settings import Settings

if TYPE_CHECKING:
    from det_native.estimator.call import EstimatorCall
    from det_native.estimator.roles.call import UnchangedCall
    from det_native.experimental.origin import Origin

#: In a checkpoint: what each exporter has exported last, by path, or null.
EXPORTS = "exports.json"


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
    return _last_evaluation(experiment), _exports(experiment)


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
    return (_last_evaluation(experiment), []) if experiment.in_processes else result


def _last_evaluation(experiment: LocalExperiment) -> dict[str, Any] | None:
    rows = experiment.handle.trials[0].metrics(kind="validation")
    return {name: value for name, value in rows[-1].items() if name != "batch"} if rows else None


def _exports(experiment: LocalExperiment) -> list[Any]:
    checkpoints = experiment.handle.trials[0].checkpoints
    folder = experiment.folder_of(checkpoints[-1]) if checkpoints else None
    if folder is None or not (folder / EXPORTS).is_file():
        return []
    exports = json.loads((folder / EXPORTS).read_text(encoding="utf-8"))
    return [None if path is None else str(folder / path).encode() for path in exports]
