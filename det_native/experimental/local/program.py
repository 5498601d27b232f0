"""The code of a run in this process, captured as for a cluster, so that it can be read, loaded and run elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from det_native._version import PROTOCOL
from det_native.schema.manifests import CallKind, Framework

if TYPE_CHECKING:
    from det_native.capture.model import Bundle
    from det_native.experimental.origin import Origin
    from det_native.experimental.settings import Settings


def kept_program(
    kind: CallKind, payload: Any, framework: Framework, settings: Settings, origin: Origin, blobs: str
) -> tuple[Bundle | None, str]:
    """Keep the program that makes a training call; return it, or why there is none.

    Without a program the training goes on all the same.

    Parameters
    ----------
    payload : FitCall or type
        What is trained.
    blobs : str
        Address of the store for its contents, from where they are sent: the training may change the files.
    """
    from det_native.errors import DetError

    why = origin.why_no_program()
    if why:
        return None, why
    try:
        return _kept(kind, payload, framework, settings, origin, blobs), ""
    except DetError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 (a copy of the code is not worth ending the training that it is for)
        return None, f"{type(error).__name__}: {error}"


def _kept(kind: CallKind, payload: Any, framework: Framework, settings: Settings, origin: Origin, blobs: str) -> Bundle:
    from det_native.capture.bundle import assemble
    from det_native.storage.blobs import BlobStore
    from det_native.storage.put_many import put_many

    capture = origin.capture(kind, payload, framework, settings)
    bundle = assemble(capture, context_dir=settings.context_dir, protocol=PROTOCOL)
    store = BlobStore(blobs)
    missing = set(store.missing(bundle.manifest.hashes()))
    put_many({sha256: bundle.contents[sha256] for sha256 in missing}, bundle.states, store)
    return bundle
