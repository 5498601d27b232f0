"""What a worker compares its inputs with: those of the call that is submitted."""

from __future__ import annotations

import enum
import hashlib
import os
import socket
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from det_native.capture.carry import CannotSendError, encode, pack
from det_native.capture.log import current_log
from det_native.capture.never_sent import has_state
from det_native.capture.secrets import looks_secret
from det_native.capture.value_formats import Encoded
from det_native.experimental.early_contents import EarlyContents
from det_native.inspection.registry import adapter_of
from det_native.proof.call import facts_of, in_words
from det_native.proof.clock_values import slots_of, written
from det_native.proof.inputs import Input, as_inputs
from det_native.proof.leaves import Leaf
from det_native.proof.lookups import identities_of, read_by
from det_native.proof.own_values import relative_to
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import Codec
from det_native.schema.proof import SECRET, CallProof, ClockValue, InputFact, InputLeaf, LeafValue

#: Bytes of values that travel for the case that the worker makes others, of all together.
VALUES_LIMIT = 8 << 20

_MOST_CLOCK_VALUES = 1_000
_OF_MODEL = ("weights", "layers", "optimizer", "loss", "metrics")

# Identities are compared: what a user's class says of equality is no matter.
_trained: dict[int, weakref.ref[Any]] = {}


@dataclass(frozen=True)
class NotedInputs:
    """What is known of the inputs of a call, and the contents of the values of them that travel, by hash."""

    proof: CallProof
    values: dict[str, bytes] = field(default_factory=dict)


def note_trained(call: Any) -> None:
    """Take note that the models of a call were trained in this process: on a worker they begin where they did here."""
    for model in call.models:
        _trained[id(model)] = weakref.ref(model, partial(_forget, id(model)))


def _forget(identity: int, reference: weakref.ref[Any]) -> None:
    _trained.pop(identity, None)


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
    luggage = _Luggage(early or EarlyContents())
    try:
        with relative_to((folder or Path.cwd()).resolve()):
            facts, reason = _facts(call, as_inputs(inputs()), luggage), ""
    except Exception as error:  # noqa: BLE001 (a user's model or data may raise anything)
        facts, reason = (), f"What reaches the training is not compared: {in_words(error)}"
    proof = CallProof(
        facts=facts,
        hparams=environment.hparams,
        seed=environment.trial_seed,
        clock_values=_clock_values(call, (folder or Path.cwd()).resolve()),
        host=socket.gethostname(),
        not_compared=reason,
    )
    sent = {value.sha256 for value in proof.values}
    return NotedInputs(proof, {sha: content for sha, content in luggage.contents.items() if sha in sent})


def _clock_values(call: Any, folder: Path) -> tuple[ClockValue, ...]:
    """Return what the notebook has made from a clock or from entropy, but for secrets."""
    environment = frozenset(os.environ.values())
    values: list[ClockValue] = []
    try:
        for slot in slots_of(call):
            text = written(slot.value, str(folder))
            if text is None or slot.value in environment or looks_secret(text[1], slot.path):
                continue
            kind = cast(Literal["str", "path", "int", "date", "datetime", "uuid"], text[0])
            place = _folder_of(str(slot.value), folder) if kind in ("str", "path") else ""
            values.append(ClockValue(path=slot.path, kind=kind, text=text[1], folder=place))
            if len(values) == _MOST_CLOCK_VALUES:
                break
    except Exception as error:  # noqa: BLE001 (objects of users may raise anything; the experiment is submitted)
        warnings.warn(f"Names made by clocks are the worker's own: {in_words(error)}", stacklevel=2)
    return tuple(values)


def _folder_of(path: str, folder: Path) -> str:
    """Return the folder that a path leads to, or its parent; relative to the notebook's, empty if it is not in that."""
    place = next((Path(place).resolve() for place in (path, os.path.dirname(path)) if os.path.isdir(place)), folder)
    return place.relative_to(folder).as_posix() if folder in place.parents else ""


def _facts(call: Any, inputs: dict[str, Input], luggage: _Luggage) -> tuple[InputFact, ...]:
    if any(id(model) in _trained for model in call.models):
        # The worker's are untrained, and that is what was asked for.
        inputs = {part: given for part, given in inputs.items() if given.role not in _OF_MODEL}
    apart = list(getattr(call, "compared_parts", call.models))
    by_themselves = [*apart, *(given.value for given in inputs.values())]
    parts = inputs | read_by(call.code(), without=by_themselves)
    skipped = frozenset(identities_of(apart))
    facts = facts_of(parts, _name_of, note=luggage.note, skipped=skipped)
    model = _name_of(call.models[0]) if len(call.models) == 1 else ""
    # Of what is taken from a model, the cells are told that make the model.
    return tuple(
        fact.model_copy(update={"name": model}) if fact.role in ("weights", "layers") and not fact.name else fact
        for fact in facts
    )


