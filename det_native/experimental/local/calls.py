"""Training on this machine: one call of ``fit()``, or the trials of a Trial class one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from det_native.client.handles import Experiment
from det_native.errors import DivergedError
from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.samples import config_of_one_trial, sample_of_call, samples_of_search
from det_native.experimental.proof import note_trained
from det_native.experimental.settings import Settings
from det_native.schema.config import ExperimentConfig
from det_native.schema.manifests import Framework

if TYPE_CHECKING:
    from det_native.experimental.origin import Origin
    from det_native.trial import Trial


def fit_here(call: Any, settings: Settings, origin: Origin) -> Any:
    """Run a captured call of ``fit()`` here and return Keras's ``History``; the handle, from processes of its own.

    Ctrl-C ends the training with a checkpoint; the history so far is returned.

    Parameters
    ----------
    call : FitCall
    settings : Settings
    origin : Origin
    """
    note_trained(call)
    config = config_of_one_trial(settings, call)
    experiment = LocalExperiment("fit", call, config, call.framework, settings, origin, whole_epochs=True)
    call.context.experiment = experiment.handle
    if experiment.in_view or settings.show == "none":
        call.leave_out_bar()
    with experiment.running():
        return experiment.run_trial(sample_of_call(config, call))


def create_here(
    trial_class: type[Trial],
    framework: Framework,
    config: ExperimentConfig,
    settings: Settings,
    origin: Origin,
) -> Experiment:
    """Train a Trial class on this machine: every trial of the search, one after the other.

    Ctrl-C ends the trial under way with a checkpoint, and the search with it. Without a seed in the configuration one
    is drawn, which stands in the experiment's own. A trial whose loss is no finite number any more ends, and the search
    goes on without it.
    """
    config = config.with_some_seed()
    experiment = LocalExperiment("create", trial_class, config, framework, settings, origin)
    return run_samples(experiment, config, settings)


def run_samples(experiment: LocalExperiment, config: ExperimentConfig, settings: Settings) -> Experiment:
    """Run every trial of an experiment's search, one after the other; return the experiment's handle."""
    samples = list(samples_of_search(config, test=settings.place.test))
    with experiment.running(planned=len(samples)):
        diverged = 0
        for number, sample in enumerate(samples, start=1):
            try:
                experiment.run_trial(sample)
            except DivergedError as error:
                diverged += 1
                if diverged == len(samples):
                    raise
                print(f"Trial {number} failed, and the search goes on: {error}")
            if experiment.interrupted:
                break
    return experiment.handle
