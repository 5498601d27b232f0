"""Base of the sections of an experiment configuration."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from det_native.schema.lengths import Length

Whole = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]
Secret = Annotated[str | None, Field(repr=False)]


class Section(BaseModel):
    """A part of the configuration with named fields: unknown ones are refused, values are not converted between types.

    A field written as null is a field not written.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_silence(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: given for name, given in value.items() if given is not None}
        return value


def _above_zero(length: Length) -> Length:
    if length.units < 1:
        raise ValueError(f"must be at least 1, not {length.units}")
    return length


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"must be an absolute path, not {path!r}")
    return path


PositiveLength = Annotated[Length, AfterValidator(_above_zero)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]
