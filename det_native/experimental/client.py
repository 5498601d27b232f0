"""Determined's Python SDK: ``from determined.experimental import client``, then ``client.create_experiment(...)``.

Its functions ask the master of ``client.login()``; without that the one that ``DET_MASTER`` names, or that of this
machine.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Concatenate, Never, ParamSpec, TypeVar

import det_native.display  # noqa: F401 (handles show themselves by what it registers)
from det_native.absent import absent_attribute
from det_native.client.handles import Checkpoint, Experiment, Trial
from det_native.client.models import Model, ModelVersion
from det_native.client.sdk.absent_names import SDK
from det_native.client.sdk.determined import Determined
from det_native.client.sdk.determined import create_experiment as _submit
from det_native.client.sdk.metrics import TrainingMetrics, TrialMetrics, ValidationMetrics
from det_native.client.sdk.sorting import CheckpointSortBy, ExperimentSortBy, TrialSortBy
from det_native.public_names import listed
from det_native.schema.registry import ModelOrderBy, ModelSortBy, OrderBy
from det_native.schema.states import CheckpointState, ExperimentState, TrialState

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "Checkpoint",
    "CheckpointOrderBy",
    "CheckpointSortBy",
    "CheckpointState",
    "Determined",
    "DownloadMode",
    "Experiment",
    "ExperimentOrderBy",
    "ExperimentSortBy",
    "ExperimentState",
    "Model",
    "ModelOrderBy",
    "ModelSortBy",
    "ModelVersion",
    "OrderBy",
    "TrainingMetrics",
    "Trial",
    "TrialMetrics",
    "TrialOrderBy",
    "TrialSortBy",
    "TrialState",
    "ValidationMetrics",
    "create_experiment",
    "create_model",
    "get_checkpoint",
    "get_experiment",
    "get_model",
    "get_model_labels",
    "get_models",
    "get_trial",
    "iter_trials_metrics",
    "list_experiments",
    "list_models",
    "login",
    "logout",
    "stream_trials_metrics",
    "stream_trials_training_metrics",
    "stream_trials_validation_metrics",
]

CheckpointOrderBy = ExperimentOrderBy = TrialOrderBy = OrderBy


class DownloadMode(Enum):
    """By which way ``Checkpoint.download()`` gets files: by whichever of them is said, the master reads the storage."""

    DIRECT = "direct"
    MASTER = "master"
    AUTO = "auto"


_current: Determined | None = None


def login(
    master: str | None = None,
    user: str | None = None,
    password: str | None = None,
    cert_path: str | None = None,
    cert_name: str | None = None,
    noverify: bool = False,
) -> None:
    """Have the functions of this module ask a master; see ``Determined`` for the arguments. Nothing is stored.

    Raises
    ------
    MasterUnreachableError
        If no master answers; none is started.
    """
    global _current
    _current = Determined(master, user, password, cert_path, cert_name, noverify)


def logout() -> None:
    """Forget what ``login()`` was given; the functions of this module ask the default master again."""
    global _current
    if _current is not None:
        _current.logout()
    _current = None


def _determined() -> Determined:
    global _current
    if _current is None:
        _current = Determined()
    return _current


def create_experiment(
    config: str | os.PathLike[str] | Mapping[str, Any],
    model_dir: str | os.PathLike[str] | None = None,
    includes: Iterable[str | os.PathLike[str]] | None = None,
    project_id: int | None = None,
    template: str | None = None,
) -> Experiment:
    """Submit what a configuration names as ``entrypoint``, with a folder of code; see ``Determined``.

    Without ``login()`` and ``DET_MASTER``, the master of this machine is started if need be.

    Examples
    --------
    >>> experiment = client.create_experiment("const.yaml", model_dir=".")
    >>> experiment.wait() == client.ExperimentState.COMPLETED
    """
    if _current is not None:
        return _current.create_experiment(config, model_dir, includes, project_id, template)
    return _submit(None, config, model_dir, includes, project_id, template)


def _asks(method: Callable[Concatenate[Any, P], R]) -> Callable[P, R]:
    """Return a function that calls a method of ``Determined`` with the master of ``login()``."""

    @functools.wraps(method)
    def function(*arguments: P.args, **keywords: P.kwargs) -> R:
        return method(_determined(), *arguments, **keywords)

    _, *parameters = inspect.signature(method).parameters.values()
    function.__signature__ = inspect.signature(method).replace(parameters=parameters)  # type: ignore[attr-defined]
    function.__module__, function.__qualname__ = __name__, method.__name__
    return function


get_experiment = _asks(Determined.get_experiment)
list_experiments = _asks(Determined.list_experiments)
get_trial = _asks(Determined.get_trial)
get_checkpoint = _asks(Determined.get_checkpoint)
iter_trials_metrics = _asks(Determined.iter_trials_metrics)
stream_trials_metrics = _asks(Determined.stream_trials_metrics)
stream_trials_training_metrics = _asks(Determined.stream_trials_training_metrics)
stream_trials_validation_metrics = _asks(Determined.stream_trials_validation_metrics)
create_model = _asks(Determined.create_model)
get_model = _asks(Determined.get_model)
get_models = _asks(Determined.get_models)
list_models = _asks(Determined.list_models)
get_model_labels = _asks(Determined.get_model_labels)


def __getattr__(name: str) -> Never:
    raise absent_attribute(SDK, name) or AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = listed(__all__)
