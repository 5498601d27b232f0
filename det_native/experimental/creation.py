"""``det.experimental.create()``: train a Trial class, here or on the cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from det_native.capture.calls import note_call
from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.errors import ArgumentError, of_the_users
from det_native.experimental.arguments import Mode, any_documented_order
from det_native.experimental.directory import working_directory
from det_native.experimental.origin import Origin
from det_native.experimental.scripts import trial_class_in
from det_native.experimental.settings import (
    ConfigInput,
    Settings,
    by_master,
    check_settings,
    check_supported,
    placed,
)
from det_native.experimental.trials import find_trial_class, framework_of
from det_native.runtime import active_host
from det_native.schema.loading import ConfigurationWarning, load_config
from det_native.schema.manifests import Framework
from det_native.schema.searcher import OptunaSearcher
from det_native.trial import Trial


@any_documented_order(leading=2)
def create(
    trial_def: type[Trial] | str | None = None,
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
) -> Experiment:
    """Train a Trial class; the class may be defined in a cell.

    Parameters
    ----------
    trial_def : type or str, optional
        A subclass of a framework's Trial class, such as ``det.pytorch.PyTorchTrial``, or ``"module:Class"``; by default
        the configuration's ``entrypoint``. A module that is named so may import ``determined``: it gets det_native.
    config, mode, local, test, context_dir, command, master_url, values, include, show
        See ``det.experimental.keras.init()``.

    Returns
    -------
    Experiment
        At once for the cluster; after the training for ``local=True``. A search, and a trial on several slots, are
        then trained by the master of this machine.

    Raises
    ------
    ArgumentError
        If arguments contradict each other or name what does not exist.
    TrialDefinitionError
        If `trial_def` is no Trial class.
    ConfigurationError
        Listing everything that is wrong with the configuration.
    UnsupportedFeatureError
        If the configuration asks for what comes with a later version.
    """
    host = active_host()
    if host is not None:
        named = trial_class_in(host.environment.config.get("entrypoint")) if trial_def is None else trial_def
        handle: Experiment = host.take_call("create", find_trial_class(named, None))
        return handle
    record = note_call("create")
    working_directory.leave()
    settings = check_settings(config, mode, local, test, context_dir, command, master_url, values, include, show)
    try:
        return train_class(entrypoint_of(settings) if trial_def is None else trial_def, settings, Origin(record))
    except Exception as error:
        __tracebackhide__ = True
        if not settings.place.local:
            raise
        raise of_the_users(error)


def train_class(named: type[Trial] | str, settings: Settings, origin: Origin) -> Experiment:
    """Train a Trial class as the settings say; see :func:`create`."""
    trial_class = find_trial_class(named, settings.context_dir)
    framework = framework_of(trial_class)
    _check(trial_class, framework)
    name = named if isinstance(named, str) else f"{trial_class.__module__}:{trial_class.__qualname__}"
    return _train(trial_class, name, framework, placed(settings, framework), origin)


def _train(trial_class: type[Trial], name: str, framework: Framework, settings: Settings, origin: Origin) -> Experiment:
    loaded = load_config(settings.config, local=settings.place.local, framework=framework, trains=name)
    check_supported(loaded, settings, framework)
    searcher = loaded.searcher
    if isinstance(searcher, OptunaSearcher) and searcher.prunes and not loaded.min_validation_period.units:
        warnings.warn(
            "searcher.pruner sees nothing of these trials: they are validated at their end only. Set "
            "min_validation_period to how often it is to be asked, for example {epochs: 1}.",
            ConfigurationWarning,
            stacklevel=4,
        )
    if settings.place.notice:
        print(settings.place.notice)
    if settings.place.local:
        from det_harness.trial.services import OwnProcessNeededError

        from det_native.experimental.local.calls import create_here

        try:
            return create_here(trial_class, framework, loaded, settings, origin)
        except OwnProcessNeededError as need:
            settings = by_master(settings, str(need))
        return _train(trial_class, name, framework, settings, origin)
    from det_native.experimental.cluster import train_by_master

    return train_by_master("create", trial_class, loaded, framework, settings, origin)


def entrypoint_of(settings: Settings) -> str:
    """Return the Trial class that the configuration names."""
    loaded = load_config(settings.config, local=settings.place.local, warn=False)
    named = trial_class_in(loaded.entrypoint)
    if named is not None:
        return named
    if loaded.entrypoint is None:
        raise ArgumentError(
            "create() has no Trial class: give it, or name it in the configuration (entrypoint: model_def:MyTrial)."
        )
    raise ArgumentError(
        f"entrypoint: {loaded.entrypoint!r} of the configuration names no Trial class (model_def:MyTrial). A script "
        "that makes the call itself is sent by command=; commands, and scripts that know nothing of det_native, are "
        "trained by `det experiment create`."
    )


def _check(trial_class: type[Trial], framework: Framework) -> None:
    """Refuse a class that could not be trained, as the worker would."""
    from det_harness.frameworks.base import harness_of

    harness_of(framework).check(trial_class)


def create_trial_instance(
    trial_def: type[Trial] | str,
    checkpoint_dir: str | os.PathLike[str] = "",
    config: ConfigInput = None,
    hparams: dict[str, Any] | None = None,
) -> Trial:
    """Make an instance of a Trial class outside any run, to try its methods.

    Deprecated: ``trial_class(trial_class.trial_context_class.from_config(config))`` is the same.

    Parameters
    ----------
    trial_def : type or str
        A Trial class, or ``"module:Class"``.
    checkpoint_dir : str or path
        Has no effect; it is there for code that was written for Determined.
    config : dict, str or path, optional
        Experiment configuration.
    hparams : dict, optional
        Hyperparameters; one sample of the configuration's by default.

    Raises
    ------
    ArgumentError
        If `hparams` is no dictionary.
    TrialDefinitionError
        If `trial_def` is no Trial class, or lacks methods.
    ConfigurationError
        Listing everything that is wrong with the configuration.
    """
    warnings.warn(
        "create_trial_instance() is deprecated: make a context with from_config(config), and the trial with that.",
        DeprecationWarning,
        stacklevel=2,
    )
    if hparams is not None and not isinstance(hparams, dict):
        raise ArgumentError(f"hparams must be a dictionary of values by name, not {hparams!r}.")
    trial_class = find_trial_class(trial_def, None)
    _check(trial_class, framework_of(trial_class))
    written = load_config(config, local=True, warn=hparams is None)
    raw = written.model_dump(mode="json")
    if hparams is not None:
        raw["hyperparameters"] = {name: {"type": "const", "val": value} for name, value in hparams.items()}
    return trial_class(trial_class.trial_context_class.from_config(raw))
