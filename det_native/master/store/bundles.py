"""Bundles: their manifests, and whether they have loaded in a fresh process."""

from __future__ import annotations

from sqlalchemy import Connection, insert, or_, select, update

from det_native.errors import NotFoundError
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import bundles
from det_native.schema.manifests import BundleManifest


def add(transaction: Transaction, manifest: BundleManifest) -> bool:
    """Keep a manifest, once; return whether the bundle, or one that a check cannot tell from it, has passed it."""
    connection = transaction.connection
    if connection.execute(select(bundles.c.id).where(bundles.c.id == manifest.id)).first() is None:
        row = {
            "id": manifest.id,
            "manifest": manifest.model_dump(mode="json"),
            "check_key": manifest.check_key,
            "checked": False,
            "created": now(),
        }
        connection.execute(insert(bundles), row)
    return is_checked(connection, manifest.id)


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
    """Return whether the bundle, or one that a check cannot tell from it, has loaded in a fresh process before."""
    mine = select(bundles.c.check_key).where(bundles.c.id == bundle_id).scalar_subquery()
    same = or_(bundles.c.id == bundle_id, bundles.c.check_key == mine)
    return connection.execute(select(bundles.c.id).where(same, bundles.c.checked).limit(1)).first() is not None


def set_checked(transaction: Transaction, bundle_id: str) -> None:
    """Remember that the bundle has loaded in a fresh process."""
    transaction.connection.execute(update(bundles).where(bundles.c.id == bundle_id).values(checked=True))
