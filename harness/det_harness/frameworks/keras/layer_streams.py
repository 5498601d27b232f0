"""The random numbers that layers of tf.keras 2 draw, as plain Keras draws them, but with a state that can be saved.

A dropout, or noise, is an operation of the compiled step that counts what it has drawn within the graph, out of reach.
Its numbers follow from two seeds: the global one, and its own, by default its place among the random operations of the
graph. A ``tf.random.Generator`` of the same algorithm that begins with these seeds draws the same numbers, and its
state is a variable.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import random_seed

from det_native.keras.generations import keras2


class LayerStream(tf.random.Generator):  # type: ignore[misc]  # TensorFlow has no types
    """Draws what the operations of a layer would draw.

    The seeds are those of the last graph that was made before anything is drawn: TensorFlow makes that of the first
    step twice. Graphs that are made later go on with the same numbers, but for those of a model that was compiled anew:
    there Keras makes another step, whose operations begin with their seeds.

    Parameters
    ----------
    of_layer : object
        Keras's ``RandomGenerator`` of the layer.
    unused : sequence of int
        The state while there is no graph.

    Attributes
    ----------
    further : list of tf.random.Generator
        For what the layer draws besides in one step, as a recurrent one does.
    """

    def __init__(self, of_layer: Any, unused: Any) -> None:
        super().__init__(state=unused, alg="philox")
        # Not by attributes, which would be in checkpoints.
        hidden: dict[str, Any] = self.__dict__
        hidden.update(further=[], _of_layer=of_layer, _unused=list(unused), _drawn_in=weakref.WeakKeyDictionary())
        hidden.update(_step=None, _of_steps=weakref.WeakKeyDictionary())

    def uniform(self, *args: Any, **kwargs: Any) -> Any:
        """Draw as ``tf.random.uniform``."""
        return self._draw(tf.random.uniform, tf.random.Generator.uniform, args, kwargs)

    def normal(self, *args: Any, **kwargs: Any) -> Any:
        """Draw as ``tf.random.normal``."""
        return self._draw(tf.random.normal, tf.random.Generator.normal, args, kwargs)

    def truncated_normal(self, *args: Any, **kwargs: Any) -> Any:
        """Draw as ``tf.random.truncated_normal``."""
        return self._draw(tf.random.truncated_normal, tf.random.Generator.truncated_normal, args, kwargs)

    def extend(self, count: int) -> None:
        """Have so many further generators at least."""
        with tf.init_scope():
            while len(self.further) < count:
                self.further.append(tf.random.Generator.from_state(self._unused, alg="philox"))

    def turn_to(self, step: Any) -> None:
        """Go on where the draws of a training step have ended, or begin with it.

        Parameters
        ----------
        step : object
            Is another object for another model that has the layer, and after ``compile()``.
        """
        hidden: dict[str, Any] = self.__dict__
        begun, former = self._step is not None, self._step and self._step()
        if former is step:
            return
        hidden["_step"] = weakref.ref(step)
        generators = [self, *self.further]
        if former is not None:
            self._of_steps[former] = [generator.state.numpy() for generator in generators]
        if not begun:
            return
        states = self._of_steps.get(step, [])
        for place, generator in enumerate(generators):
            generator.state.assign(states[place] if place < len(states) else self._unused)

    def _draw(self, eagerly: Callable[..., Any], in_graphs: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        own = self._of_layer.make_legacy_seed()
        if tf.executing_eagerly():  # from the global stream, which is in checkpoints
            return eagerly(*args, **kwargs, seed=own)
        *_, graph = graphs = list(_graphs_around(tf.compat.v1.get_default_graph()))
        if any(each.name.endswith(keras2.ONLY_SHAPES) for each in graphs):
            return eagerly(*args, **kwargs, seed=own)
        place = self._drawn_in[graph] = self._drawn_in.get(graph, -1) + 1
        self.extend(place)
        generator = self.further[place - 1] if place else self
        first, second = random_seed.get_seed(own)
        with tf.init_scope():
            if first is not None and not generator.state.numpy()[0]:
                generator.state.assign([0, second, first])
        return in_graphs(generator, *args, **kwargs)


def _graphs_around(graph: Any) -> Iterator[Any]:
    """Yield a graph, and those of the functions around a loop or a condition."""
    while hasattr(graph, "outer_graph"):
        yield graph
        graph = graph.outer_graph
