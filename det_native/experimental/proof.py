"""What a worker compares its inputs with: those of the call that is submitted."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
import zlib
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from det_native.capture.log import current_log
from det_native.capture.secrets import looks_secret
from det_native.experimental.early_contents import EarlyContents
from det_native.experimental.local.samples import was_trained
from det_native.heap.compare import Table
from det_native.heap.pickling import short
from det_native.heap.roots import roots_of_call
from det_native.heap.slots import FOLDER, slots_of_program
from det_native.heap.values import pack_roots, pack_whole
from det_native.schema.environment import TrialEnvironment
from det_native.schema.proof import CallProof, Input, ProofBlob

#: Bytes of values that travel for the case that the worker makes others, of all together.
VALUES_LIMIT = 8 << 20

_MOST_TEXTS = 2_000
_OF_MODEL = ("weights", "layers", "optimizer", "loss", "metrics")


@dataclass(frozen=True)
class NotedInputs:
    """What is known of the inputs of a call, and the blobs that belong to it, by hash."""

    proof: CallProof
    values: dict[str, bytes] = field(default_factory=dict)


def proof_of(
    call: Any, environment: TrialEnvironment, early: EarlyContents | None = None, *, folder: Path | None = None
) -> NotedInputs | None:
    """Return what is known of the inputs of a call; None for one that does not tell its inputs.

    Whatever goes wrong here keeps no training from being submitted: it is a sentence of the proof.

    Parameters
    ----------
    call : FitCall or TorchCall
    environment : TrialEnvironment
    early : EarlyContents, optional
        What there was when ``init()`` was called.
    folder : Path, optional
        The folder of the user's files, by default the working directory.
    """
    inputs = getattr(call, "inputs", None)
    if inputs is None or environment.config.get("proof") == "off":
        return None
    here = (folder or Path.cwd()).resolve()
    blobs: dict[str, bytes] = {}
    try:
        blobs, sentences = _blobs(call, inputs(), early or EarlyContents(), str(here))
    except Exception as error:  # noqa: BLE001 (a user's model or data may raise anything)
        sentences = [f"What reaches the training is not compared: {short(error)}."]
    try:
        blobs |= _texts_of_program(str(here))
    except Exception as error:  # noqa: BLE001 (likewise)
        warnings.warn(f"Names that cells made are the worker's own: {short(error)}.", stacklevel=2)
    noted = {
        name: ProofBlob(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        for name, content in blobs.items()
    }
    proof = CallProof(
        hparams=environment.hparams,
        seed=environment.trial_seed,
        table=noted.get("table"),
        inputs=noted.get("inputs"),
        texts=noted.get("texts"),
        sentences=tuple(sentences),
    )
    return NotedInputs(proof, {noted[name].sha256: content for name, content in blobs.items()})


def _blobs(
    call: Any, inputs: dict[str, Input], early: EarlyContents, folder: str
) -> tuple[dict[str, bytes], list[str]]:
    """Return what is known of the inputs, and the inputs, as bytes, and what cannot be compared."""
    skipped: list[Any] = []
    if was_trained(call):
        # The worker's are untrained, and that is what was asked for.
        inputs = {part: given for part, given in inputs.items() if given.role not in _OF_MODEL}
        skipped = getattr(call, "trained_parts", call.models)
    values = {part: given.value for part, given in inputs.items()}
    table = Table(values, roots_of_call()[0], folder=folder, is_secret=looks_secret, skipped=skipped)
    table.add_words()
    names = {part: name for part, value in values.items() if (name := _name_of(value))}
    known = {
        "names": names,
        "early": [key for key, entry in table.entries.items() if early.has(entry, names.get(entry.part, ""))],
        "parts": [*values],
        "entries": table.entries,
    }
    blobs = {"table": zlib.compress(json.dumps(known).encode(), 1)}
    if packed := pack_roots(table, VALUES_LIMIT, folder=folder):
        blobs["inputs"] = packed
    return blobs, table.not_compared


def _texts_of_program(folder: str) -> dict[str, bytes]:
    """Return the folder, and texts, paths, moments and large numbers of the program by what leads there; no secrets."""
    environment = frozenset(os.environ.values())
    slots = ((slot, str(slot.value)) for slot in islice(slots_of_program(), _MOST_TEXTS))
    values = {
        slot.path: slot.value for slot, text in slots if text not in environment and not looks_secret(text, slot.path)
    }
    noted = pack_whole({FOLDER: folder, **values}, VALUES_LIMIT, folder=folder)
    return {"texts": noted} if values and noted else {}


def _name_of(value: Any) -> str:
    """Return the notebook's variable that holds a value."""
    log = current_log()
    if log is None or value is None or issubclass(type(value), str | int | float):
        return ""
    names = [name for name, held in list(log.shell.user_ns.items()) if held is value and not name.startswith("_")]
    return min(names, key=len, default="")
