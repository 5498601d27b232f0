"""The part of the configuration that is PyTorch's: how models are compiled."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from det_native.schema.section import Name, Section


class TorchCompile(Section):
    """Whether and how models are compiled; the arguments of ``torch.compile``.

    ``true`` stands for the defaults, and arguments alone mean that it is enabled.
    """

    enabled: bool = False
    backend: Name = "inductor"
    mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = "default"
    dynamic: bool = False
    fullgraph: bool = False
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        if isinstance(value, bool):
            return {"enabled": value}
        if isinstance(value, dict):
            given = {name: one for name, one in value.items() if one is not None}
            return {"enabled": bool(given), **given}
        if isinstance(value, TorchCompile):
            return value
        raise ValueError("must be true, false, or arguments of torch.compile, for example {mode: max-autotune}")

    @model_validator(mode="after")
    def _mode_or_options(self) -> Self:
        if self.options and self.mode != "default":
            raise ValueError("torch.compile takes either mode or options, not both")
        return self
