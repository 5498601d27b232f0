"""Facts of experiments for a program that runs again: recorded where it was submitted, replayed on the worker.

A script that trains twice asks the first experiment for its metrics, say. On a worker the first call trains nothing,
and the same questions get the answers that they had.
"""

from __future__ import annotations

import inspect
import json
import shutil
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from pydantic import BaseModel, TypeAdapter

from det_native.client.loading import load_from
from det_native.client.source import Source
from det_native.errors import TrialDefinitionError
from det_native.schema import rest

if TYPE_CHECKING:
    from det_native.client.handles import Experiment
    from det_native.schema.manifests import BundleManifest

#: Questions and commands whose answers are facts.
_RECORDED = frozenset(
    {
        *("experiment", "trials", "trial", "summaries", "metrics", "epochs", "system", "curves", "clock", "logs"),
        "media",
        *("checkpoints", "artifacts", "versions_of", "change_checkpoint", "verify_checkpoint", "delete_checkpoint"),
        *("kill", "stop", "pause", "resume", "change", "change_resources", "retain", "deletion", "delete"),
    }
)
#: What a worker cannot do: it has no connection for it.
_ABSENT = frozenset(
    {"events", "fork", "continuation", "artifact_content", "medium_content", "instead", "bundle", "blob"}
)


class RecordingSource:
    """A source that records the last answer to each question; all else of it is that source's.

    Attributes
    ----------
    answers : dict of str to object
        By question.
    read : dict of str to None
        Uuids of the checkpoints whose files were read.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.answers: dict[str, Any] = {}
        self.read: dict[str, None] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "_source":  # while a copy is made
            raise AttributeError(name)
        value = getattr(self._source, name)
        if name in _RECORDED:
            return partial(self._ask, name, value)
        if name == "load":  # so that what it asks is recorded, too
            return partial(type(self._source).load, self)
        return partial(self._download, value) if name == "download" else value

    def _ask(self, name: str, question: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        answer = question(*arguments, **keywords)
        self.answers[_key(name, arguments, keywords)] = answer
        return answer

    def _download(self, download: Callable[..., None], checkpoint: rest.Checkpoint, directory: Path) -> None:
        download(checkpoint, directory)
        self.read[checkpoint.uuid] = None

    def encoded(self) -> bytes:
        """Return the answers as bytes, for :class:`ReplayedSource`."""
        return zlib.compress(json.dumps({**self.answers}, default=_as_json, sort_keys=True).encode(), 1)


class ReplayedSource(Source):
    """Answers as a :class:`RecordingSource` did in the process that has submitted.

    Parameters
    ----------
    content : bytes
        What that has encoded.
    place : str
        Where the training call was made, for messages.
    files : callable
        Gives a folder with the files of a checkpoint, by its uuid, for a block.
    bundle : BundleManifest
        The program up to that call.
    read_blob : callable
        Gives the raw content of a blob of it by its hash.
    """

    def __init__(
        self,
        content: bytes,
        place: str,
        files: Callable[[str], AbstractContextManager[Path]],
        bundle: BundleManifest,
        read_blob: Callable[[str], bytes],
    ) -> None:
        self._answers: dict[str, Any] = json.loads(zlib.decompress(content))
        self._place, self._files, self._bundle, self._read_blob = place, files, bundle, read_blob

    def __getattribute__(self, name: str) -> Any:
        return partial(self._answer, name) if name in _RECORDED | _ABSENT else super().__getattribute__(name)

    def _answer(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        key = _key(name, arguments, keywords)
        if key not in self._answers:
            raise TrialDefinitionError(
                f"The program asks for the {name} of the training call in {self._place}, which does not train in this "
                "run, and for which it did not ask where it was submitted. Make what you take of it a hyperparameter, "
                "or an argument of a script that has this training only."
            )
        return _adapter(name).validate_python(self._answers[key])

    def download(self, checkpoint: rest.Checkpoint, directory: Path) -> None:
        """Copy the checkpoint's files, verified, into an existing empty directory."""
        with self._files(checkpoint.uuid) as folder:
            shutil.copytree(folder, directory, dirs_exist_ok=True)

    def load(self, checkpoint: rest.Checkpoint, directory: Path) -> Any:
        """Return the model, made by the program up to the call, as where it was submitted."""
        program = {"bundle": self._bundle, "read_blob": self._read_blob}
        return load_from(self, checkpoint, directory, files=self._files, **program)


def replayed(experiment_id: int, *of_source: Any) -> Experiment:
    """Return the handle of an experiment with a :class:`ReplayedSource`, made of `of_source`."""
    from det_native.client.handles import Experiment

    return Experiment(cast(Callable[..., Source], ReplayedSource)(*of_source), experiment_id)


def recording(source: Source) -> Source:
    """Return a source that records what this one answers."""
    return cast(Source, RecordingSource(source))


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(getattr(Source, name))["return"])


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(Source, name))


def _key(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    bound = _signature(name).bind(None, *arguments, **keywords)
    bound.apply_defaults()
    return json.dumps([name, *list(bound.arguments.values())[1:]], default=_as_json)


def _as_json(value: Any) -> Any:
    # By each model's own rule for numbers that are none.
    return json.loads(value.model_dump_json()) if isinstance(value, BaseModel) else str(value)
