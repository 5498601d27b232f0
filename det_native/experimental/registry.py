"""The model registry of a master, from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from det_native.client import models as registry
from det_native.client.connect import connect
from det_native.client.http_source import HttpSource
from det_native.client.listing import Listing
from det_native.client.models import Model
from det_native.schema.registry import ModelOrderBy, ModelSortBy


def create_model(
    name: str,
    description: str = "",
    metadata: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
    *,
    master_url: str | None = None,
) -> Model:
    """Add a model to the registry of the master: checkpoints can be registered as its versions.

    Parameters
    ----------
    name : str
        1 to 200 characters, no slash.
    description : str
    metadata : mapping, optional
        Plain values, by name.
    labels : sequence of str
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master of this machine, which is started if need be.

    Raises
    ------
    ArgumentError
        If the name or something else cannot be.
    RequestError
        If there is a model of that name.
    """
    return registry.create(HttpSource(connect(master_url)), name, description, metadata, labels)


def model(name: str, master_url: str | None = None) -> Model:
    """Return a model of the registry: ``det.model("digits").version(3).load()``.

    Parameters
    ----------
    name : str
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master that runs on this machine.

    Raises
    ------
    NotFoundError
        If there is none of that name.
    """
    return registry.get(HttpSource(connect(master_url, start=False)), name)


def models(
    name: str = "",
    *,
    description: str = "",
    label: str = "",
    archived: bool | None = False,
    sort_by: ModelSortBy | str = ModelSortBy.NAME,
    order_by: ModelOrderBy | str = ModelOrderBy.ASCENDING,
    master_url: str | None = None,
) -> Listing[Model]:
    """Return the models of the registry.

    Parameters
    ----------
    name, description : str
        Text that is in their names and descriptions, whatever the case of letters.
    label : str
        A label that they have.
    archived : bool, optional
        Those that are archived, or the others, which is the default; None for all.
    sort_by : ModelSortBy
        ``"name"``, ``"description"``, ``"created"`` or ``"updated"``.
    order_by : ModelOrderBy
        ``"asc"`` or ``"desc"``.
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master that runs on this machine.
    """
    source = HttpSource(connect(master_url, start=False))
    return registry.listing(
        source,
        sort_by=sort_by,
        order_by=order_by,
        name=name,
        description=description,
        label=label,
        archived=archived,
    )
