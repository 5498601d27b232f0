"""What a trial knows about itself: configuration, hyperparameters, seed, and its place among the slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from det_native.schema.metric_names import metric_names


@dataclass(frozen=True)
class Ranks:
    """Place of this process among the processes of its trial."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    agents: int = 1


@dataclass(frozen=True)
class TrialEnvironment:
    """The facts that a trial is run with; plain data, the same for local and cluster runs.

    Attributes
    ----------
    config : dict
        The experiment configuration with all defaults filled in (the JSON form of ``ExperimentConfig``).
    hparams : dict
        One value for every hyperparameter.
    experiment_id, trial_id : int or None
        None in a local run that no master knows of.
    trial_seed : int
        Seed of every random number generator, in [0, 2**31).
    ranks : Ranks
        This process among the trial's processes.
    stage : dict or None
        The written form of a length: how far the trial trains now, if its search trains in stages. None for the whole
        length of the configuration.
    managed : bool
        False for a context made by ``from_config`` outside any run: wrappers pass through, nothing is seeded.
    """

    config: dict[str, Any]
    hparams: dict[str, Any]
    experiment_id: int | None = None
    trial_id: int | None = None
    trial_seed: int = 0
    ranks: Ranks = field(default_factory=Ranks)
    stage: dict[str, int] | None = None
    managed: bool = True

    @property
    def metric(self) -> str | None:
        """The searcher's metric, by which trials are compared; None if the configuration names none."""
        metric: str | None = (self.config.get("searcher") or {}).get("metric")
        return metric

    @property
    def smaller_is_better(self) -> bool:
        """Whether a smaller value of that metric is the better one."""
        return bool((self.config.get("searcher") or {}).get("smaller_is_better", True))

    @property
    def metrics(self) -> list[str]:
        """All metrics that trials are compared by, where there are several."""
        return metric_names(self.config)

    @property
    def stops_at_nan(self) -> bool:
        """Whether a trial ends when its loss becomes NaN or infinite: as configured, else if it is one of a search."""
        said = self.config.get("nan")
        if said is not None:
            return bool(said == "stop")
        return bool((self.config.get("searcher") or {}).get("name", "single") != "single")

    @property
    def slots(self) -> int:
        """Slots per trial, from the configuration; 1 for work without slots, which has one process too."""
        resources = self.config.get("resources") or {}
        return max(int(resources.get("slots_per_trial", 1)), 1)

    @property
    def native_parallel(self) -> bool:
        """Whether the framework itself spreads a batch over the slots of one process."""
        resources = self.config.get("resources") or {}
        return bool(resources.get("native_parallel", False))

    @property
    def per_slot_batch_size(self) -> int:
        """Records per batch in this process.

        Raises
        ------
        KeyError
            If ``hyperparameters.global_batch_size`` is not set.
        """
        batch_size = int(self.hparams["global_batch_size"])
        return batch_size if self.native_parallel else batch_size // self.slots

    @property
    def global_batch_size(self) -> int:
        """Records per batch over all slots, rounded down to a multiple of the slots."""
        return self.per_slot_batch_size * (1 if self.native_parallel else self.slots)

    @property
    def batch_size(self) -> int | None:
        """``global_batch_size``; None where the hyperparameters have none that is a number."""
        given = self.hparams.get("global_batch_size")
        return int(given) if isinstance(given, int | float) and not isinstance(given, bool) else None
