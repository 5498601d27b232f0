"""The arguments of ``init()`` and ``create()``, checked before anything else happens."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from det_native.client.addresses import THIS_MACHINE
from det_native.client.arguments import Show, checked_show
from det_native.errors import ArgumentError, UnsupportedFeatureError
from det_native.experimental.arguments import Mode, Place, resolve
from det_native.experimental.choice import choice
from det_native.experimental.directory import working_directory
from det_native.frameworks import get_framework
from det_native.schema.config import ExperimentConfig
from det_native.schema.effects import refuse_unsupported
from det_native.schema.loading import load_config
from det_native.schema.manifests import Framework
from det_native.schema.roles import STRATEGY, roles_of
from det_native.schema.searcher import SingleSearcher
from det_native.schema.signatures import checked_wait

ConfigInput = Mapping[str, Any] | str | Path | None

# What a call of fit() says where the configuration is silent. While the call is still to come, these stand in for it,
# so that everything else can be checked; each is recognised again by its value, which nobody would write.
_STAND_INS: dict[str, Any] = {
    "searcher.metric": "det_native: metric of the call to come",
    "searcher.max_length": {"batches": 2**52 + 1},
    "hyperparameters.global_batch_size": 2**31 - 19,
    "records_per_epoch": 2**52 + 3,
}


@dataclass(frozen=True)
class Settings:
    """Checked arguments of one ``init()`` or ``create()``.

    Attributes
    ----------
    config : dict, str, Path or None
        The configuration as it was at the call: changing the dictionary afterwards changes nothing.
    place : Place
    context_dir : Path or None
        Absolute.
    command : tuple of str or None
        The script's absolute path, and its arguments.
    master_url : str or None
    values : tuple of str
        Names of variables to send.
    include : tuple of Path
        Files to send. Absolute.
    show : {"view", "bar", "none"}
        What is seen of the training in a notebook.
    wait : bool
        Training calls on the cluster wait for their end.
    """

    config: ConfigInput
    place: Place
    context_dir: Path | None = None
    command: tuple[str, ...] | None = None
    master_url: str | None = None
    values: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    show: Show = "view"
    wait: bool = True


def check_settings(
    config: ConfigInput,
    mode: Mode | str | None,
    local: bool | None,
    test: bool | None,
    context_dir: str | os.PathLike[str] | None,
    command: Sequence[str] | None,
    master_url: str | None,
    values: Iterable[str],
    include: Iterable[str | os.PathLike[str]],
    show: str = "view",
    wait: bool | None = None,
) -> Settings:
    """Check the arguments of a call; see ``init()`` for their meaning.

    Raises
    ------
    ArgumentError
        If one has no meaning, or two contradict each other.
    """
    checked_wait("init", wait)
    resolved = resolve(mode, local, test)
    if resolved.local and wait is False:
        raise ArgumentError(
            "local=True and wait=False contradict each other: a local run trains in this process, which has its result "
            "when the call returns. Leave one of them out."
        )
    place = choice().place(resolved)
    folder = _context_dir(context_dir)
    if master_url is not None and not isinstance(master_url, str):
        raise ArgumentError(f"master_url must be text such as 'http://localhost:8080', not {master_url!r}.")
    return Settings(
        config=choice().configuration(_snapshot(config)),
        place=place,
        context_dir=folder,
        command=_command(command, folder),
        master_url=master_url or None,
        values=_values(values),
        include=_include(include),
        show=checked_show(show),
        wait=wait is not False,
    )


def placed(settings: Settings, framework: Framework) -> Settings:
    """Return the settings with where they train: a local call that cannot in this process is one for the master here.

    Raises
    ------
    ConfigurationError
        Listing every problem.
    """
    if not settings.place.local:
        return settings
    several = trains_on_several(settings, framework)
    config = load_config(settings.config, local=True, processes=several, defaults=_STAND_INS, warn=False)
    slots, searcher = config.resources.slots_per_trial, config.searcher.name
    if searcher != "single" and not settings.place.test:
        return by_master(settings, f"searcher.name: {searcher}")
    if slots > 1:
        return by_master(settings, f"resources.slots_per_trial: {slots}")
    if len(roles_of(config.model_dump(mode="json"))) > 1:
        return by_master(settings, f"distributed.strategy: {STRATEGY}")
    if get_framework(framework).own_process:
        return by_master(settings, f"Training by {framework}")
    return settings


def by_master(settings: Settings, why: str) -> Settings:
    """Return the settings of a local call that the master of this machine trains.

    Parameters
    ----------
    settings : Settings
    why : str
        What of it needs processes of its own.
    """
    notice = f"{why}: local=True trains this in processes of its own, which the master of this machine starts."
    place = replace(settings.place, local=False, by_master=True, notice=notice)
    return replace(settings, place=place, master_url=THIS_MACHINE)


def check_before_fit(settings: Settings, framework: Framework = "keras") -> dict[str, Any]:
    """Check all of a configuration that does not hang on the call of ``fit()`` to come.

    Returns
    -------
    dict
        The configuration with all defaults filled in; what the call will fill in is left at its default.

    Raises
    ------
    ConfigurationError
        Listing every problem.
    UnsupportedFeatureError
        If it asks for what this version does not run yet.
    """
    loaded = load_config(settings.config, local=settings.place.local, defaults=_STAND_INS, warn=False)
    check_supported(loaded, settings, framework)
    return _without_stand_ins(loaded.with_some_seed())


def as_written(config: ConfigInput) -> dict[str, Any]:
    """Return a configuration of which no call is known: all that it says, what a call fills in at its default.

    Raises
    ------
    ConfigurationError
        Listing every problem of what it says.
    """
    return _without_stand_ins(load_config(config, local=True, defaults=_STAND_INS, warn=False))


def _without_stand_ins(loaded: ExperimentConfig) -> dict[str, Any]:
    complete = loaded.model_dump(mode="json")
    searcher, hyperparameters = complete["searcher"], complete["hyperparameters"]
    if searcher["metric"] == _STAND_INS["searcher.metric"]:
        searcher["metric"] = None
    if searcher.get("max_length") == _STAND_INS["searcher.max_length"]:
        searcher["max_length"] = SingleSearcher().model_dump(mode="json")["max_length"]
    if _is_stand_in(hyperparameters.get("global_batch_size")):
        del hyperparameters["global_batch_size"]
    if complete["records_per_epoch"] == _STAND_INS["records_per_epoch"]:
        complete["records_per_epoch"] = 0
    return complete


def has_seed(settings: Settings) -> bool:
    """Return whether the configuration says from which seed all is drawn: ``reproducibility.experiment_seed``."""
    loaded = load_config(settings.config, local=settings.place.local, defaults=_STAND_INS, warn=False)
    return loaded.reproducibility.experiment_seed is not None


def complete_for_fit(settings: Settings, call: Any, *, warn: bool = True) -> ExperimentConfig:
    """Complete the configuration by what a call of ``fit()`` says.

    Parameters
    ----------
    settings : Settings
    call : FitCall or TorchCall
    warn : bool
        Whether to warn where both speak and differ.

    Raises
    ------
    ConfigurationError
        Listing every problem.
    InvalidDataError
        If the length of an epoch cannot be known.
    """
    with working_directory.inside(settings.context_dir):  # counting the batches may read data
        fills = call.configuration_fills()
    assumed = call.assumed
    loaded = load_config(
        settings.config,
        local=settings.place.local,
        fills={path: value for path, value in fills.items() if path not in assumed},
        defaults={path: value for path, value in fills.items() if path in assumed},
        framework=call.framework,
        warn=warn,
    )
    refuse_unsupported(loaded, call.framework)
    return loaded


def trains_on_several(settings: Settings, framework: Framework) -> bool:
    """Return whether a call of ``fit()`` or ``train()`` can train on several slots: a quick check here has one."""
    described = get_framework(framework)
    return not settings.place.test and (bool(described.gradient_means) or described.roles)


def check_supported(config: ExperimentConfig, settings: Settings, framework: Framework | None) -> None:
    """Refuse what this version does not run.

    Parameters
    ----------
    config : ExperimentConfig
    settings : Settings
    framework : str or None
        What is trained with; None if that is not known yet.

    Raises
    ------
    UnsupportedFeatureError
        Naming every such field.
    """
    if settings.place.local:
        _refuse_source(config)
    if settings.place.test or settings.place.local:  # one trial is all it runs
        config = config.model_copy(update={"searcher": SingleSearcher(metric=config.searcher.metric)})
    refuse_unsupported(config, framework)


def _refuse_source(config: ExperimentConfig) -> None:
    """Refuse what only trials of a cluster begin with: the checkpoints are the master's."""
    for field in ("source_trial_id", "source_checkpoint_uuid"):
        value = getattr(config.searcher, field)
        if value is not None:
            raise UnsupportedFeatureError(
                f"searcher.{field}: {value} is a checkpoint of the cluster, and this run is local: leave local=True "
                "out, or load the weights in your own code with det.attach(...)."
            )


