"""Where the checkpoints of a run in this process go: as its configuration says, or as its home is set up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from det_native.errors import DetError
from det_native.schema.config import ExperimentConfig
from det_native.schema.storage_config import Address, MasterStorage, UrlStorage

if TYPE_CHECKING:
    from det_native.kernel_runs.folder import RunFolder


def place_of_checkpoints(
    config: ExperimentConfig, folder: RunFolder, *, elsewhere: bool
) -> tuple[Address, ExperimentConfig]:
    """Return the address, and the configuration that says where it is.

    Parameters
    ----------
    config : ExperimentConfig
    folder : RunFolder
    elsewhere : bool
        Whether the master that records the run is not that of this machine.
    """
    from det_native.storage.checkpoints import CheckpointStorage

    here = Address(folder.checkpoints, {})
    if folder.temporary:
        return here, config
    own = config.checkpoint_storage
    if not isinstance(own, MasterStorage):
        try:
            CheckpointStorage(*own.address).check_writable()
            return own.address, config
        except (DetError, OSError) as error:
            print(f"checkpoint_storage: {error} The checkpoints of this run go to {folder.checkpoints}.")
    kept = _kept(folder) if folder.in_home else None
    policy = own.model_dump(include={"save_experiment_best", "save_trial_best", "save_trial_latest"})
    storage: MasterStorage | UrlStorage = MasterStorage(**policy)
    address = kept or here
    if kept is not None or elsewhere or not folder.in_home:
        storage = UrlStorage(type="url", url=address.url, options=address.options, **policy)
    return address, config.model_copy(update={"checkpoint_storage": storage})


def _kept(folder: RunFolder) -> Address | None:
    """Return the storage that the home is set up with, None for its own folder."""
    from det_native.schema.home import Home
    from det_native.schema.start_settings import kept_setting

    for name in ("checkpoints", "storage"):
        kept = json.loads(kept_setting(Home(folder.root), name, {}) or "{}")
        if kept.get("url"):
            below = [] if name == "checkpoints" else ["checkpoints"]
            return Address("/".join([kept["url"].rstrip("/"), *below]), dict(kept.get("options") or {}))
    return None
