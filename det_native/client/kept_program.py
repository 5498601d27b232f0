"""What a downloaded checkpoint needs to be loaded anywhere: what is known of it, and the program of its model."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from det_native.client.source import Source
from det_native.errors import ArgumentError, CheckpointCorruptError, CheckpointError, DetError
from det_native.schema import rest
from det_native.schema.manifests import BundleManifest

METADATA = "metadata.json"
PROGRAM = "program.zip"
_BUNDLE = "bundle.json"
#: A larger program stays where it is: data that were sent along, mostly.
LARGEST = 256 << 20


def write(source: Source, checkpoint: rest.Checkpoint, folder: Path, shown: dict[str, Any]) -> None:
    """Put `METADATA` into the folder of a checkpoint, and `PROGRAM`, unless that is too large or was not kept.

    Parameters
    ----------
    shown : dict
        What is known of the checkpoint, as people read it.
    """
    experiment = source.experiment(checkpoint.experiment_id)
    facts = {
        **shown,
        "experiment_config": experiment.config,
        "trial_seed": source.trial(checkpoint.trial_id).seed,
        "master": source.url,
        "program": _pack(source, checkpoint, folder / PROGRAM),
        "checkpoint": checkpoint.model_dump(mode="json"),
    }
    (folder / METADATA).write_text(json.dumps(facts, indent=1))


def _pack(source: Source, checkpoint: rest.Checkpoint, target: Path) -> str:
    """Write the program; return what became of it, in words."""
    try:
        bundle = source.bundle(checkpoint.experiment_id)
        sizes = dict(_contents(bundle))
        if sum(sizes.values()) > LARGEST:
            return f"it has more than {LARGEST >> 20} MiB, and stays with its experiment"
        if bundle.program.earlier_checkpoints:
            return "it loads another checkpoint first, and stays with its experiment"
        if target.is_file():
            return PROGRAM
        unfinished = target.with_name(f".{PROGRAM}")
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr(_BUNDLE, bundle.model_dump_json())
            for sha256 in sorted(sizes):
                file.writestr(sha256, source.blob(sha256))
        unfinished.replace(target)
    except DetError as error:
        return str(error)
    return PROGRAM


def _contents(bundle: BundleManifest) -> Iterator[tuple[str, int]]:
    """Yield hashes and sizes of all that a program is made of."""
    for sha256 in bundle.hashes():
        yield sha256, 0
    for file in bundle.files:
        yield file.sha256, file.size
    for value in bundle.values:
        yield value.sha256, value.size


def load(folder: Path) -> tuple[rest.Checkpoint, dict[str, Any]]:
    """Return the checkpoint that ``download()`` has put into a folder, verified, and the rest of what is noted there.

    Raises
    ------
    ArgumentError
        If the folder was not filled so.
    CheckpointCorruptError
        If a file is missing or was changed.
    """
    from det_native.client.checkpoint_folder import missing_files

    try:
        facts = json.loads((folder / METADATA).read_bytes())
        checkpoint = rest.Checkpoint.model_validate(facts["checkpoint"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ArgumentError(
            f"{folder} has no checkpoint that can be loaded: give load_from_path() a folder that checkpoint.download() "
            f"or `det checkpoint download` has filled, with its {METADATA}."
        ) from None
    missing = missing_files(folder, checkpoint.manifest)
    if missing:
        raise CheckpointCorruptError(f"{folder} lacks the file {missing[0].path!r} of checkpoint {checkpoint.uuid}.")
    return checkpoint, facts


def model_of(folder: Path, checkpoint: rest.Checkpoint, facts: dict[str, Any]) -> Any:
    """Return the model of a downloaded checkpoint, made by the program beside it, or by that of its experiment."""
    from det_native.client.loading import load_checkpoint

    path = folder / PROGRAM
    if not path.is_file():
        return _source(checkpoint).load(checkpoint, folder)
    with zipfile.ZipFile(path) as file:
        bundle = BundleManifest.model_validate_json(file.read(_BUNDLE))
        return load_checkpoint(
            bundle=bundle,
            read_blob=file.read,
            directory=folder,
            checkpoint=checkpoint,
            config=facts["experiment_config"],
            trial_seed=facts["trial_seed"],
            files=_no_files,
        )


def _source(checkpoint: rest.Checkpoint) -> Source:
    """Return where the program is: with this very checkpoint."""
    from det_native.client.catalog import source_of

    source = source_of(None)
    source.checkpoint(checkpoint.uuid)
    return source


def _no_files(uuid: str) -> AbstractContextManager[Path]:
    raise CheckpointError(f"checkpoint {uuid} lies on a cluster")
