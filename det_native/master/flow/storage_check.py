"""Whether an experiment's checkpoints can be written, tried before it is stored."""

from __future__ import annotations

from det_native.errors import ArgumentError, DetError
from det_native.master.flow.jobs import Places, checkpoint_uri
from det_native.schema.config import ExperimentConfig
from det_native.schema.storage_config import MasterStorage
from det_native.storage.folder import RemoteFolder, open_folder

_PROBE = ".det-native-writable"
# The field of each type of storage that says where it is.
_FIELDS = {
    "shared_fs": "host_path",
    "directory": "container_path",
    "s3": "bucket",
    "gcs": "bucket",
    "hdfs": "hdfs_path",
    "azure": "container",
}


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
    field = f"checkpoint_storage.{_FIELDS.get(storage.type, 'type')}"
    try:
        folder = open_folder(uri)
        bucket = folder.missing_bucket() if isinstance(folder, RemoteFolder) else ""
        if bucket:
            raise ArgumentError(f"{field}: there is no bucket {bucket!r}. Make it, or name another one.")
        folder.publish(_PROBE, [b"written by det_native to see whether it can be; remove it"])
        folder.delete(_PROBE)
    except DetError:
        raise
    except Exception as error:  # each kind of storage fails by errors of its own
        raise ArgumentError(
            f"{field}: checkpoints cannot be written to {uri} ({_in_words(error)}). Name a place that the master and "
            "its workers may write to."
        ) from error


def _in_words(error: Exception) -> str:
    lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
    return (lines[-1] if lines else type(error).__name__).rstrip(".")
