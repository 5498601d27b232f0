"""``--json`` of the commands: the same facts as the tables have, for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
from pydantic import BaseModel

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")


def print_json(value: Any) -> None:
    """Print data, and answers of the master, as JSON on one line; what is not a number stands there as text."""
    click.echo(json.dumps(_plain(value), ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return json.loads(value.model_dump_json())
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
