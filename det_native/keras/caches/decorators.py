"""The decorators of ``context.experimental`` that write a Dataset to disk once, and read it from there."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from det_native.errors import ArgumentError, TrialDefinitionError, UnsupportedFeatureError
from det_native.keras.caches.order import Order
from det_native.keras.caches.reading import read, records_of
from det_native.keras.caches.store import CacheFolder
from det_native.keras.pipelines import batch_size_of_step, is_repeat, steps_up
from det_native.schema.environment import TrialEnvironment
from det_native.schema.home import Home
from det_native.trial import TrialContext

Kind = Literal["train", "validation"]
Maker = Callable[..., Any]


class DatasetCaches:
    """The cached datasets of one trial.

    Parameters
    ----------
    context : TrialContext
        Its environment may become another one until a dataset is made.
    rebuilt : bool
        Whether the data are made more than once in a trial, for each evaluation say.

    Attributes
    ----------
    writing : bool
        Whether a function under a decorator runs at this moment: what it makes is for all processes of all trials.
    used : int
        How many cached datasets the trial has asked for.
    """

    def __init__(self, context: TrialContext, *, rebuilt: bool = False) -> None:
        self._context = context
        self._rebuilt = rebuilt
        self._decorated: dict[Kind, tuple[str, str]] = {}
        self.writing = False
        self.used = 0

    def decorator(self, kind: Kind, dataset_id: str, dataset_version: str, order: Order) -> Callable[[Maker], Maker]:
        """Return a decorator for a function that returns a Dataset.

        Raises
        ------
        ArgumentError
            If id or version are no text.
        """
        for name, value in (("dataset_id", dataset_id), ("dataset_version", dataset_version)):
            if not isinstance(value, str) or not value:
                remedy = f'; write @...cache_{kind}_dataset("name", "v1")' if callable(value) else ""
                raise ArgumentError(f"cache_{kind}_dataset(): {name} must be a text, not {value!r}{remedy}.")

        def decorate(make: Maker) -> Maker:
            @functools.wraps(make)
            def cached(*args: Any, **kwargs: Any) -> Any:
                environment = self._context.env
                self._use_once(kind, (dataset_id, dataset_version))
                folder = CacheFolder(folder_of_caches(environment), dataset_id, dataset_version, kind)
                records = folder.get(lambda: self._make(make, args, kwargs), _is_batched)
                if records.batched:
                    warnings.warn(
                        f"The {records.name} was batched before it was cached: its records are whole batches, "
                        "which are shuffled and shared among processes as they are. Call dataset.batch() on what the "
                        "decorated function returns, and give the cache another version.",
                        UserWarning,
                        stacklevel=2,
                    )
                ranks = environment.ranks
                rank, size = (ranks.rank, ranks.size) if environment.managed else (0, 1)
                self.used += 1
                return read(records, order, environment.trial_seed, rank, size)

            return cached

        return decorate

    def _use_once(self, kind: Kind, name: tuple[str, str]) -> None:
        again = self._rebuilt and self._decorated.get(kind) == name
        if kind in self._decorated and not again and self._context.env.managed:
            raise TrialDefinitionError(
                f"cache_{kind}_dataset() is used twice in this trial, which has one dataset for that: put what belongs "
                "together into one function, and cache what it returns."
            )
        self._decorated[kind] = name

    def _make(self, make: Maker, args: Any, kwargs: Any) -> Any:
        self.writing = True
        try:
            return make(*args, **kwargs)
        finally:
            self.writing = False


def folder_of_caches(environment: TrialEnvironment) -> Path:
    """Return where the configuration keeps cached datasets.

    Raises
    ------
    UnsupportedFeatureError
        If that is a bucket.
    """
    layer = environment.config.get("data_layer") or {}
    kind = layer.get("type") or "shared_fs"
    if kind != "shared_fs":
        raise UnsupportedFeatureError(
            f"data_layer.type: {kind} comes with a later version. Leave data_layer out, or name a folder that all "
            "machines see: data_layer: {type: shared_fs, host_storage_path: /folder}."
        )
    # Trials run as processes of the host, so its path counts where both are given.
    given = layer.get("host_storage_path") or layer.get("container_storage_path")
    return Path(given) if given else Home.default().datasets


def is_cached(dataset: Any) -> bool:
    """Return whether a Dataset is made from a cached one."""
    return any(records_of(step) is not None for step in steps_up(dataset))


def check_after_cache(dataset: Any) -> None:
    """Warn of a cached Dataset that the user repeats."""
    steps = []
    for step in steps_up(dataset):
        records = records_of(step)
        if records is None:
            steps.append(step)
        elif any(is_repeat(each) for each in steps):
            warnings.warn(
                f"dataset.repeat() is called on the {records.name}: training repeats it by itself. With it an epoch is "
                "as long as records_per_epoch says, and a batch may have records of two epochs. Leave it out.",
                UserWarning,
                stacklevel=2,
            )


def _is_batched(dataset: Any) -> bool:
    return any(batch_size_of_step(step) is not None for step in steps_up(dataset))
