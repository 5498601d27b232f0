"""Random numbers of the user's own inside a compiled training step: their position lies in the graph, out of reach."""

from __future__ import annotations

import logging
from typing import Any

from tensorflow.python.framework import op_def_registry

logger = logging.getLogger("det_native")

_SHOWN = 3
# Stateful with a seed, but no source of random numbers for the model, or none without dropout inside them.
_OTHERS = ("CudnnRNN", "RandomShuffleQueue")


class RandomnessCheck:
    """Says once if a model draws random numbers that will begin anew after a restart."""

    def __init__(self) -> None:
        self._done = False

    def look(self, model: Any) -> None:
        """Look at the training step of a model, as soon as there is a compiled one."""
        step = getattr(model, "train_tf_function", None)
        if self._done or step is None:
            return
        self._done = True
        found = random_operations(step)
        if found:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            logger.warning(
                "The training step draws random numbers whose position no checkpoint can hold (%s%s): after a restart "
                "they start again, so the trial does not end exactly as it would have. Draw them from a "
                "tf.random.Generator that the layer or the model keeps, or with operations of tf.random.stateless_*.",
                ", ".join(found[:_SHOWN]),
                more,
            )


def random_operations(function: Any) -> list[str]:
    """Return the names of the operations in a ``tf.function`` that draw from a state of their own."""
    found: dict[str, None] = {}
    for concrete in function._list_all_concrete_functions():
        graph = concrete.graph.as_graph_def()
        for nodes in (graph.node, *(each.node_def for each in graph.library.function)):
            found.update({node.name.rpartition("/")[0] or node.name: None for node in nodes if _draws(node.op)})
    return list(found)


def _draws(operation: str) -> bool:
    definition = op_def_registry.get(operation)
    if definition is None or not definition.is_stateful or operation.startswith(_OTHERS):
        return False
    return any(attribute.name == "seed2" for attribute in definition.attr)
