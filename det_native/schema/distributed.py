"""The section about what the slots of a trial share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from det_native.schema.section import Name, Section


class Distributed(Section):
    """How the slots of a trial share its models."""

    backend: Literal["torch", "horovod"] = "torch"
    strategy: Literal["ddp", "fsdp"] = "ddp"
    fsdp_layers: list[Name] = Field(default_factory=list)
