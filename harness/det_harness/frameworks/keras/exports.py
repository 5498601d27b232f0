"""Models of Keras in formats that other programs read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from det_native.errors import ArgumentError, CheckpointError, MissingDependencyError

FORMATS = ("savedmodel", "keras", "safetensors", "onnx")


def export(loaded: Any, target: Path, format: str, options: Mapping[str, Any]) -> Path:
    """Write a loaded Keras model; return the file or folder."""
    if options.get("example_inputs") is not None:
        raise ArgumentError("example_inputs= is for PyTorch; a Keras model knows its inputs. Leave it out.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _WRITERS[format](loaded, target)
    except MissingDependencyError:
        raise
    except Exception as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise CheckpointError(f"Keras cannot write this model as {format!r}: {text}.") from error


def _savedmodel(model: Any, target: Path) -> Path:
    from det_native.keras.generations import NUMBER

    if NUMBER == 2:
        model.save(str(target), save_format="tf")
    else:
        model.export(str(target))
    return target


def _keras(model: Any, target: Path) -> Path:
    written = target if target.suffix == ".keras" else target.with_name(f"{target.name}.keras")
    model.save(str(written))
    if written != target:
        written.rename(target)
    return target


def _safetensors(model: Any, target: Path) -> Path:
    try:
        from safetensors.numpy import save_file
    except ImportError as error:
        raise _missing("safetensors") from error
    save_file({name: value.numpy() for name, value in _named(model).items()}, str(target))
    return target


def _named(model: Any) -> dict[str, Any]:
    """Return the weights by their names; one whose name another has, too, by its place."""
    named: dict[str, Any] = {}
    for place, weight in enumerate(model.weights):
        name = str(getattr(weight, "path", weight.name))
        named[f"{name}.{place}" if name in named else name] = weight
    return named


def _onnx(model: Any, target: Path) -> Path:
    try:
        import tf2onnx  # type: ignore[import-not-found]
    except ImportError as error:
        raise _missing("tf2onnx") from error
    tf2onnx.convert.from_keras(model, output_path=str(target))
    return target


def _missing(package: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"This format needs another package: pip install {package}. Without it there are 'savedmodel' and 'keras'."
    )


_WRITERS = {"savedmodel": _savedmodel, "keras": _keras, "safetensors": _safetensors, "onnx": _onnx}
