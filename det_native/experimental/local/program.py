"""The code of a run in this process, captured as for a master, so that its checkpoints load elsewhere too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from det_native._version import PROTOCOL
from det_native.capture.bundle import assemble
from det_native.capture.model import Bundle
from det_native.errors import DetError
from det_native.local.store import LocalStore
from det_native.schema.manifests import CallKind, Framework

if TYPE_CHECKING:
    from det_native.experimental.origin import Origin
    from det_native.experimental.settings import Settings


class _NoProgramError(DetError):
    """There is no program to keep; the message says why."""


def keep_program(
    store: LocalStore, kind: CallKind, payload: Any, framework: Framework, settings: Settings, origin: Origin
) -> str | None:
    """Keep the program that makes a training call with the experiment; return the bundle's id.

    Without a program the training goes on all the same: why there is none is kept instead, for whoever asks for it.

    Parameters
    ----------
    store : LocalStore
    kind : {"fit", "create", "train_and_evaluate"}
    payload : FitCall or type
        What is trained.
    framework : str
    settings : Settings
    origin : Origin
    """
    from det_harness.local.bundle import keep_bundle

    try:
        bundle = _bundle(kind, payload, framework, settings, origin)
        keep_bundle(store.folder, bundle.manifest, bundle.contents)
    except DetError as error:
        store.write_why_no_program(str(error))
        return None
    except Exception as error:  # noqa: BLE001 (a copy of the code is not worth ending the training that it is for)
        store.write_why_no_program(f"{type(error).__name__}: {error}")
        return None
    return bundle.manifest.id


def _bundle(kind: CallKind, payload: Any, framework: Framework, settings: Settings, origin: Origin) -> Bundle:
    why = origin.why_no_program()
    if why:
        raise _NoProgramError(why)
    capture = origin.capture(kind, payload, framework, settings)
    return assemble(capture, context_dir=settings.context_dir, protocol=PROTOCOL)
