"""What a worker is told to do: made from an experiment, a trial, a run and the checkpoint it continues from."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from det_native._version import PROTOCOL
from det_native.frameworks import find_framework, get_framework, has_horovod, missing_horovod
from det_native.master.flow.places import Places
from det_native.master.flow.places_of_checkpoints import address_of
from det_native.master.launch.base import WorkerKind
from det_native.master.launch.slots import device_of
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import CheckJob, TrialJob, WarmStartSource
from det_native.schema.lengths import UNTOLD, Length, Unit
from det_native.schema.manifests import BundleManifest, CheckpointManifest, Framework, Sha256
from det_native.schema.resources import Device
from det_native.schema.roles import processes_of
from det_native.storage.blobs import BlobStore
from det_native.storage.datasets import DataStore
from det_native.storage.reached import mark_of
from det_native.storage.shared_blobs import place_of


def stage_of(config: ExperimentConfig, units: int | None) -> Length | None:
    """Return the length of a trial's stage; None where it trains the whole length at once."""
    return None if units is None else Length(unit=config.searcher.max_length.unit, units=units)


def target_batches(
    config: ExperimentConfig,
    hparams: dict[str, object],
    framework: Framework | None = None,
    *,
    stage: Length | None = None,
) -> int:
    """Return the batches of a trial; 0 if they cannot be told, which the trial itself will explain."""
    length = stage or config.searcher.max_length
    if length == UNTOLD:
        return 0
    if length.unit is Unit.BATCHES:
        return length.units
    environment = TrialEnvironment(config=config.model_dump(mode="json"), hparams=hparams)
    described = find_framework(framework) if framework is not None else None
    try:
        batch_size = environment.global_batch_size
        return length.to_batches(
            global_batch_size=batch_size,
            records_per_epoch=config.records_per_epoch,
            whole_epochs=described is not None and described.whole_epochs,
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return 0


def worker_kind(bundle: BundleManifest) -> WorkerKind:
    """Return what a standby for this bundle needs; its interpreter, if it is on this machine, else the master's own."""
    interpreter = bundle.interpreter
    executable = usable_here(interpreter.executable)
    return WorkerKind(bundle.program.framework, executable, interpreter.fingerprint, bundle.packages)


def usable_here(executable: str) -> str:
    """Return an interpreter if it is another one of this machine; empty where the master's own runs the workers."""
    another = executable and executable != sys.executable
    return executable if another and os.access(executable, os.X_OK) else ""


def check_framework(bundle: BundleManifest) -> None:
    """Refuse an experiment if the Python that will run its trials does not know its framework, as far as can be told.

    Raises
    ------
    MissingDependencyError
    """
    if not worker_kind(bundle).executable and not bundle.packages:
        get_framework(bundle.program.framework)


def check_horovod(config: ExperimentConfig, bundle: BundleManifest) -> None:
    """Refuse an experiment that needs Horovod if the Python that will run its trials has none.

    Raises
    ------
    MissingDependencyError
    """
    framework = find_framework(bundle.program.framework)
    by_horovod = framework is not None and framework.exchanges_by_horovod(config.distributed.backend)
    if framework is None or bundle.packages or not by_horovod or config.resources.slots_per_trial <= 1:
        return
    executable, packages = worker_kind(bundle).executable, bundle.interpreter.packages
    if not executable and not has_horovod(framework.module):
        raise missing_horovod(part=framework.module)
    if executable and packages and "horovod" not in packages:
        raise missing_horovod(executable, framework.module)


def place_of_blobs(places: Places, bundle: BundleManifest) -> str:
    """Return where a worker finds the blobs of a bundle; one from before there was another storage is in the home."""
    if not places.storage_url:
        return places.blobs
    return place_of(bundle.hashes(), places.blobs, BlobStore(str(places.own_blobs)))


def place_of_data(places: Places, bundle: BundleManifest) -> str:
    """Return where a worker finds the data of a bundle; those from before another storage are in the home."""
    own = DataStore(places.own_data)
    hashes = {link.sha256 for link in bundle.links}
    return str(places.own_data) if hashes and all(map(own.has, hashes)) else places.data


def marks_of(places: Places, checkpoints: str = "") -> dict[str, str]:
    """Return the storages that workers have to reach on every machine, with their marks.

    Parameters
    ----------
    checkpoints : str
        Where those of the experiment lie; empty where that is not known yet.
    """
    if not places.several_machines:
        return {}
    addresses = [checkpoints] if checkpoints and checkpoints != places.checkpoints else []
    storage = places.storage_url.rstrip("/")
    if storage and not checkpoints.startswith(f"{storage}/"):
        addresses.append(storage)
    return {address: mark_of(address) for address in addresses}


def check_job(bundle: BundleManifest, directory: Path, places: Places) -> CheckJob:
    """Return the job that loads a bundle in a fresh process."""
    return CheckJob(
        protocol=PROTOCOL,
        directory=str(directory),
        blobs=place_of_blobs(places, bundle),
        bundle=bundle,
        data=place_of_data(places, bundle),
        storage_options=dict(places.storage_options),
        marks=marks_of(places),
        cache=str(places.cache),
    )


def ranks_of(config: ExperimentConfig, framework: Framework, slots: tuple[str, ...], machines: int) -> int:
    """Return how many processes run a trial.

    One on each slot; one on all where the framework spreads the work, and one on each machine where its code does.
    """
    described = find_framework(framework)
    if described is not None and described.process_per_machine:
        return max(1, machines)
    return processes_of(config.model_dump(mode="json"), len(slots))


def trial_job(
    places: Places,
    experiment: rest.Experiment,
    bundle: BundleManifest,
    trial: rest.Trial,
    *,
    run_id: str,
    token: str,
    slots: tuple[str, ...],
    resume: CheckpointManifest | None,
    manifests: Mapping[str, Sha256],
    units: int | None = None,
    warm_start: WarmStartSource | None = None,
    earlier: Mapping[str, WarmStartSource] | None = None,
    cluster_device: Device | None = None,
) -> TrialJob:
    """Return the job of one run of a trial on all its slots, which the launcher divides where there are several.

    With `cluster_device`, what its slots are on a cluster, the launcher also fills in which devices it has and with how
    many threads it computes: only the machine where it runs knows that.
    """
    config = ExperimentConfig.model_validate(experiment.config)
    devices = [] if cluster_device else [device for device in map(device_of, slots) if device is not None]
    kind: Device = cluster_device or ("cuda" if devices else "cpu")
    stage = stage_of(config, units)
    address = address_of(config, places)
    return TrialJob(
        protocol=PROTOCOL,
        directory=str(places.run(run_id)),
        blobs=place_of_blobs(places, bundle),
        outputs=places.blobs if places.storage_url else "",
        data=place_of_data(places, bundle),
        storage_options=dict(places.storage_options),
        marks=marks_of(places, address.url),
        cache=str(places.cache),
        bundle=bundle,
        bundle_id=bundle.id,
        checkpoints=address.url,
        checkpoint_options=address.options,
        resume=resume,
        manifests=dict(manifests),
        warm_start=warm_start,
        earlier=dict(earlier or {}),
        master_url=places.url,
        home=str(places.home),
        token=token,
        run_id=run_id,
        experiment_id=experiment.id,
        trial_id=trial.id,
        config=experiment.config,
        hparams=trial.hparams,
        trial_seed=trial.seed,
        stage=stage.model_dump() if stage is not None else None,
        test=experiment.test,
        devices=devices,
        threads=0 if cluster_device else places.threads * max(len(slots), 1),
        slots=[len(slots)],
        variables=config.environment.environment_variables.for_device(kind),
    )
