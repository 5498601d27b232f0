"""The ``searcher`` section: which trials are run, for how long, and by which metric they are compared."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from det_native.schema.lengths import Length, Unit
from det_native.schema.section import Name, Positive, PositiveLength, Section, Whole

DEFAULT_MAX_LENGTH = Length(unit=Unit.BATCHES, units=100)

Mode = Literal["aggressive", "standard", "conservative"]
Trials = Annotated[int, Field(ge=1, le=100_000)]
Rungs = Annotated[int, Field(ge=1, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Searcher(Section):
    """What all searchers have. `metric` is None only where no validation metric is needed (some local runs).

    Of the source only the weights are taken; with `source_optimizer` the states of optimizers, too.

    Attributes
    ----------
    in_parts : bool
        Whether trials train part of the length, and what they have come to says whether they go on.
    """

    in_parts: ClassVar[bool] = False

    metric: Name | None = None
    smaller_is_better: bool = True
    source_trial_id: Positive | None = None
    source_checkpoint_uuid: Name | None = None
    source_optimizer: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.source_trial_id is not None and self.source_checkpoint_uuid is not None:
            raise ValueError("source_trial_id and source_checkpoint_uuid exclude each other; give one of them")
        if self.source_optimizer and self.source_trial_id is None and self.source_checkpoint_uuid is None:
            raise ValueError("source_optimizer says what is taken of a source; name it by source_checkpoint_uuid")
        return self


class SingleSearcher(_Searcher):
    """One trial."""

    name: Literal["single"] = "single"
    max_length: PositiveLength = DEFAULT_MAX_LENGTH


class RandomSearcher(_Searcher):
    """`max_trials` trials with random hyperparameters, at most `max_concurrent_trials` at once (0: no limit)."""

    name: Literal["random"]
    max_length: PositiveLength = DEFAULT_MAX_LENGTH
    max_trials: Trials
    max_concurrent_trials: Whole = 0


class GridSearcher(_Searcher):
    """A trial for every point of the grid, at most `max_concurrent_trials` at once (0: no limit)."""

    name: Literal["grid"]
    max_length: PositiveLength = DEFAULT_MAX_LENGTH
    max_concurrent_trials: Whole = 0


def _has_name(part: str | dict[str, Any]) -> str | dict[str, Any]:
    name = part.get("name") if isinstance(part, dict) else part
    if not isinstance(name, str) or not name:
        raise ValueError("needs the name of what is chosen: a word, or {name: ..., and its options}")
    return part


#: A sampler or pruner of Optuna's, by its name or with options; which there are, Optuna knows.
Part = Annotated[str | dict[str, Any], AfterValidator(_has_name)]


class ComparedMetric(Section):
    """A validation metric, and which of its values are better."""

    name: Name
    smaller_is_better: bool = True

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class OptunaSearcher(_Searcher):
    """`max_trials` trials whose hyperparameters a sampler of Optuna chooses, from what earlier ones have come to.

    It learns only from trials that have ended: at most `max_concurrent_trials` are open at the same time. A `pruner`
    stops trials early, by what they come to while they train. With several `metrics` trials are compared by all of
    them, and `metric` is the first.
    """

    name: Literal["optuna"]
    max_length: PositiveLength = DEFAULT_MAX_LENGTH
    max_trials: Annotated[int, Field(ge=1, le=2_000)]
    sampler: Part = "tpe"
    pruner: Part | None = None
    metrics: list[ComparedMetric] = Field(default_factory=list)
    max_concurrent_trials: Positive = 4

    @model_validator(mode="before")
    @classmethod
    def _first_metric(cls, value: Any) -> Any:
        """Take `metric` and `smaller_is_better` from the first of several."""
        if not isinstance(value, dict) or not isinstance(value.get("metrics"), list) or not value["metrics"]:
            return value
        first = value["metrics"][0]
        first = {"name": first} if isinstance(first, str) else first
        if not isinstance(first, dict) or not isinstance(first.get("name"), str):
            return value
        said = {"metric": first["name"], "smaller_is_better": first.get("smaller_is_better", True)}
        return {**said, **{name: given for name, given in value.items() if given is not None}}

    @model_validator(mode="after")
    def _metrics_agree(self) -> Self:
        names = [metric.name for metric in self.metrics]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"metrics names {sorted(twice)[0]!r} twice")
        if names and self.metric != names[0]:
            raise ValueError(f"metric ({self.metric!r}) must be the first of metrics ({names[0]!r}); leave it out")
        if names and self.smaller_is_better != self.metrics[0].smaller_is_better:
            raise ValueError("smaller_is_better is told by metrics where there are several; leave it out")
        if self.prunes and len(names) > 1:
            raise ValueError("pruner compares trials by one metric, and metrics has several; leave one of them out")
        return self

    @property
    def prunes(self) -> bool:
        """Whether trials may be stopped early."""
        name = self.pruner.get("name") if isinstance(self.pruner, dict) else self.pruner
        return name not in (None, "none")

    @property
    def compared(self) -> list[ComparedMetric]:
        """The metrics that trials are compared by."""
        return self.metrics or [
            ComparedMetric(name=self.metric or "the metric", smaller_is_better=self.smaller_is_better)
        ]


class _Halving(_Searcher):
    in_parts: ClassVar[bool] = True

    max_length: PositiveLength
    divisor: Annotated[float, Field(gt=1, le=1_000)] = 4.0


def _check_unit(budget: Length, max_length: Length) -> None:
    if budget.unit is not max_length.unit:
        raise ValueError(f"budget (in {budget.unit}) and max_length (in {max_length.unit}) must be in the same unit")


class SyncHalvingSearcher(_Halving):
    """Synchronous successive halving. `train_stragglers` is read and changes nothing, as in Determined."""

    name: Literal["sync_halving"]
    num_rungs: Rungs
    budget: PositiveLength
    train_stragglers: bool = True

    @model_validator(mode="after")
    def _same_unit(self) -> Self:
        _check_unit(self.budget, self.max_length)
        return self


class AsyncHalvingSearcher(_Halving):
    """Asynchronous successive halving."""

    name: Literal["async_halving"]
    num_rungs: Rungs
    max_trials: Trials
    max_concurrent_trials: Whole = 0
    stop_once: bool = False


class _Adaptive(_Halving):
    mode: Mode = "standard"
    max_rungs: Rungs = 5
    bracket_rungs: list[Rungs] = Field(default_factory=list)


class AdaptiveSearcher(_Adaptive):
    """Brackets of successive halving that share a budget."""

    name: Literal["adaptive"]
    budget: PositiveLength
    train_stragglers: bool = True

    @model_validator(mode="after")
    def _budget_above_length(self) -> Self:
        _check_unit(self.budget, self.max_length)
        if self.budget.units <= self.max_length.units:
            raise ValueError(
                f"budget ({self.budget.units}) must be above max_length ({self.max_length.units}), "
                "since it is shared by all trials"
            )
        return self


class AdaptiveSimpleSearcher(_Adaptive):
    """Brackets of successive halving that share a number of trials."""

    name: Literal["adaptive_simple"]
    max_trials: Annotated[int, Field(ge=1, le=2_000)]


class AdaptiveAshaSearcher(_Adaptive):
    """Brackets of asynchronous successive halving."""

    name: Literal["adaptive_asha"]
    max_trials: Trials
    max_concurrent_trials: Whole = 0
    stop_once: bool = False


class ReplaceFunction(Section):
    """Which share of the population the best replace after a round."""

    truncate_fraction: Annotated[float, Field(ge=0, le=0.5)]


class ExploreFunction(Section):
    """How the hyperparameters of a replacement differ from those of the trial it copies."""

    resample_probability: Share
    perturb_factor: Share


class PbtSearcher(_Searcher):
    """Population-based training."""

    in_parts: ClassVar[bool] = True

    name: Literal["pbt"]
    population_size: Positive
    num_rounds: Positive
    length_per_round: PositiveLength
    replace_function: ReplaceFunction
    explore_function: ExploreFunction

    @property
    def max_length(self) -> Length:
        """Length of a trial that lives through all rounds."""
        return Length(unit=self.length_per_round.unit, units=self.length_per_round.units * self.num_rounds)


def searcher_name(value: Any) -> str:
    """Return the name of the searcher that `value` configures; a section that says none is ``single``."""
    name = value.get("name") if isinstance(value, dict) else getattr(value, "name", None)
    return "single" if name is None else str(name)


Searcher = Annotated[
    Annotated[SingleSearcher, Tag("single")]
    | Annotated[RandomSearcher, Tag("random")]
    | Annotated[GridSearcher, Tag("grid")]
    | Annotated[OptunaSearcher, Tag("optuna")]
    | Annotated[SyncHalvingSearcher, Tag("sync_halving")]
    | Annotated[AsyncHalvingSearcher, Tag("async_halving")]
    | Annotated[AdaptiveSearcher, Tag("adaptive")]
    | Annotated[AdaptiveSimpleSearcher, Tag("adaptive_simple")]
    | Annotated[AdaptiveAshaSearcher, Tag("adaptive_asha")]
    | Annotated[PbtSearcher, Tag("pbt")],
    Discriminator(searcher_name),
]
