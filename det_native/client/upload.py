"""Sends a bundle: what the master lacks, in one request, and the manifest."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from det_native.capture.model import Bundle, BundleRow
from det_native.client.changed_files import with_files_read
from det_native.client.persistence import over_cuts
from det_native.client.session import Session
from det_native.errors import MasterError, RequestError, StorageError
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.manifests import BundleManifest, Sha256
from det_native.schema.rest import BundleCreated, HashList

_CONFLICT = 409
_NOT_FOUND = 404
_BATCH = 100_000
_IDS_KEPT = 8
# How often files are read anew that change while they are sent; what was read so cannot change any more.
_ROUNDS = 5

logger = logging.getLogger("det_native")


def upload_bundle(session: Session, bundle: Bundle) -> BundleCreated:
    """Make the master have a bundle, and say in its report what was there already.

    It may be interrupted at any point and called again: blobs that arrived are kept by their hash, and a bundle exists
    only once all of its blobs do. To the master that runs in the user's own home on this machine the blobs go through
    its folder, at the speed of a copy; to any other, compressed, in one request. A bundle that this process has seen to
    be there costs no request at all: should the master have lost it since, it refuses the experiment, and
    :func:`forget_bundle` has it sent again.

    Parameters
    ----------
    session : Session
        Connection to the master.
    bundle : Bundle
        What to send. The rows of its report get their status.

    Returns
    -------
    BundleCreated
        Id of the bundle, and whether it has passed the check in a fresh process.

    Raises
    ------
    CaptureError
        Files vanished while they were sent; names them. One that was changed is sent as it was when it was read.
    MasterError
        The master refused, or cannot be reached.
    """
    current = bundle
    earlier: dict[Sha256, Sha256] = {}
    for left in reversed(range(_ROUNDS)):
        try:
            created, sent = over_cuts(session, partial(_upload, session, current))
            break
        except _FilesChangedError as error:
            current, renewed = with_files_read(current, error.hashes)
            earlier |= renewed
            if not left:
                raise error.__cause__ or error
    _mark(bundle, sent=None if sent is None else sent | {earlier[sha256] for sha256 in sent & earlier.keys()})
    return created


def _upload(session: Session, bundle: Bundle) -> tuple[BundleCreated, set[Sha256] | None]:
    """Send a bundle; return it with the blobs that were new, None if the whole bundle was there."""
    manifest = bundle.manifest
    created = _find(session, _id_of(manifest))
    if created is not None:
        _confirmed_at(session)[created.id] = created
        return created, None
    needed = manifest.hashes()
    sent = _deliver(session, bundle, needed - _known_at(session))
    for send_again in (_deliver, _send_missing):
        try:
            created = _create(session, manifest)
            break
        except RequestError as error:
            missing = _missing_of(error) & needed
            if error.status != _CONFLICT or not missing:
                raise
            _known_at(session).difference_update(missing)
            sent |= send_again(session, bundle, missing)
    else:
        created = _create(session, manifest)
    _known_at(session).update(needed)
    _confirmed_at(session)[created.id] = created
    return created, sent


def forget_bundle(session: Session, bundle_id: Sha256) -> None:
    """Ask the master again whether it has a bundle, since it has said that it has not."""
    _confirmed_at(session).pop(bundle_id, None)


def note_checked(session: Session, bundle_id: Sha256) -> None:
    """Remember that a bundle has passed the check."""
    _confirmed_at(session)[bundle_id] = BundleCreated(id=bundle_id, checked=True)


def _find(session: Session, bundle_id: Sha256) -> BundleCreated | None:
    """Ask for a bundle by its id alone: all that it costs to submit an unchanged directory again."""
    confirmed = _confirmed_at(session).get(bundle_id)
    if confirmed is not None:
        return confirmed
    try:
        return session.call(routes.GET_BUNDLE_CREATED, bundle_id=bundle_id)
    except RequestError as error:
        if error.status != _NOT_FOUND:
            raise
        return None


def _create(session: Session, manifest: BundleManifest) -> BundleCreated:
    return session.call(routes.CREATE_BUNDLE, manifest.canonical())


def _missing_of(error: RequestError) -> set[Sha256]:
    body = getattr(error, "body", None)
    return set(body.missing) if body is not None else set()


def _deliver(session: Session, bundle: Bundle, hashes: set[Sha256]) -> set[Sha256]:
    """Make the master have `hashes`, and return those that it lacked."""
    if not hashes:
        return set()
    folder = own_folder(session)
    if folder is not None:
        try:
            return _put_directly(bundle, hashes, folder)
        except (StorageError, OSError) as error:
            logger.debug("The blobs are sent instead, since %s cannot be written: %s", folder, error)
    return _send_missing(session, bundle, hashes)


def own_folder(session: Session) -> Path | None:
    """Return the master's folder of blobs if it is this user's own: the running master of the home says its address.

    Should the address belong to another master after all, that one answers the manifest with what it lacks.
    """
    home = Home.default()
    runtime = read_runtime(home)
    if runtime is None or not runtime.is_at(session.url) or runtime.storage:
        return None
    return home.path / "blobs"


def _send_missing(session: Session, bundle: Bundle, hashes: set[Sha256]) -> set[Sha256]:
    """Send those of `hashes` that the master says it lacks, and return them."""
    return send_contents(session, _contents(bundle, hashes))


def send_contents(session: Session, contents: Mapping[Sha256, Path | bytes]) -> set[Sha256]:
    """Send in one request those contents that the master says it lacks, packed while they are sent; return which."""
    missing: set[Sha256] = set()
    ordered = sorted(contents)
    for start in range(0, len(ordered), _BATCH):
        batch = HashList(hashes=ordered[start : start + _BATCH])
        missing |= set(session.call(routes.FIND_MISSING, batch).hashes) & contents.keys()
    if missing:
        _send(session, {sha256: contents[sha256] for sha256 in ordered if sha256 in missing})
    return missing


def _send(session: Session, contents: Mapping[Sha256, Path | bytes]) -> None:
    from det_native.storage.packing import CONTENT_TYPE, pack

    with _noticing_changes(contents), closing(pack(contents)) as body:
        session.call(routes.PUT_BLOBS, body, headers={"Content-Type": CONTENT_TYPE})


def _put_directly(bundle: Bundle, hashes: set[Sha256], blob_folder: Path) -> set[Sha256]:
    """Put those of `hashes` that are missing into the master's own folder, and return them."""
    from det_native.storage.blobs import BlobStore
    from det_native.storage.put_many import put_many

    store = BlobStore(str(blob_folder))
    missing = set(store.missing(hashes))
    contents = _contents(bundle, missing)
    with _noticing_changes(contents):
        put_many(contents, bundle.states, store)
    return missing


