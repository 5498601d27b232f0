"""The Core API for a script that runs anywhere: it reports to a master, and is no experiment that a master starts.

In an experiment ``init()`` gives the context of that, and what is said of an unmanaged one has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from det_native.core import DistributedContext, PreemptMode, TensorboardMode
from det_native.core.cluster_info import get_cluster_info
from det_native.core.entry import close_at_exit
from det_native.core.entry import init as init_of_trial
from det_native.errors import ArgumentError, UnsupportedFeatureError
from det_native.public_names import listed

if TYPE_CHECKING:
    from det_native.core.context import Context
    from det_native.experimental.unmanaged import UnmanagedRun

_FIELDS = (
    "name",
    "hparams",
    "data",
    "description",
    "labels",
    "workspace",
    "project",
    "checkpoint_storage",
    "searcher",
    "external_experiment_id",
    "external_trial_id",
)
_OF_CONTEXT = ("checkpoint", "distributed", "info", "preempt", "profiler", "searcher", "train")

__all__ = [
    "Config",
    "DefaultConfig",
    "DistributedContext",
    "PreemptMode",
    "TensorboardMode",
    "UnmanagedConfig",
    "close",
    "init",
    "init_context",
    "url_reverse_webui_exp_view",
]


class Config:
    """What an experiment is called, and what it is made with.

    Parameters
    ----------
    name, description : str, optional
    hparams : mapping, optional
        A value for each hyperparameter.
    data : mapping, optional
        Facts of your own: ``context.info.user_data``.
    labels : list of str, optional
    project : str, optional
        The folder in which the experiment is listed.
    workspace : str, optional
        Has no effect: there are no workspaces.
    checkpoint_storage : str or mapping, optional
        Where checkpoints go.
    searcher : mapping, optional
        ``{"name": "single", "metric": "loss", "smaller_is_better": True}``.
    external_experiment_id, external_trial_id : str, optional
        By what the training is known outside. A process with the same names goes on with it: metrics are added, and
        ``det.get_cluster_info().latest_checkpoint`` is the one to continue from.
    """

    def __init__(self, **kwargs: Any) -> None:
        unknown = next((name for name in kwargs if name not in _FIELDS), None)
        if unknown is not None:
            raise ArgumentError(f"{type(self).__name__}({unknown}=...): it takes {', '.join(_FIELDS)}.")
        for name in _FIELDS:
            setattr(self, name, kwargs.get(name))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in _FIELDS if getattr(self, name) is not None)
        return f"{type(self).__name__}({said})"


class DefaultConfig(Config):
    """What counts where the other configuration is silent, see :class:`Config`."""


class UnmanagedConfig(Config):
    """What counts for a script that no master has started, see :class:`Config`."""


_context: Context | None = None
_run: UnmanagedRun | None = None


def init_context(
    *,
    config: Config | None = None,
    defaults: DefaultConfig | None = None,
    unmanaged: UnmanagedConfig | None = None,
    client: Any = None,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> Context:
    """Return a context of this process: of the experiment that it belongs to, else of one that a master records.

    Parameters
    ----------
    config : Config, optional
        What counts before `defaults` and `unmanaged`.
    defaults : DefaultConfig, optional
    unmanaged : UnmanagedConfig, optional
    client : Determined, optional
        Which master records it; by itself that of ``DET_MASTER``, else that of this machine.
    distributed, checkpoint_storage, preempt_mode, tensorboard_mode
        See :func:`det_native.core.init`.

    Raises
    ------
    NotRecordedError
        If no master can be reached.
    ArgumentError
        If there is nothing to go by: neither `config` nor `defaults` nor `unmanaged`.
    """
    global _run
    for name, given in (("config", config), ("defaults", defaults), ("unmanaged", unmanaged)):
        if given is not None and not isinstance(given, Config):
            raise ArgumentError(f"core_v2.init({name}={given!r:.60}): give core_v2.{_class_of(name)}(name=..., ...).")
    modes: dict[str, Any] = {"preempt_mode": preempt_mode, "tensorboard_mode": tensorboard_mode}
    if get_cluster_info() is not None:
        return init_of_trial(distributed=distributed, checkpoint_storage=checkpoint_storage, **modes)
    merged = _merged(unmanaged, config, defaults)
    if merged is None:
        raise ArgumentError(
            "core_v2.init(): this process belongs to no experiment. Say what one is called: core_v2.init("
            'defaults=core_v2.DefaultConfig(name="digits")).'
        )
    if checkpoint_storage is not None:
        merged["checkpoint_storage"] = checkpoint_storage
    from det_native.experimental.unmanaged import UnmanagedRun, begin, begin_beside, external_name

    if distributed is not None and distributed.rank:  # the first process reports
        return begin_beside(distributed, **modes)
    external = external_name(merged.pop("external_experiment_id", None), merged.pop("external_trial_id", None))
    _run = UnmanagedRun(_loaded(merged), getattr(client, "master_url", None), external)
    return begin(_run, distributed=distributed, **modes)


def init(**arguments: Any) -> None:
    """Make the context of this process, see :func:`init_context`: ``core_v2.train``, ``core_v2.checkpoint`` and so on.

    It ends by :func:`close`, or with the process.

    Examples
    --------
    >>> from det_native.experimental import core_v2
    >>> core_v2.init(defaults=core_v2.DefaultConfig(name="digits"))
    >>> for step in range(100):
    ...     core_v2.train.report_training_metrics(step + 1, {"loss": train(step)})
    >>> core_v2.close()
    """
    global _context
    if _context is not None:
        close()
    _context = init_context(**arguments)
    close_at_exit(_context)


def close() -> None:
    """End the training of :func:`init`; without one nothing happens."""
    global _context
    context, _context = _context, None
    if context is not None:
        context.close()


def url_reverse_webui_exp_view() -> str:
    """Return a link to the page of the experiment, which signs a browser in once.

    Raises
    ------
    ArgumentError
        If nothing is recorded by this process.
    """
    if _run is None or not _run.number:
        raise ArgumentError("core_v2.url_reverse_webui_exp_view(): call core_v2.init(defaults=...) first.")
    from det_native.client.page_link import page_of

    return page_of(_run.session(), _run.number)


def _class_of(argument: str) -> str:
    return {"defaults": "DefaultConfig", "unmanaged": "UnmanagedConfig"}.get(argument, "Config")


def _merged(*given: Config | None) -> dict[str, Any] | None:
    """Return what the configurations say, the first ones before the others; None without any."""
    found = [each for each in given if each is not None]
    if not found:
        return None
    merged: dict[str, Any] = {}
    for each in reversed(found):
        merged.update({name: getattr(each, name) for name in _FIELDS if getattr(each, name) is not None})
    return merged


def _loaded(said: dict[str, Any]) -> Any:
    """Return the configuration of an experiment."""
    from det_native.schema.lengths import UNTOLD
    from det_native.schema.loading import load_config

    if said.pop("workspace", None) is not None:
        print(
            "workspace has no effect: there are no workspaces; project= is the folder in which experiments are listed."
        )
    config = {"hyperparameters": said.pop("hparams", {}), **said}
    storage = config.get("checkpoint_storage")
    if isinstance(storage, str):
        config["checkpoint_storage"] = (
            {"type": "url", "url": storage} if "://" in storage else {"type": "shared_fs", "host_path": storage}
        )
    searcher = config.get("searcher") or {}
    if searcher.get("name", "single") not in ("single", "custom"):
        raise UnsupportedFeatureError(
            f"core_v2: searcher.name is {searcher['name']!r}, and a script that runs by itself is one trial: a search "
            "needs an experiment, with the script as its entrypoint."
        )
    config["searcher"] = {**searcher, "name": "single"}
    return load_config(
        config, local=True, framework="core", defaults={"searcher.max_length": {"batches": UNTOLD.units}}
    )


def __getattr__(name: str) -> Any:
    if name in _OF_CONTEXT:
        if _context is None:
            raise ArgumentError(f"core_v2.{name} is there after core_v2.init(defaults=...).")
        return getattr(_context, name)
    raise AttributeError(f"module 'det_native.experimental.core_v2' has no attribute {name!r}")


__dir__ = listed([*__all__, *_OF_CONTEXT])
