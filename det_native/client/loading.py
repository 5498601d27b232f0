"""Checkpoints of a master's: their files, verified, and the models in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Any

from det_native.client.source import Source
from det_native.errors import ArgumentError, CheckpointCorruptError, DetError
from det_native.schema import rest
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import BundleManifest, CheckpointFile


class ArrivingContent:
    """The content of a file on its way here: after a cut it goes on where it was, and is verified as a whole.

    Parameters
    ----------
    target : Path
        The file to make; what is there is replaced once all has arrived.
    size : int
        Bytes.
    damaged : DetError
        Raised if what arrives is something else.
    """

    def __init__(self, target: Path, *, sha256: str, size: int, damaged: DetError) -> None:
        self.offset = 0
        self._target = target
        self._sha256 = sha256
        self._size = size
        self._damaged = damaged
        self._partial = target.with_name(f".{sha256[:16]}.part")
        self._digest = hashlib.sha256()

    def take(self, chunks: Iterable[bytes]) -> None:
        """Write what arrives from `offset` on."""
        self._target.parent.mkdir(parents=True, exist_ok=True)
        with self._partial.open("ab" if self.offset else "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
                self._digest.update(chunk)
                self.offset += len(chunk)

    def finish(self) -> None:
        """Verify the whole, and give it its name.

        Raises
        ------
        DetError
            If the content is not what was announced.
        """
        self._partial.touch()
        if self.offset != self._size or self._digest.hexdigest() != self._sha256:
            raise self._damaged
        self._partial.replace(self._target)

    def forget(self) -> None:
        """Remove half a file: it is nothing."""
        self._partial.unlink(missing_ok=True)


class ArrivingFile(ArrivingContent):
    """A file of a checkpoint on its way here.

    Parameters
    ----------
    uuid : str
        The checkpoint.
    directory : Path
        Of the checkpoint, here.

    Raises
    ------
    CheckpointCorruptError
        If the path would leave the directory.
    """

    def __init__(self, uuid: str, file: CheckpointFile, directory: Path) -> None:
        self.uuid = uuid
        self.file = file
        parts = safe_parts(file.path)
        if parts is None:
            raise CheckpointCorruptError(f"The checkpoint's path {file.path!r} leaves its folder.")
        damaged = CheckpointCorruptError(
            f"Checkpoint {uuid}: the content of the file {file.path!r} is not what was saved."
        )
        super().__init__(directory.joinpath(*parts), sha256=file.sha256, size=file.size, damaged=damaged)


def load_checkpoint(
    *,
    bundle: BundleManifest,
    read_blob: Callable[[str], bytes],
    directory: Path,
    checkpoint: rest.Checkpoint,
    config: dict[str, Any],
    trial_seed: int,
    files: Callable[[str], AbstractContextManager[Path]],
) -> Any:
    """Rebuild the user's model or trial from the experiment's code and load a checkpoint into it.

    Parameters
    ----------
    read_blob : callable
        Gives the raw content of a blob by its hash.
    directory : Path
        The checkpoint's files.
    config : dict
        The experiment's configuration.
    files : callable
        Gives a folder with the files of the checkpoint of an earlier training of the program, by its uuid, for a block.
    """
    from det_harness.program.load import load_checkpoint as load

    environment = TrialEnvironment(
        config=config,
        hparams=checkpoint.manifest.hparams,
        experiment_id=checkpoint.experiment_id,
        trial_id=checkpoint.trial_id,
        trial_seed=trial_seed,
    )
    return load(bundle, read_blob, directory, checkpoint.manifest, environment, files)


def load_from(source: Source, checkpoint: rest.Checkpoint, directory: Path, **program: Any) -> Any:
    """Load a checkpoint of an experiment that a source knows, by its `program`; see :func:`load_checkpoint`."""
    config, seed = source.experiment(checkpoint.experiment_id).config, source.trial(checkpoint.trial_id).seed
    return load_checkpoint(directory=directory, checkpoint=checkpoint, config=config, trial_seed=seed, **program)


def safe_parts(path: str) -> tuple[str, ...] | None:
    """Return the parts of a relative path; None if it would leave its folder."""
    parts = PurePosixPath(path).parts
    unsafe = not parts or path.startswith("/") or "\\" in path or "\0" in path
    return None if unsafe or path[1:2] == ":" or any(part in (".", "..") for part in parts) else parts


def check_options(tags: object, map_location: object, others: Mapping[str, Any]) -> None:
    """Refuse arguments that nothing takes, before anything is fetched.

    Raises
    ------
    ArgumentError
    """
    if others:
        names = ", ".join(f"{name}=" for name in others)
        raise ArgumentError(f"load() takes path=, tags= and map_location=, not {names}; the model is whole.")
    if tags is not None and (isinstance(tags, str) or not isinstance(tags, Sequence | set | frozenset)):
        raise ArgumentError(f"tags must be a list of texts, such as ['serve'], not {tags!r}.")


def loaded_as(checkpoint: rest.Checkpoint, folder: Path, load: Callable[[], Any], tags: Any, map_location: Any) -> Any:
    """Return a checkpoint's model, by tags or on a device where that is asked for.

    Parameters
    ----------
    folder : Path
        Its files.
    load : callable
        Returns the model.
    tags, map_location
        See ``Checkpoint.load``.
    """
    from det_harness.frameworks.base import harness_of

    harness = harness_of(checkpoint.manifest.framework)
    if tags is not None:
        if map_location is not None:
            raise ArgumentError("tags= is for SavedModels, map_location= for PyTorch: give one of them.")
        return harness.load_tagged(folder, list(tags))
    model = load()
    return model if map_location is None else harness.moved(model, map_location)