def _snapshot(config: ConfigInput) -> ConfigInput:
    if isinstance(config, Mapping):
        copied: dict[str, Any] = _copied(config)
        return copied
    return config.expanduser().absolute() if isinstance(config, Path) else config


def _copied(value: Any) -> Any:
    """Copy containers, and only them: what a configuration cannot hold is for its own check to name."""
    if isinstance(value, Mapping):
        return {key: _copied(entry) for key, entry in value.items()}
    return [_copied(entry) for entry in value] if type(value) in (list, tuple) else value


def _is_stand_in(hyperparameter: Any) -> bool:
    value = hyperparameter.get("val") if isinstance(hyperparameter, dict) else hyperparameter
    return bool(value == _STAND_INS["hyperparameters.global_batch_size"])


def _context_dir(context_dir: str | os.PathLike[str] | None) -> Path | None:
    if context_dir is None or context_dir == "":
        return None
    if not isinstance(context_dir, str | os.PathLike):
        raise ArgumentError(f"context_dir must be the path of a folder, not {context_dir!r}.")
    folder = Path(context_dir).expanduser().absolute()
    if not os.path.isdir(folder):  # False of a name that no folder can have, too
        problem = "is a file, not a folder" if os.path.exists(folder) else "does not exist"
        raise ArgumentError(f"context_dir={os.fspath(context_dir)!r}: {folder} {problem}.")
    return folder.resolve()


