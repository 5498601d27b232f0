"""What ``inspect`` and ``submit`` are asked about a document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from det_native.capture.document import DocumentCell


class CellBody(BaseModel):
    """A code cell of the request."""

    model_config = ConfigDict(extra="ignore")

    id: str
    source: str
    execution_count: int | None = None
    executed: str | None = None
    tags: list[str] = Field(default_factory=list)


class Request(BaseModel):
    """What is asked: see the module ``det_native.experimental.document``."""

    model_config = ConfigDict(extra="ignore")

    path: str
    cells: list[CellBody]
    place: Literal["cluster"] = "cluster"
    call: int | None = Field(default=None, ge=0)
    slots: int | None = Field(default=None, ge=1)
    test: bool = False
    schedule: dict[str, Any] | None = None
    idempotency_key: str | None = Field(default=None, pattern=r"^[\x21-\x7e]{1,200}$")

    def document_cells(self) -> list[DocumentCell]:
        """Return the cells as capture takes them."""
        return [
            DocumentCell(cell.id, cell.source, cell.execution_count, cell.executed, frozenset(cell.tags))
            for cell in self.cells
        ]
