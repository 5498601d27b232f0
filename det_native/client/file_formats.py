"""Files read by their endings: arrays, tables, pictures, weights. Nothing that is read runs code."""

from __future__ import annotations

import csv
import importlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from det_native.errors import MissingDependencyError, StorageError, UnsupportedFeatureError

_PICKLES = frozenset({".pkl", ".pickle", ".joblib"})


def read_file(path: Path, title: str) -> Any:
    """Return the content of a file, as its ending says; of an unknown one its bytes.

    Parameters
    ----------
    title : str
        What it is called in messages.

    Raises
    ------
    StorageError
        If it is not what its ending says.
    UnsupportedFeatureError
        For a pickle, which would run code.
    MissingDependencyError
        If the package that reads such files is not installed.
    """
    ending = path.suffix.lower()
    if ending in _PICKLES:
        raise UnsupportedFeatureError(
            f"{title!r} is a pickle: to read it runs the code in it. If you trust it, download() it and read the file "
            "yourself, for instance with pickle.load()."
        )
    read = _READERS.get(ending, Path.read_bytes)
    try:
        return read(path)
    except (MissingDependencyError, UnsupportedFeatureError):
        raise
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{title!r} cannot be read without {error.name}, which is not installed here; download() copies the file."
        ) from error
    except pickle.UnpicklingError as error:
        raise UnsupportedFeatureError(
            f"{title!r} has objects beside tensors: to read it runs code. If you trust it, download() it and read it "
            "with torch.load(path, weights_only=False)."
        ) from error
    except Exception as error:
        raise StorageError(
            f"{title!r} cannot be read as {ending}: {error} download() copies the file as it is."
        ) from error


def _array(path: Path) -> Any:
    numpy = importlib.import_module("numpy")
    loaded = numpy.load(path, allow_pickle=False)
    if path.suffix.lower() == ".npz":
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    return loaded


def _table(path: Path) -> Any:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        pandas = importlib.import_module("pandas")
    except ModuleNotFoundError:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream, delimiter=separator))
    return pandas.read_csv(path, sep=separator)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _json_lines(path: Path) -> Any:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="backslashreplace")


def _picture(path: Path) -> Any:
    numpy = importlib.import_module("numpy")
    image = importlib.import_module("PIL.Image")
    with image.open(path) as opened:
        return numpy.asarray(opened)


def _tensors(path: Path) -> Any:
    torch = importlib.import_module("torch")
    return torch.load(path, map_location="cpu", weights_only=True)


def _model(path: Path) -> Any:
    call = "model.load_weights" if ".weights." in path.name else "keras.models.load_model"
    raise UnsupportedFeatureError(
        f"{path.name!r} is a model, and reading it may run code that is in it: {call}(artifact.download('a folder')) "
        "does that."
    )


_READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": _array,
    ".npz": _array,
    ".csv": _table,
    ".tsv": _table,
    ".json": _json,
    ".jsonl": _json_lines,
    **dict.fromkeys((".txt", ".log", ".md", ".yaml", ".yml"), _text),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp"), _picture),
    ".pt": _tensors,
    ".pth": _tensors,
    ".keras": _model,
    ".h5": _model,
    ".hdf5": _model,
}
