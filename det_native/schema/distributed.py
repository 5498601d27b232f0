"""The section about what the slots of a trial share, and what roles its processes have."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from det_native.schema.section import Name, Section


def _interface(name: str) -> str:
    if not re.fullmatch(r"[^\s/,]{1,15}", name):
        raise ValueError(f"must be the name of one network interface, such as eth1, not {name!r}")
    return name


class Distributed(Section):
    """How the slots of a trial share its models."""

    backend: Literal["torch", "horovod"] = "torch"
    strategy: Literal["ddp", "fsdp", "tf_config"] = "ddp"
    fsdp_layers: list[Name] = Field(default_factory=list)
    roles: dict[str, int] = Field(default_factory=dict)
    trusted_network: bool = False
    interface: Annotated[str, AfterValidator(_interface)] | None = None
