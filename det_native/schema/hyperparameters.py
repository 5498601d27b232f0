"""The hyperparameter space of an experiment: constants, ranges, choices, and nested groups of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    RootModel,
    SerializerFunctionWrapHandler,
    Tag,
    TypeAdapter,
    field_validator,
    model_serializer,
    model_validator,
)

from det_native.schema.helpers import Categorical, Constant, Double, Integer, Log
from det_native.schema.section import Positive, Section

KINDS = ("const", "int", "double", "log", "categorical")


class _Leaf(BaseModel):
    """What has a value. With `when` it exists only in trials in which others have these values, by dotted path."""

    when: dict[str, Any] | None = None

    @field_validator("when")
    @classmethod
    def _some_condition(cls, when: dict[str, Any] | None) -> dict[str, Any] | None:
        if when is not None and not when:
            raise ValueError("must name another hyperparameter and its value, such as {optimizer: sgd}")
        return when

    @model_serializer(mode="wrap")
    def _without_silence(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        return written if self.when is not None else {name: value for name, value in written.items() if name != "when"}


class ConstHyperparameter(_Leaf):
    """The same value in every trial; also written as the bare value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["const"] = "const"
    val: Any

    @model_validator(mode="before")
    @classmethod
    def _bare_value(cls, value: Any) -> Any:
        return value if isinstance(value, dict) and value else {"type": "const", "val": value}


class _Range(_Leaf, Section):
    minval: float
    maxval: float
    count: Positive | None = None

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.maxval <= self.minval:
            raise ValueError(f"maxval ({self.maxval!r}) must be above minval ({self.minval!r})")
        return self


class IntHyperparameter(_Range):
    """A whole number between the bounds, both included."""

    type: Literal["int"]
    minval: int
    maxval: int


class DoubleHyperparameter(_Range):
    """A real number between the bounds."""

    type: Literal["double"]


class LogHyperparameter(_Range):
    """``base ** x`` for `x` between the bounds."""

    type: Literal["log"]
    base: float = 10.0

    @field_validator("base")
    @classmethod
    def _base_of_a_power(cls, base: float) -> float:
        if base <= 0 or base == 1:
            raise ValueError(f"must be above 0 and not 1, not {base!r}")
        return base

    @model_validator(mode="after")
    def _finite(self) -> Self:
        for exponent in (self.minval, self.maxval):
            try:
                self.base**exponent
            except OverflowError:
                raise ValueError(f"{self.base!r} to the power {exponent!r} is too large for a number") from None
        return self

    def value(self, exponent: float) -> float:
        """Return the hyperparameter's value for an exponent."""
        return float(self.base**exponent)


class CategoricalHyperparameter(_Leaf, Section):
    """One of the given values."""

    type: Literal["categorical"]
    vals: list[Any]

    @field_validator("vals")
    @classmethod
    def _some_values(cls, vals: list[Any]) -> list[Any]:
        if not vals:
            raise ValueError("must list at least one value")
        return vals


Leaf = ConstHyperparameter | IntHyperparameter | DoubleHyperparameter | LogHyperparameter | CategoricalHyperparameter


class HyperparameterGroup(RootModel[dict[str, "Hyperparameter"]]):
    """Hyperparameters under a common name; a trial gets a dictionary."""

    model_config = ConfigDict(frozen=True)


def kind_of(value: Any) -> str:
    """Return which form of hyperparameter `value` is: one of ``KINDS``, ``group``, or what its ``type`` says."""
    if isinstance(value, Leaf):
        return value.type
    if isinstance(value, HyperparameterGroup):
        return "group"
    if isinstance(value, dict) and value:
        return str(value["type"]) if "type" in value else "group"
    return "const"


Hyperparameter = Annotated[
    Annotated[ConstHyperparameter, Tag("const")]
    | Annotated[IntHyperparameter, Tag("int")]
    | Annotated[DoubleHyperparameter, Tag("double")]
    | Annotated[LogHyperparameter, Tag("log")]
    | Annotated[CategoricalHyperparameter, Tag("categorical")]
    | Annotated[HyperparameterGroup, Tag("group")],
    Discriminator(kind_of),
]
HyperparameterGroup.model_rebuild()


class Space(dict[str, "Hyperparameter"]):
    """A hyperparameter space in its validated form; it is not changed any more."""

    @cached_property
    def all_leaves(self) -> list[tuple[tuple[str, ...], Leaf]]:
        """What :func:`leaves` yields: a search draws from one space for each of its trials."""
        return list(leaves(self))

    @cached_property
    def has_conditions(self) -> bool:
        """Whether any hyperparameter exists only beside values of others."""
        return any(leaf.when is not None for _, leaf in self.all_leaves)


_SPACE: TypeAdapter[dict[str, Hyperparameter]] = TypeAdapter(dict[str, Hyperparameter])


def parse_space(hyperparameters: Mapping[str, Any]) -> Space:
    """Return the validated form of a hyperparameter space, given as models, in written form, or mixed.

    Raises
    ------
    pydantic.ValidationError
        If a hyperparameter is not valid.
    """
    if isinstance(hyperparameters, Space):  # a search draws from one space for each of its trials
        return hyperparameters
    return Space(_SPACE.validate_python(dict(hyperparameters)))


def leaves(space: Mapping[str, Leaf | HyperparameterGroup]) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield every hyperparameter of a parsed space with its path, groups entered, names sorted in each group."""
    for name in sorted(space):
        entry = space[name]
        if isinstance(entry, HyperparameterGroup):
            for path, leaf in leaves(entry.root):
                yield (name, *path), leaf
        else:
            yield (name,), entry


__all__ = [
    "KINDS",
    "Categorical",
    "CategoricalHyperparameter",
    "ConstHyperparameter",
    "Constant",
    "Double",
    "DoubleHyperparameter",
    "Hyperparameter",
    "HyperparameterGroup",
    "IntHyperparameter",
    "Integer",
    "Leaf",
    "Log",
    "LogHyperparameter",
    "Space",
    "kind_of",
    "leaves",
    "parse_space",
]
