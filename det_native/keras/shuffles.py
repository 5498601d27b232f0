"""How many seeds the shuffles of a Dataset have drawn: the order of its next pass follows from that.

A shuffle that reshuffles has a generator of seeds, which belongs to the Dataset and not to its iterators: each iterator
draws from it when it begins. TensorFlow tells and sets its place only as a part of an iterator's state. So an iterator
of an empty Dataset is made that shuffles with the same generator, and its state is read, or another one put into it.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, tensor_pb2

from det_native.keras.pipelines import bytes_held, count_elements, inputs_of, is_cache, may_draw_each_pass

_PLACE = b"epoch_num_random_samples"
_SEEDS_OF_A_PASS = 2
# Operations that draw seeds, by the attribute that says whether they do so for each pass.
_DRAWING = {"ShuffleDatasetV3": "reshuffle_each_iteration", "RandomDatasetV2": "rerandomize_each_iteration"}
# The graph of a Dataset is made of so many bytes in the time in which the other way looks at a few generators.
_LITTLE = 16 * 1024**2

# By Dataset, and by the name of the generator.
_probes: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def places(dataset: Any) -> list[int]:
    """Return how many seeds each shuffle of a Dataset has drawn, in the order of the pipeline.

    Of a shuffle below a cache that is full it is ``~drawn``, as it was when the pass began that has filled it. Shuffles
    of Datasets that functions of the pipeline make (of ``interleave()``, say) begin with each pass, and are left out.
    """
    cached = _cached(dataset)
    return [
        ~(_State(probe).drawn - _SEEDS_OF_A_PASS) if name in cached else _State(probe).drawn
        for name, probe in _probes_of(dataset).items()
    ]


def put_places(dataset: Any, drawn: Sequence[int], *, fill: bool = True) -> None:
    """Have each shuffle of a Dataset go on as if it had drawn so many seeds; see :func:`places`.

    A cache that was full is filled again in the same order, unless `fill` is false: then the next pass does that.

    Raises
    ------
    ValueError
        If the Dataset has another number of shuffles.
    """
    cached = _cached(dataset)
    to_fill = set()
    for (name, probe), number in zip(_probes_of(dataset).items(), drawn, strict=True):
        if name not in cached:  # of a full cache no pass draws any more
            _put(probe, number if number >= 0 else ~number)
            to_fill |= {name} if number < 0 else set()
    for step in filter(is_cache, _steps_of(dataset)):
        if fill and not to_fill.isdisjoint(_probes_of(step)):
            count_elements(step)


def _cached(dataset: Any) -> set[str]:
    """Return the generators of the shuffles below caches that are full: no pass draws from them any more."""
    cached: set[str] = set()
    for step in filter(is_cache, _steps_of(dataset)):
        below = {name: probe for name, probe in _probes_of(step).items() if _State(probe).drawn}
        if below and not _drawing(step, below):
            cached.update(below)
    return cached


def _put(probe: Any, number: int) -> None:
    serialized = _State(probe).encoded(number)
    tf.raw_ops.DeserializeIterator(resource_handle=probe._iterator_resource, serialized=serialized)


def _probes_of(dataset: Any) -> dict[str, Any]:
    """Return an iterator for each shuffle of a Dataset that shares its generator of seeds, and reads nothing."""
    if dataset not in _probes:
        steps = list(_steps_of(dataset))
        shuffles = [step for step in steps if may_draw_each_pass(step)]
        if not shuffles:
            _probes[dataset] = {}
        elif sum(map(bytes_held, steps)) <= _LITTLE:
            _probes[dataset] = {name: _probe(handle) for name, handle in _handles(dataset).items()}
        else:
            probes = _GENERATORS.probes()
            _probes[dataset] = {name: probes[name] for step in shuffles for name in _drawing(step, probes)}
    return _probes[dataset]


def _steps_of(dataset: Any) -> Iterator[Any]:
    """Yield a Dataset and those it is made of, those below first, each once."""
    found: dict[int, Any] = {}
    queue = deque([dataset])
    while queue:
        step = queue.popleft()
        found.pop(id(step), None)
        found[id(step)] = step
        queue.extend(inputs_of(step))
    yield from reversed(found.values())


def _handles(dataset: Any) -> dict[str, Any]:
    """Return the handles of the generators of a Dataset: its graph has them, and all its data, too."""
    graph = graph_pb2.GraphDef.FromString(dataset._as_serialized_graph().numpy())
    nodes = {node.name: node for node in graph.node}
    handles: dict[str, Any] = {}
    for node in graph.node:
        if node.op in _DRAWING and node.attr[_DRAWING[node.op]].b:
            handle = nodes[node.input[-1]].attr["value"].tensor
            handles.setdefault(handle.resource_handle_val[0].name, handle)
    return handles


def _drawing(step: Any, probes: Mapping[str, Any]) -> list[str]:
    """Return which generators draw when an iterator of a step begins; then they are as they were."""
    before = {name: _State(probe).drawn for name, probe in probes.items()}
    iter(_without_reading_ahead(step))
    drawing = [name for name, probe in probes.items() if _State(probe).drawn != before[name]]
    for name in drawing:
        _put(probes[name], before[name])
    return drawing


class _Generators:
    """Finds the generators of seeds that are alive in this process, by their names, which end in a number.

    Each operation of a shuffle takes the next number, whether it makes a generator or not; those that a search takes,
    and those of generators that are gone, are not tried again.
    """

    def __init__(self) -> None:
        self._alive: list[int] = []
        self._end = 0

    def probes(self) -> dict[str, Any]:
        """Return an iterator for each generator, by its name."""
        handle, end = self._newest()
        prefix = handle.resource_handle_val[0].name.rpartition("_")[0]
        numbers = [*self._alive, *range(self._end, end)]
        self._alive, probes = [], {}
        for number in numbers:
            name = handle.resource_handle_val[0].name = f"{prefix}_{number}"
            with suppress(tf.errors.NotFoundError):  # its Dataset is gone
                probes[name] = _probe(handle)
                self._alive.append(number)
        self._end = self._newest()[1]
        return probes

    def _newest(self) -> tuple[Any, int]:
        """Return the handle of a generator made now, and its number."""
        ((name, handle),) = _handles(tf.data.Dataset.range(0).shuffle(1, reshuffle_each_iteration=True)).items()
        return handle, int(name.rpartition("_")[2])


_GENERATORS = _Generators()


def _probe(generator: Any) -> Any:
    probe = iter(_nothing_shuffled(generator))
    _put(probe, _State(probe).drawn - _SEEDS_OF_A_PASS)
    return probe


def _nothing_shuffled(generator: Any) -> Any:
    """Return an empty Dataset that shuffles with the generator of another one, of which this is the handle."""
    with tf.device("CPU"):
        variant = tf.raw_ops.ShuffleDatasetV3(
            input_dataset=tf.data.Dataset.range(0)._variant_tensor,
            buffer_size=1,
            seed=1,
            seed2=1,
            seed_generator=tf.io.parse_tensor(generator.SerializeToString(), tf.resource),
            output_types=[tf.int64],
            output_shapes=[()],
        )
    return _without_reading_ahead(tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64)))


def _without_reading_ahead(dataset: Any) -> Any:
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.experimental_warm_start = False
    return dataset.with_options(options)


class _State:
    """The state of an iterator of one shuffle, as TensorFlow encodes it.

    Attributes
    ----------
    drawn : int
        How many seeds its generator has drawn.
    """

    def __init__(self, probe: Any) -> None:
        state = tf.raw_ops.SerializeIterator(resource_handle=probe._iterator_resource, external_state_policy=1)
        self._whole = _proto(state)
        self._parts = list(_parts(self._whole))
        self._own = next(part for part in self._parts if _PLACE in part.metadata)
        names = self._own.metadata.split(b"@@")[1:]
        element = tf.io.parse_tensor(self._own.tensors[0].SerializeToString(), tf.variant)
        self._numbers = tf.raw_ops.UncompressElement(
            compressed=element, output_types=[tf.int64] * len(names), output_shapes=[()] * len(names)
        )
        self._index = names.index(_PLACE)
        self.drawn = int(self._numbers[self._index])

    def encoded(self, drawn: int) -> Any:
        """Return the state with another number of drawn seeds, as a tensor that an iterator takes."""
        self._numbers[self._index] = tf.constant(drawn, tf.int64)
        self._own.tensors[0].CopyFrom(_proto(tf.raw_ops.CompressElement(components=self._numbers)))
        parts = [part.SerializeToString() for part in self._parts]
        self._whole.tensor_content = b"".join(_varint(len(part)) for part in parts) + b"".join(parts)
        return tf.io.parse_tensor(self._whole.SerializeToString(), tf.variant)


def _proto(tensor: Any) -> Any:
    return tensor_pb2.TensorProto.FromString(tf.io.serialize_tensor(tensor).numpy())


def _parts(whole: Any) -> Iterator[Any]:
    """Yield what a tensor of variants consists of: their lengths come first."""
    content, place, lengths = whole.tensor_content, 0, []
    for _ in range(whole.tensor_shape.dim[0].size):
        length = shift = 0
        while True:
            byte = content[place]
            place += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(length)
    for length in lengths:
        yield tensor_pb2.VariantTensorDataProto.FromString(content[place : place + length])
        place += length


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
