"""Whether an experiment's checkpoints can be written, tried before it is stored."""

from __future__ import annotations

from det_native.errors import ArgumentError, DetError
from det_native.master.flow.jobs import Places, checkpoint_uri
from det_native.schema.config import ExperimentConfig
from det_native.schema.storage_config import MasterStorage, SharedFileStorage
from det_native.storage.folder import open_folder

_PROBE = ".det-native-writable"


def check_storage(config: ExperimentConfig, places: Places) -> None:
    """Write a file to where an experiment's checkpoints go, and remove it, if that is not the master's own folder.

    Raises
    ------
    UnsupportedFeatureError
        For a kind of storage that comes with a later version.
    ArgumentError
        If it cannot be written.
    """
    uri = checkpoint_uri(config, places)
    storage = config.checkpoint_storage
    if isinstance(storage, MasterStorage):
        return
    field = "checkpoint_storage.host_path" if isinstance(storage, SharedFileStorage) else "checkpoint_storage"
    try:
        folder = open_folder(uri)
        folder.publish(_PROBE, [b"written by det_native to see whether it can be; remove it"])
        folder.delete(_PROBE)
    except DetError:
        raise
    except Exception as error:
        # Each kind of storage fails by errors of its own.
        reason = getattr(error, "strerror", None) or str(error).strip().splitlines()[-1:] or [type(error).__name__]
        words = reason if isinstance(reason, str) else reason[0]
        raise ArgumentError(
            f"{field}: checkpoints cannot be written to {uri} ({words.rstrip('.')}). Name a place that the master and "
            "its workers may write to."
        ) from error
