"""What a worker compares its inputs with: those of the call that is submitted."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

from det_native.capture.log import current_log
from det_native.proof.call import facts_of, in_words
from det_native.proof.lookups import read_by
from det_native.schema.environment import TrialEnvironment
from det_native.schema.proof import CallProof, InputFact

# Identities are compared: what a user's class says of equality is no matter.
_trained: dict[int, weakref.ref[Any]] = {}


def note_trained(call: Any) -> None:
    """Take note that the models of a call were trained in this process: on a worker they begin where they did here."""
    for model in call.models:
        _trained[id(model)] = weakref.ref(model, partial(_forget, id(model)))


def _forget(identity: int, reference: weakref.ref[Any]) -> None:
    _trained.pop(identity, None)


def proof_of(call: Any, environment: TrialEnvironment) -> CallProof | None:
    """Return what is known of the inputs of a call; None for one that does not tell its inputs.

    Whatever goes wrong here keeps no training from being submitted: it is a sentence of the proof.
    """
    inputs = getattr(call, "inputs", None)
    if inputs is None or environment.config.get("proof") == "off":
        return None
    try:
        facts, untold = _facts(call, inputs()), ""
    except Exception as error:  # noqa: BLE001 (a user's model or data may raise anything)
        facts, untold = (), f"What reaches the training is not compared: {in_words(error)}"
    return CallProof(facts=facts, hparams=environment.hparams, seed=environment.trial_seed, untold=untold)


def _facts(call: Any, parts: dict[str, Any]) -> tuple[InputFact, ...]:
    if any(id(model) in _trained for model in call.models):
        # The worker's are untrained, and that is what was asked for.
        parts = {part: value for part, value in parts.items() if not part.startswith(("the model", "the optimizer"))}
    facts = facts_of(parts | read_by(call.code(), without=[*call.models, *parts.values()]), _name_of)
    model = _name_of(call.models[0]) if len(call.models) == 1 else ""
    # Of what is taken from a model, the cells are told that make the model.
    return tuple(
        fact.model_copy(update={"name": model}) if fact.part.startswith("the model") and not fact.name else fact
        for fact in facts
    )


def _name_of(value: Any) -> str:
    """Return the notebook's variable that holds a value."""
    log = current_log()
    if log is None or value is None or isinstance(value, str | int | float | bool):
        return ""
    names = [name for name, one in list(log.shell.user_ns.items()) if one is value and not name.startswith("_")]
    return min(names, key=len, default="")
