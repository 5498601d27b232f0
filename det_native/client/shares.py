"""Change what share of the slots an experiment has while it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from det_native.client.life import refusal
from det_native.errors import ArgumentError

if TYPE_CHECKING:
    from det_native.client.source import Source


def change_resources(source: Source, experiment_id: int, **change: float | None) -> None:
    """Change `priority`, `weight` or `max_slots`.

    Raises
    ------
    ArgumentError
        If the value is none that the field may have.
    RequestError
        If the experiment has ended.
    UnsupportedFeatureError
        If it trains in a kernel.
    """
    from pydantic import ValidationError

    from det_native.schema.rest import ResourcesChange

    for name, value in change.items():
        if value is None and name != "max_slots":
            raise ArgumentError(f"{name}: None is no value for it.")
    try:
        body = ResourcesChange.model_validate(change, strict=True)
    except ValidationError as error:
        raise ArgumentError(refusal(error)) from None
    source.change_resources(experiment_id, body)