class _Luggage:
    """Collects the values that travel: those that a worker takes if its own are others."""

    def __init__(self, early: EarlyContents) -> None:
        self._early = early
        self._room = VALUES_LIMIT
        self.contents: dict[str, bytes] = {}

    def note(self, fact: InputFact, leaf: Leaf, noted: InputLeaf) -> InputLeaf:
        """Add to what is noted of a leaf: its value where that is small, and whether ``init()`` found it there."""
        name = f"{fact.name}{leaf.path}"
        if any(looks_secret(text, name) for text in _texts_in(leaf.value)):
            return noted.model_copy(update={"text": SECRET, "literal": ""})
        changes: dict[str, Any] = {"before_init": self._early.has(fact.name, leaf)}
        if not noted.literal and noted.exact and not noted.not_compared:
            if _has_taken_in(leaf.value):
                changes["value"] = self._add(_encoded_state(name, leaf.value, self._room), "state")
            elif leaf.kind in ("value", "data"):
                changes["value"] = self._pack(name, leaf, is_weights=fact.role == "weights")
        return noted.model_copy(update=changes)

    def _pack(self, name: str, leaf: Leaf, *, is_weights: bool) -> LeafValue | None:
        if leaf.put is None and not _changes_in_place(leaf.value):
            return None
        if size_of(leaf.value) > self._room:
            return None
        try:
            encoded = _encoded_weights(leaf.value) if is_weights else _encoded(name, leaf.value, self._room)
        except Exception:  # noqa: BLE001 (what cannot be pickled does not travel; a library raises what it likes)
            return None
        return None if encoded is None else self._add(encoded.content, encoded.codec)

    def _add(self, content: bytes | None, codec: Codec | Literal["state"]) -> LeafValue | None:
        if content is None or len(content) > self._room:
            return None
        self._room -= len(content)
        sha = hashlib.sha256(content).hexdigest()
        self.contents[sha] = content
        return LeafValue(codec=codec, sha256=sha, size=len(content))


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a plain value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, enum.Enum):
        yield from _texts_in(value.value)
    elif type(value) in (list, tuple, set, frozenset):
        for part in value:
            yield from _texts_in(part)


def size_of(value: Any) -> int:
    """Return about how many bytes the arrays of a value have, without looking into what is no array."""
    parts = value if isinstance(value, list | tuple) else [value]
    sizes = (getattr(part, "nbytes", 0) for part in parts)
    return sum(size for size in sizes if isinstance(size, int))


def _changes_in_place(value: Any) -> bool:
    return hasattr(value, "__setitem__") or hasattr(value, "copy_")


def _has_taken_in(value: Any) -> bool:
    """Whether a value is no array, and has a state of which an object of the same build becomes an equal one."""
    adapter = adapter_of(type(value))
    return adapter is not None and not adapter.is_data and has_state(value)


def _encoded_state(name: str, value: Any, limit: int) -> bytes | None:
    try:
        packed = pack([name], {name: value}, states=[name], limit=limit)
    except Exception:  # noqa: BLE001 (what cannot be pickled does not travel; a library raises what it likes)
        return None
    return None if packed.holds_model else packed.encoded.content


def _encoded(name: str, value: Any, limit: int) -> Encoded | None:
    try:
        packed = encode(name, {name: value}, limit=limit)
    except CannotSendError:
        return None
    return None if packed.holds_model else packed.encoded


def _encoded_weights(weights: list[Any]) -> Encoded:
    import io

    import numpy as np

    arrays = [np.asarray(weight.detach().cpu() if hasattr(weight, "detach") else weight) for weight in weights]
    file = io.BytesIO()
    np.savez(file, **{f"weight_{place}": array for place, array in enumerate(arrays)})
    return Encoded("weights", file.getvalue(), f"{len(arrays)} arrays of weights")


def _name_of(value: Any) -> str:
    """Return the notebook's variable that holds a value."""
    log = current_log()
    if log is None or value is None or isinstance(value, str | int | float | bool):
        return ""
    names = [name for name, held in list(log.shell.user_ns.items()) if held is value and not name.startswith("_")]
    return min(names, key=len, default="")