def _contents(bundle: Bundle, hashes: set[Sha256]) -> dict[Sha256, Path | bytes]:
    return {sha256: bundle.contents[sha256] for sha256 in bundle.contents if sha256 in hashes}


class _FilesChangedError(Exception):
    """Sending failed because files are no longer what was hashed: those of these hashes."""

    def __init__(self, hashes: set[Sha256]) -> None:
        super().__init__()
        self.hashes = hashes


@contextmanager
def _noticing_changes(contents: Mapping[Sha256, Path | bytes]) -> Iterator[None]:
    """If sending fails, find out whether the reason is that files are no longer what was hashed."""
    try:
        yield
    except (StorageError, MasterError) as error:
        changed = {sha256 for sha256, content in contents.items() if _is_changed(sha256, content)}
        if not changed:
            raise
        raise _FilesChangedError(changed) from error


def _is_changed(sha256: Sha256, content: Path | bytes) -> bool:
    if isinstance(content, bytes):
        return False
    try:
        with open(content, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() != sha256
    except OSError:
        return True


def _mark(bundle: Bundle, *, sent: set[Sha256] | None) -> None:
    """Set the status of the rows about what is sent (None: nothing was new); those about what is not keep theirs."""
    for row in bundle.report:
        if row.status == "not sent":
            continue
        all_there = sent is None or (isinstance(row, BundleRow) and not row.hashes & sent)
        row.status = "already there" if all_there else "new"


# What this process knows ----------------------------------------------------------------------------------------------

_lock = threading.Lock()
_known: WeakKeyDictionary[Session, set[Sha256]] = WeakKeyDictionary()
_confirmed: WeakKeyDictionary[Session, dict[Sha256, BundleCreated]] = WeakKeyDictionary()
_ids: dict[int, tuple[BundleManifest, Sha256]] = {}


def _known_at(session: Session) -> set[Sha256]:
    """Return the blobs that this process has seen to be at a master. Should one be lost there, the master says so."""
    with _lock:
        return _known.setdefault(session, set())


def _confirmed_at(session: Session) -> dict[Sha256, BundleCreated]:
    """Return the bundles that this process has seen to be at a master."""
    with _lock:
        return _confirmed.setdefault(session, {})


def _id_of(manifest: BundleManifest) -> Sha256:
    """Return the id of a manifest; computed once for each object, since it takes the time of a small request."""
    with _lock:
        kept = _ids.get(id(manifest))
        if kept is not None and kept[0] is manifest:
            return kept[1]
        if len(_ids) >= _IDS_KEPT:
            _ids.pop(next(iter(_ids)))
        _ids[id(manifest)] = (manifest, manifest.id)
        return _ids[id(manifest)][1]