def _command(command: Sequence[str] | None, folder: Path | None) -> tuple[str, ...] | None:
    if command is None:
        return None
    if isinstance(command, str) or not all(isinstance(part, str) for part in command):
        raise ArgumentError(f"command must be a list of texts such as ['train.py', '--fast'], not {command!r}.")
    words = list(command[1:]) if command and Path(command[0]).name.startswith("python") else list(command)
    if not words:
        raise ArgumentError("command names no script; leave it out, or give the script and its arguments.")
    folders = [folder, Path.cwd()] if folder is not None else [Path.cwd()]
    for script in (each / Path(words[0]).expanduser() for each in folders):
        if os.path.isfile(script):
            return str(script.resolve()), *words[1:]
    raise ArgumentError(f"command names the script {words[0]!r}, but there is no such file in {folders[0]}.")


def _values(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise ArgumentError(f"values must be a list of names: values=[{values!r}].")
    names = tuple(values)
    wrong = [name for name in names if not isinstance(name, str) or not name.isidentifier()]
    if wrong:
        kinds = ", ".join(repr(name) if isinstance(name, str) else f"a {type(name).__name__}" for name in wrong)
        raise ArgumentError(f"values must hold names of variables, such as values=['x_train'], not {kinds}.")
    return tuple(dict.fromkeys(names))


def _include(include: Iterable[str | os.PathLike[str]]) -> tuple[Path, ...]:
    if isinstance(include, str | os.PathLike):
        raise ArgumentError(f"include must be a list of paths: include=[{os.fspath(include)!r}].")
    paths = tuple(Path(path).expanduser().absolute() for path in include)
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise ArgumentError(f"include: there is no {', '.join(missing)}.")
    return paths
