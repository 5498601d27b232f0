"""The stores of a master: in its home, or at an address that all machines reach, with what the home has from before."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late

from det_native.errors import MasterStartError, MissingDependencyError, StorageError
from det_native.master.flow.places import Places
from det_native.storage.addresses import open_folder
from det_native.storage.blobs import BlobStore
from det_native.storage.datasets import DataStore
from det_native.storage.folder import buffered
from det_native.storage.shared_blobs import SharedBlobs
from det_native.storage.shared_data import SharedData

logger = logging.getLogger(__name__)

#: So long a storage may take to be written to and read at the start of a master.
PATIENCE = 18.0
_CONTENT = b"what is written here can be read"


def open_blobs(places: Places) -> BlobStore:
    """Return the store of blobs."""
    if not places.storage_url:
        return BlobStore(places.blobs)
    return SharedBlobs(places.blobs, places.storage_options, places.own_blobs)


def open_data(places: Places) -> DataStore:
    """Return the store of data."""
    if not places.storage_url:
        return DataStore(places.own_data)
    return SharedData(places.data, places.storage_options, places.own_data)


def learn_blobs(blobs: BlobStore) -> None:
    """Have a store that is far away learn what it has, in the background; later it is asked for new blobs only."""
    if isinstance(blobs, SharedBlobs):
        blobs.remove_leftovers()
        blobs.list_all()


def absent(blobs: BlobStore, hashes: Sequence[str]) -> list[str]:
    """Return which blobs of a bundle are to be sent: none, where the home has them all from before."""
    if isinstance(blobs, SharedBlobs) and not blobs.before.missing(hashes):
        return []
    return blobs.missing(hashes)


def check_storage(places: Places) -> None:
    """See that what is written to the storage can be read there.

    Raises
    ------
    MasterStartError
        If it cannot, or the storage does not answer in time; the message says where, and what the storage says.
    """
    if not places.storage_url:
        return
    pool = ThreadPoolExecutor(1, thread_name_prefix="det-storage")
    try:
        pool.submit(_written_and_read, places).result(PATIENCE)
    except Late:
        raise _unusable(places, f"it does not answer within {PATIENCE:.0f} seconds") from None
    except (MissingDependencyError, StorageError) as error:
        raise _unusable(places, str(error)) from error
    except OSError as error:
        of_a_file = error.filename is not None and error.strerror  # the path would be there twice
        raise _unusable(places, str(error.strerror if of_a_file else error) or type(error).__name__) from error
    finally:
        pool.shutdown(wait=False)


def only_here(url: str) -> bool:
    """Return whether a storage is a folder, which machines see only if they share it."""
    return bool(url) and open_folder(url).local


def _written_and_read(places: Places) -> None:
    folder = open_folder(places.storage_url, places.storage_options, prompt=True)
    key = f"check/{secrets.token_hex(8)}"
    folder.publish(key, [_CONTENT])
    with buffered(folder.open(key)) as stream:
        found = stream.read()
    folder.delete(key)
    if found != _CONTENT:
        raise StorageError("what was written there is not what is read there")


def _unusable(places: Places, said: str) -> MasterStartError:
    return MasterStartError(
        f"The storage {places.storage_url} cannot be used: {said.strip().rstrip('.')}. Make the bucket or folder, or "
        "give other keys (DET_STORAGE_OPTIONS) or another address (--storage, DET_STORAGE)."
    )
