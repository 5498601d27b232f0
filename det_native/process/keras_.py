"""The streams of Keras 2 and Keras 3, whose seeds their initializers draw from, and what counts the names of layers."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from det_native.process.stream import State, Stream, generator_stream

KERAS_3 = "keras_3"
_STATE_OF_KERAS_3 = "keras.src.backend.common.global_state"  # there is nothing public that tells its stream
_BACKENDS = ("keras.src.backend", "tf_keras.src.backend", "tensorflow.python.keras.backend")


def _read_keras_3() -> State | None:
    """Return the seed of Keras 3 and the state of what gives ``keras.random`` its seeds; None before either is used."""
    module = sys.modules.get(_STATE_OF_KERAS_3)
    if module is None:
        return None
    seed, generator = (module.get_global_attribute(f"global_{name}") for name in ("random_seed", "seed_generator"))
    if seed is None and generator is None:
        return None
    state = None if generator is None else sys.modules["keras"].ops.convert_to_numpy(generator.state).tolist()
    return {KERAS_3: [seed, state]}


def _put_back_keras_3(states: Mapping[str, Any]) -> None:
    """Give Keras 3 its seed, and what gives seeds its state; without one, the next draw makes it."""
    module, generator = sys.modules.get(_STATE_OF_KERAS_3), None
    if module is None:
        return
    seed, state = states[KERAS_3]
    if state is not None:
        generator = module.get_global_attribute("global_seed_generator")
        if generator is None:
            generator = sys.modules["keras"].random.SeedGenerator(0)
        generator.state.assign(state)
    module.set_global_attribute("global_random_seed", seed)
    module.set_global_attribute("global_seed_generator", generator)


def _seeds_of_initializers() -> random.Random | None:
    """Return what gives the initializers of Keras 2 their seeds; None without a seed of Keras."""
    holders = (getattr(sys.modules.get(name), "_SEED_GENERATOR", None) for name in _BACKENDS)
    generators = (getattr(holder, "generator", None) for holder in holders)
    return next((one for one in generators if isinstance(one, random.Random)), None)


_KERAS_2 = generator_stream("keras", _seeds_of_initializers)


def _put_back_keras_2(states: Mapping[str, Any]) -> None:
    if _seeds_of_initializers() is None and "keras.src.backend" in sys.modules:
        sys.modules["keras.src.backend"]._SEED_GENERATOR.generator = random.Random()
    _KERAS_2.put_back(states)


_NAMES = "keras_names"


def _names_of_keras_2() -> Any:
    """Return what counts the names of layers and metrics in Keras 2, by pairs of a namespace and a word."""
    for name in _BACKENDS[:2]:
        backend: Any = sys.modules.get(name)
        if hasattr(backend, "get_default_graph_uid_map"):
            return backend.get_default_graph_uid_map()
    return None


def _read_names() -> State | None:
    """Return how many objects of each kind had a name made for them; None before Keras is used.

    A second ``AUC()`` is called ``auc_1``, whatever model has it: its name is a matter of what the process has done.
    """
    module = sys.modules.get(_STATE_OF_KERAS_3)
    if module is not None:
        return {_NAMES: [*(module.get_global_attribute("object_name_uids") or {}).items()]}
    names = _names_of_keras_2()
    return None if names is None else {_NAMES: [*names.items()]}


def _put_back_names(states: Mapping[str, Any]) -> None:
    """Have Keras count on from there."""
    module = sys.modules.get(_STATE_OF_KERAS_3)
    if module is not None:
        counted = defaultdict(int, {name: count for name, count in states[_NAMES] if isinstance(name, str)})
        module.set_global_attribute("object_name_uids", counted)
        return
    names = _names_of_keras_2()
    if names is not None:
        names.clear()
        names.update({tuple(pair): count for pair, count in states[_NAMES] if not isinstance(pair, str)})


STREAMS = (
    Stream(KERAS_3, _read_keras_3, _put_back_keras_3),
    Stream("keras", _KERAS_2.read, _put_back_keras_2),
    Stream(_NAMES, _read_names, _put_back_names, begins="keras", counts=True),
)
