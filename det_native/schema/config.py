"""The experiment configuration: every field of Determined's, with its default and what is valid.

This is the normal form that travels between notebook, master and worker. What users write (older names, YAML, values to
fill in) is turned into it by ``det_native.schema.loading.load_config``.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from det_native.schema.checks import consistency_problems
from det_native.schema.hyperparameters import Hyperparameter
from det_native.schema.lengths import Length, Unit
from det_native.schema.notify import Notify
from det_native.schema.resources import (
    Distributed,
    Environment,
    LogPolicy,
    Optimizations,
    Pbs,
    Profiling,
    Reproducibility,
    Resources,
    RetentionPolicy,
    Slurm,
)
from det_native.schema.roles import with_slots_of_roles
from det_native.schema.sampling import SEED_LIMIT
from det_native.schema.searcher import Searcher, SingleSearcher
from det_native.schema.section import Positive, Section, Whole
from det_native.schema.storage_config import (
    BindMount,
    CheckpointStorage,
    DataLayer,
    MasterStorage,
    SharedFileDataLayer,
)
from det_native.schema.watchdog import Watchdog

#: Which weights the objects of a notebook get once they were trained elsewhere.
WeightsAfter = Literal["last", "best"]

OFF = Length(unit=Unit.BATCHES, units=0)


_WORDS = re.compile(
    r"(?:experiments?\s)?\s*([1-9][0-9]{0,17}(?:\s*(?:,|,?\sand\s)\s*[1-9][0-9]{0,17})*)", re.IGNORECASE
)
_NUMBER = re.compile(r"[0-9]+")


def numbers_after(value: Any) -> Any:
    """Return the numbers of experiments as a list: of a number, of a text such as ``experiment 7``, of a list of these.

    What is neither number nor text stays as it is.

    Raises
    ------
    ValueError
        If a text names no experiments.
    """
    if isinstance(value, str):
        return _named(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    if isinstance(value, list | tuple):
        return [number for entry in value for number in (_named(entry) if isinstance(entry, str) else [entry])]
    return value


def _named(text: str) -> list[int]:
    found = _WORDS.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            "must be the number of an experiment on the cluster, several of them, or a text such as "
            f"'experiment 7' or 'experiments 7, 9', not {text[:100]!r}"
        )
    return [int(number) for number in _NUMBER.findall(found[1])]


class ExperimentConfig(Section):
    """An experiment's configuration, complete and immutable.

    Lengths of 0 batches switch a period off. ``ExperimentConfig.model_validate(config.model_dump(mode="json"))`` is
    equal to ``config``.
    """

    name: str | None = None
    description: str | None = None
    labels: list[str] = Field(default_factory=list)
    data: dict[str, Any] = Field(default_factory=dict)
    workspace: str | None = None
    project: str | None = None
    entrypoint: str | list[str] | None = None

    hyperparameters: dict[str, Hyperparameter] = Field(default_factory=dict)
    searcher: Searcher = Field(default_factory=SingleSearcher)

    scheduling_unit: Positive = 100
    records_per_epoch: Whole = 0
    min_validation_period: Length = OFF
    min_checkpoint_period: Length = OFF
    perform_initial_validation: bool = False
    checkpoint_policy: Literal["best", "all", "none"] = "best"
    max_restarts: Whole = 5
    nan: Literal["stop", "warn"] | None = None
    proof: Literal["error", "warn", "off"] = "error"
    weights: WeightsAfter = "last"

    checkpoint_storage: CheckpointStorage = Field(default_factory=MasterStorage)
    resources: Resources = Field(default_factory=Resources)
    optimizations: Optimizations = Field(default_factory=Optimizations)
    distributed: Distributed = Field(default_factory=Distributed)
    environment: Environment = Field(default_factory=Environment)
    bind_mounts: list[BindMount] = Field(default_factory=list)
    watchdog: Watchdog = Field(default_factory=Watchdog)
    reproducibility: Reproducibility = Field(default_factory=Reproducibility)
    data_layer: DataLayer = Field(default_factory=SharedFileDataLayer)
    profiling: Profiling = Field(default_factory=Profiling)

    log_policies: list[LogPolicy] = Field(default_factory=list)
    log_retention_days: Annotated[int, Field(ge=-1, le=32_767)] | None = None
    retention_policy: RetentionPolicy | None = None
    notify: list[Notify] = Field(default_factory=list, max_length=20)
    after: Annotated[list[Annotated[int, Field(ge=1)]], BeforeValidator(numbers_after)] = Field(default_factory=list)
    integrations: dict[str, Any] | None = None
    preemption_timeout: Positive | None = None
    slurm: Slurm = Field(default_factory=Slurm)
    pbs: Pbs = Field(default_factory=Pbs)
    debug: bool | dict[str, Any] = False
    internal: dict[str, Any] | None = None
    security: dict[str, Any] | None = None
    tensorboard_storage: dict[str, Any] | None = None

    @field_validator("labels", mode="before")
    @classmethod
    def _labels_of_a_map(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return [label for label, wanted in value.items() if wanted]
        return value

    @field_validator("weights", mode="before")
    @classmethod
    def _no_stay(cls, value: Any) -> Any:
        if value == "stay":
            text = "'stay' was removed. A call with wait=False leaves the model as it is until experiment.wait()"
            raise PydanticCustomError("weights_stay", text)
        return value

    @model_validator(mode="before")
    @classmethod
    def _slots_of_roles(cls, value: Any) -> Any:
        return with_slots_of_roles(value) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = consistency_problems(self.model_dump(mode="json"))
        if problems:
            text = "\n".join(str(problem) for problem in problems)
            raise PydanticCustomError("consistency", "{text}", {"text": text})
        return self

    @property
    def metric(self) -> str:
        """The validation metric that trials are compared by; empty if the configuration names none (local runs)."""
        return self.searcher.metric or ""

    @property
    def smaller_is_better(self) -> bool:
        """Whether a smaller value of the metric is the better one."""
        return self.searcher.smaller_is_better

    @property
    def title(self) -> str:
        """``name``, else ``description``, else empty; one of nothing but spaces would not be seen."""
        return (self.name or "").strip() or (self.description or "").strip()

    def with_seed(self, experiment_seed: int) -> Self:
        """Return this configuration with ``reproducibility.experiment_seed`` fixed.

        Parameters
        ----------
        experiment_seed : int
            In [0, 2**31).
        """
        fixed = Reproducibility(experiment_seed=experiment_seed)
        return self.model_copy(update={"reproducibility": fixed})

    def with_variables(self, variables: Mapping[str, str]) -> Self:
        """Return this configuration with environment variables that hold where it does not set them itself."""
        if not variables:
            return self
        together = self.environment.environment_variables.with_defaults(variables)
        environment = self.environment.model_copy(update={"environment_variables": together})
        return self.model_copy(update={"environment": environment})

    def with_some_seed(self) -> Self:
        """Return this configuration with a seed: its own, or one that is drawn now."""
        if self.reproducibility.experiment_seed is not None:
            return self
        return self.with_seed(secrets.randbelow(SEED_LIMIT))
