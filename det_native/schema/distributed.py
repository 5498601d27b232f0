"""The section about what the slots of a trial share, and what roles its processes have."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from det_native.schema.section import Name, Section


class Distributed(Section):
    """How the slots of a trial share its models."""

    backend: Literal["torch", "horovod"] = "torch"
    strategy: Literal["ddp", "fsdp", "tf_config"] = "ddp"
    fsdp_layers: list[Name] = Field(default_factory=list)
    roles: dict[str, int] = Field(default_factory=dict)
    trusted_network: bool = False
    interface: Annotated[str, Field(pattern=r"^[^\s/,]{1,15}$")] | None = None
