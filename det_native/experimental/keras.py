"""``det.experimental.keras.init()``: train a tf.keras model of a notebook or script, here or on the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from det_native.capture.calls import calling_place
from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.client.keras_experiment import KerasExperiment
from det_native.experimental.arguments import Mode, any_documented_order
from det_native.experimental.native import (
    Begun,
    enter,
    first_environment,
    names_metric,
    replayed_environment,
    train_by_fit,
)
from det_native.experimental.settings import ConfigInput, Settings, check_settings, placed
from det_native.experimental.unwrapped import tell_of_unwrapped_models
from det_native.frameworks import translated
from det_native.public_names import listed
from det_native.runtime import ProgramHost, active_host

if TYPE_CHECKING:
    from det_native.experimental.origin import Origin
    from det_native.keras import TFKerasNativeContext
    from det_native.keras.native import FitCall

__all__ = ["init"]
__dir__ = listed(__all__)


@any_documented_order(leading=1)
def init(
    config: ConfigInput = None,
    mode: Mode | str | None = None,
    local: bool | None = None,
    test: bool | None = None,
    context_dir: str | os.PathLike[str] = "",
    command: Sequence[str] | None = None,
    master_url: str | None = None,
    *,
    values: Iterable[str] = (),
    include: Iterable[str | os.PathLike[str]] = (),
    show: Show = "view",
    wait: bool | None = None,
) -> TFKerasNativeContext:
    """Begin an experiment with a tf.keras model; ``fit()`` of a model that the context wraps then runs it.

    Calling it again, in the same kernel too, begins another experiment.

    Parameters
    ----------
    config : dict, str or path, optional
        Experiment configuration: a dictionary, YAML, or the path of a YAML file. What it does not say about length,
        epoch, batch size and metric, ``fit()`` says. Without it: one trial.
    mode : Mode or str, optional
        ``"cluster"`` (the default) submits the experiment. ``"local"`` is one minimal loop of training, validation and
        checkpointing in this process.
    local : bool, optional
        True trains in this process, to the end.
    test : bool, optional
        True runs one minimal loop only: here with ``local=True``, else on the cluster.
    context_dir : str or path
        Folder that is sent whole; it is the working directory of the code, here until ``fit()`` has returned.
        Without it, only what the call needs is sent.
    command : list of str, optional
        Script and arguments to run on the cluster, relative to `context_dir`; inferred by default.
    master_url : str, optional
        Master to submit to. Default: ``DET_MASTER``; without it the one of this machine, started if need be.
    values : iterable of str
        Names of variables (arrays, tables) whose value is sent, instead of running again the cell that makes it.
    include : iterable of str or path
        Further files to send.
    show : {"view", "bar", "none"}
        What a notebook shows while it trains: a live view, a progress bar where it waits, or errors only.
        ``fit(verbose=0)`` means the last one too.
    wait : bool, optional
        False: training calls on the cluster return at once, with the handle; its ``wait()`` brings the result into the
        objects of this process. By default they wait, as the plain calls do. Not with ``local=True``.

    Returns
    -------
    TFKerasNativeContext

    Raises
    ------
    ArgumentError
        If arguments contradict each other or name what does not exist.
    ConfigurationError
        Listing everything that is wrong with the configuration.
    UnsupportedFeatureError
        If the configuration asks for what comes with a later version.
    MissingDependencyError
        If TensorFlow is not installed.
    MasterUnreachableError
        If a master is named and does not answer.
    """
    host = active_host()
    if host is not None:
        return _replayed(host, config)
    begun = Begun.now()
    settings = check_settings(config, mode, local, test, context_dir, command, master_url, values, include, show, wait)
    settings = placed(settings, "keras")
    environment = first_environment(settings, "keras")
    with translated("det.experimental.keras.init()"):
        from det_native.keras import TFKerasNativeContext

    context = TFKerasNativeContext(
        environment,
        on_fit=partial(train_by_fit, fit_here=_fit_here, settings=settings, begun=begun, handle_of=_handle),
        role="local" if settings.place.local else "cluster",
        place=calling_place,
    )
    enter(settings, environment, begun)
    if context.role == "cluster":
        tell_of_unwrapped_models(context)
    return context


def _replayed(host: ProgramHost, config: ConfigInput) -> TFKerasNativeContext:
    """Return the context of a program that is run again for a trial."""
    from det_native.keras import TFKerasNativeContext

    environment = replayed_environment(host, config)
    context = TFKerasNativeContext(environment, on_fit=lambda call: host.take_call("fit", call), role=host.role)
    context.metric_said = names_metric(config, environment)
    return context


def _handle(call: FitCall, experiment: Experiment) -> KerasExperiment:
    """Return a handle that is used as Keras's ``History`` is."""
    return KerasExperiment(experiment.source, experiment.id, model=call.model, kind=call.history_kind)


def _fit_here(call: FitCall, settings: Settings, origin: Origin) -> Any:
    from det_native.experimental.local.calls import fit_here

    return fit_here(call, settings, origin)
