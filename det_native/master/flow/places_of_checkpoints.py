"""Where the checkpoints of an experiment lie: as its configuration says, or as the master is set up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from typing import Any

from det_native.errors import ConfigurationError, MissingDependencyError, Problem, StorageError
from det_native.master.flow.context import Context
from det_native.master.flow.kept_secrets import give, keep
from det_native.master.flow.places import Places
from det_native.master.store import experiments
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.storage_config import Address, DirectoryStorage, MasterStorage, SharedFileStorage, UrlStorage
from det_native.storage.checkpoints import CheckpointStorage

#: So long the storage of a new experiment may take to be written to.
PATIENCE = 30.0
OWNER = "user"
#: Where the configuration names a folder.
_FIELDS: dict[type, str] = {
    SharedFileStorage: "checkpoint_storage.host_path",
    DirectoryStorage: "checkpoint_storage.container_path",
}


def address_of(config: ExperimentConfig, places: Places, owner: str = OWNER) -> Address:
    """Return where an experiment's checkpoints are published, with what is needed to get in.

    Raises
    ------
    ArgumentError
        If a secret of the configuration is not here any more.
    """
    if isinstance(config.checkpoint_storage, MasterStorage):
        return Address(places.checkpoints, {})
    raw = {"checkpoint_storage": config.checkpoint_storage.model_dump(mode="json")}
    whole = type(config.checkpoint_storage).model_validate(give(places.home, owner, raw)["checkpoint_storage"])
    assert not isinstance(whole, MasterStorage)
    return whole.address


def place_of(context: Context, experiment: rest.Experiment) -> Address:
    """Return where the checkpoints of an experiment lie: those of a kernel are where it has put them."""
    if experiment.in_kernel:
        with context.database.read() as connection:
            kept_at = experiments.kept_at(connection, experiment.id)
        if kept_at:
            return Address(kept_at, {})
    return address_of(ExperimentConfig.model_validate(experiment.config), context.places)


def storage_of(context: Context, experiment: rest.Experiment) -> CheckpointStorage:
    """Return an experiment's checkpoints; a storage that does not answer is given up soon."""
    return CheckpointStorage(*place_of(context, experiment), prompt=True)


def with_masters_storage(config: ExperimentConfig, places: Places) -> ExperimentConfig:
    """Return a configuration that says where checkpoints go, where the master is set up with another place.

    Another place of a later start does not touch the experiments that there are.
    """
    own = config.checkpoint_storage
    if not isinstance(own, MasterStorage) or not places.checkpoint_url:
        return config
    policy = own.model_dump(exclude={"type"})
    storage = UrlStorage(type="url", url=places.checkpoint_url, options=dict(places.checkpoint_options), **policy)
    return config.model_copy(update={"checkpoint_storage": storage})


def stored(config: ExperimentConfig, places: Places, owner: str) -> dict[str, Any]:
    """Return a configuration as it is stored and shown: without secrets."""
    return keep(places.home, owner, config.model_dump(mode="json"))


def check_writable(config: ExperimentConfig, places: Places, owner: str) -> None:
    """Refuse an experiment whose checkpoints could not be written to the address that it names.

    Raises
    ------
    ConfigurationError
        If its storage refuses, or does not answer.
    MissingDependencyError
        If the package for it is missing.
    """
    if isinstance(config.checkpoint_storage, MasterStorage):
        return
    url, options = address_of(config, places, owner)
    try:
        check_address(_opened(url, options))
    except MissingDependencyError as error:
        raise MissingDependencyError(f"checkpoint_storage: {error}") from error
    except StorageError as error:
        what, where = str(error), _FIELDS.get(type(config.checkpoint_storage), "checkpoint_storage")
        remedy = "Make the bucket or folder, or give checkpoint_storage another address or other keys."
        raise ConfigurationError("The experiment cannot be run:", [Problem(where, what, remedy)]) from error


def _opened(url: str, options: dict[str, Any]) -> CheckpointStorage:
    """Return the storage at an address; some servers are connected to at once."""
    try:
        return CheckpointStorage(url, options)
    except OSError as error:
        said = str(error.strerror or error).strip().rstrip(".") or type(error).__name__
        raise StorageError(f"Checkpoints cannot be written to {url}: {said}.") from error


def check_address(storage: CheckpointStorage) -> None:
    """See that checkpoints can be written to a storage.

    Raises
    ------
    StorageError
        If they cannot, or it does not answer in time.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="det-storage")
    try:
        pool.submit(storage.check_writable).result(PATIENCE)
    except Late:
        raise StorageError(
            f"Checkpoints cannot be written to {storage.uri}: it does not answer within {PATIENCE:.0f} seconds."
        ) from None
    finally:
        pool.shutdown(wait=False)
