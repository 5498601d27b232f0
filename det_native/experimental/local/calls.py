"""Training in this process: one call of ``fit()`` or of TensorFlow's ``train_and_evaluate()``, or a Trial class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.samples import Sample, config_of_call, note_trained, sample_of_call
from det_native.experimental.settings import Settings
from det_native.runtime import Later
from det_native.schema.config import ExperimentConfig
from det_native.schema.manifests import Framework
from det_native.schema.sampling import sample_hyperparameters, trial_seeds

if TYPE_CHECKING:
    from det_native.client.handles import Experiment
    from det_native.estimator.roles.call import UnchangedCall
    from det_native.experimental.origin import Origin
    from det_native.trial import Trial


def fit_here(call: Any, settings: Settings, origin: Origin) -> Any:
    """Run a captured call of ``fit()`` here and return Keras's ``History``.

    Ctrl-C ends the training with a checkpoint; the history so far is returned.
    """
    note_trained(call)
    config = config_of_call(settings, call)
    sample = sample_of_call(config, call)
    experiment = LocalExperiment("fit", call, config, call.framework, settings, origin, sample)
    call.context.experiment = Later(lambda: experiment.handle)
    if experiment.in_view or settings.show == "none":
        call.leave_out_bar()
    return experiment.run()


def unchanged_here(call: UnchangedCall, settings: Settings, origin: Origin) -> Any:
    """Have TensorFlow's own ``train_and_evaluate()`` run here, and return what it returns.

    Ctrl-C ends the training with a checkpoint.
    """
    config = config_of_call(settings, call)
    sample = sample_of_call(config, call)
    experiment = LocalExperiment(call.kind, call, config, call.framework, settings, origin, sample)
    call.context.experiment = experiment.handle
    return experiment.run()


def create_here(
    trial_class: type[Trial],
    framework: Framework,
    config: ExperimentConfig,
    settings: Settings,
    origin: Origin,
) -> Experiment:
    """Train a Trial class here and return the handle; of a search, which is a quick check then, its first trial.

    Ctrl-C ends the training with a checkpoint. Without a seed in the configuration one is drawn, which stands in the
    experiment's own.
    """
    config = config.with_some_seed()
    seed = next(trial_seeds(config.reproducibility.experiment_seed or 0))
    sample = Sample(sample_hyperparameters(config.hyperparameters, seed), seed)
    experiment = LocalExperiment("create", trial_class, config, framework, settings, origin, sample)
    experiment.run()
    return experiment.handle
