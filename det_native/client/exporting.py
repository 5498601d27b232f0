"""A trained model, written in a format that other programs read."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from det_native.errors import ArgumentError, StorageError
from det_native.schema.manifests import Framework

FORMATS = ("savedmodel", "keras", "torchscript", "torch.export", "safetensors", "onnx")


def export(
    framework: Framework,
    load: Callable[[Path], Any],
    path: str | os.PathLike[str],
    format: str,
    example_inputs: Any,
) -> Path:
    """Write the model of a checkpoint; see ``Checkpoint.export``.

    Parameters
    ----------
    load : callable
        Returns the model, and leaves the files of the checkpoint in a folder that it is given.
    path, format, example_inputs
    """
    from det_harness.frameworks.base import harness_of

    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"export() takes the path of a file or folder, not {path!r}.")
    harness = harness_of(framework)
    formats = harness.export_formats
    if format not in formats:
        shown = ", ".join(repr(each) for each in formats)
        can = f"a checkpoint of {framework} can be exported as {shown}" if formats else "this framework has none"
        raise ArgumentError(f"format={format!r} does not fit: {can}. checkpoint.download() has the files as they are.")
    target = Path(path)
    if target.exists() or target.is_symlink():
        raise ArgumentError(f"{target} is there already; give export() another path, or move that away.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="det-export-") as folder:
        files, made = Path(folder, "files"), Path(folder, "made")
        files.mkdir()
        made.mkdir()
        model = load(files)
        written = harness.export(model, files, made / target.name, format, {"example_inputs": example_inputs})
        try:
            shutil.move(written, target)
        except OSError as error:
            raise StorageError(f"The model could not be written to {target}: {error.strerror or error}.") from error
    return target
