"""Bundles: their manifests, and whether they have loaded in a fresh process."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from det_native.errors import NotFoundError
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import bundles
from det_native.schema.manifests import BundleManifest


def add(transaction: Transaction, manifest: BundleManifest) -> bool:
    """Keep a manifest, once; return whether the bundle has passed the check already."""
    connection = transaction.connection
    checked = connection.execute(select(bundles.c.checked).where(bundles.c.id == manifest.id)).scalar()
    if checked is None:
        row = {"id": manifest.id, "manifest": manifest.model_dump(mode="json"), "checked": False, "created": now()}
        connection.execute(insert(bundles), row)
    return bool(checked)


def get(connection: Connection, bundle_id: str) -> BundleManifest:
    """Return a manifest.

    Raises
    ------
    NotFoundError
        If there is no such bundle.
    """
    manifest = connection.execute(select(bundles.c.manifest).where(bundles.c.id == bundle_id)).scalar()
    if manifest is None:
        raise NotFoundError(f"There is no bundle {bundle_id}.")
    return BundleManifest.model_validate(manifest)


def is_checked(connection: Connection, bundle_id: str) -> bool:
    """Return whether the bundle has loaded in a fresh process before."""
    return bool(connection.execute(select(bundles.c.checked).where(bundles.c.id == bundle_id)).scalar())


def set_checked(transaction: Transaction, bundle_id: str) -> None:
    """Remember that the bundle has loaded in a fresh process."""
    transaction.connection.execute(update(bundles).where(bundles.c.id == bundle_id).values(checked=True))
