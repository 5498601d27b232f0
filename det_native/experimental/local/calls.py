"""Training on this machine: one call of ``fit()``, or the trials of a Trial class one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from det_native.client.handles import Experiment
from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.samples import config_of_call, sample_of_call, searches
from det_native.experimental.local.search import LocalSearch
from det_native.experimental.proof import note_trained
from det_native.experimental.settings import Settings
from det_native.schema.config import ExperimentConfig
from det_native.schema.manifests import Framework
from det_native.schema.testing import testing_config

if TYPE_CHECKING:
    from det_native.experimental.origin import Origin
    from det_native.trial import Trial


def fit_here(call: Any, settings: Settings, origin: Origin) -> Any:
    """Run a captured call of ``fit()`` here and return Keras's ``History``; the handle, from processes of its own.

    Each trial of a search is built by the program anew, in a process of its own; the model of here stays as it is.
    Ctrl-C ends the training with a checkpoint; the history so far is returned.

    Parameters
    ----------
    call : FitCall
    settings : Settings
    origin : Origin
    """
    note_trained(call)
    config = config_of_call(settings, call)
    search = search_of(config, settings) if searches(config, settings) else None
    experiment = LocalExperiment(
        "fit", call, config, call.framework, settings, origin, whole_epochs=True, in_processes=search is not None
    )
    call.context.experiment = experiment.handle
    if search is not None:
        return after_search(search.run(experiment), call.kind)
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
    search_of(config, settings)  # what it lacks is said before anything is kept
    experiment = LocalExperiment("create", trial_class, config, framework, settings, origin)
    return run_samples(experiment, config, settings)


def run_samples(experiment: LocalExperiment, config: ExperimentConfig, settings: Settings) -> Experiment:
    """Run every trial of an experiment's search, one after the other; return the experiment's handle."""
    return search_of(config, settings).run(experiment)


def search_of(config: ExperimentConfig, settings: Settings) -> LocalSearch:
    """Return the search of a configuration; for a quick check, its first trial.

    Raises
    ------
    MissingDependencyError
        If the searcher needs a package that is not installed.
    """
    return LocalSearch(testing_config(config) if settings.place.test else config)


def after_search(experiment: Experiment, kind: str) -> Experiment:
    """Say where the models of a search are; return its handle."""
    print(
        f"The trials of this search have run in processes of their own: the model that {kind}() was called with is as "
        "it was. experiment.top_checkpoint().load() gives the best one."
    )
    return experiment
