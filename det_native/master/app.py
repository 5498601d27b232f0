"""Put a master together."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI

from det_native.master.api.app import create_app
from det_native.master.flow.places import Places
from det_native.master.flow.stores import check_storage, only_here
from det_native.master.home import token
from det_native.master.launch.base import Launcher
from det_native.master.scheduling.facts import Policy
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS
from det_native.master.service import Service
from det_native.schema.home import Home
from det_native.schema.launchers import LOCAL
from det_native.schema.rest import SlotInfo

logger = logging.getLogger(__name__)


def build(
    home: Path,
    launcher: Launcher,
    slots: Sequence[SlotInfo],
    url: str,
    *,
    database_url: str | None = None,
    hosts: Iterable[str] = (),
    policy: Policy = Policy.PRIORITY,
    without_slots: int = MOST_WITHOUT_SLOTS,
    storage_url: str = "",
    storage_options: Mapping[str, Any] | None = None,
    checkpoint_url: str = "",
    checkpoint_options: Mapping[str, Any] | None = None,
    budget: int | None = None,
    launched_by: str = LOCAL,
) -> tuple[Service, FastAPI]:
    """Make a master and its HTTP interface; ``service.start()`` begins, ``service.close()`` ends.

    Parameters
    ----------
    home : Path
        The master's folder; made, for its user only, if need be.
    launcher : Launcher
        Runs the workers; closed with the service.
    slots : sequence of SlotInfo
        What trials may run on.
    url : str
        Where workers find the master.
    database_url : str, optional
        SQLAlchemy URL; SQLite in `home` by default.
    hosts : iterable of str
        Names under which the master may be addressed, besides that in `url` and those of loopback.
    policy : Policy
        By what experiments come before others.
    without_slots : int
        How many trials that need no slot may run at the same time.
    storage_url, storage_options
        Where bundles, what trials write, data and checkpoints lie; in `home` by default.
    checkpoint_url, checkpoint_options
        Where new experiments keep their checkpoints unless they say, where that is another place.
    budget : int, optional
        Bytes that the home may take from now on; 0 for as many as the disk has.
    launched_by : str
        What the launcher is called: ``local``, ``ray``.

    Raises
    ------
    MasterStartError
        If another master uses the database, a newer version has written it, or the storage cannot be used.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    for folder in ("blobs", "checkpoints", "runs"):
        (home / folder).mkdir(exist_ok=True, mode=0o700)
    places = Places(
        home=home,
        url=url,
        slots=tuple(slots),
        storage_url=storage_url,
        storage_options=storage_options or {},
        checkpoint_url=checkpoint_url or (f"{storage_url.rstrip('/')}/checkpoints" if storage_url else ""),
        checkpoint_options=(checkpoint_options if checkpoint_url else storage_options) or {},
        several_machines=getattr(launcher, "several_machines", False),
    )
    check_storage(places)
    if only_here(storage_url) and places.several_machines:
        logger.warning(
            "The storage %s is a folder: workers of other machines find nothing unless all machines share it under "
            "this path; s3://bucket/folder is reached from everywhere.",
            storage_url,
        )
    service = Service(
        places,
        launcher,
        token=token(Home(home)),
        database_url=database_url or f"sqlite:///{home / 'det.db'}",
        policy=policy,
        without_slots=without_slots,
        budget=budget,
        launched_by=launched_by,
    )
    return service, create_app(service, hosts=[host for host in (*hosts, urlsplit(url).hostname) if host])
