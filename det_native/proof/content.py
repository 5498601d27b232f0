"""Fingerprints of what a training call is given, equal in every process that has made the same.

Two processes that run the same code do not always get the same bits: the order in which threads add up numbers, and the
instructions of the processor, change the last digits. So there are two fingerprints, of all content and of all but the
floating-point numbers, and of those samples, means, and the least and the greatest.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import hashlib
import math
import os
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.proof.words import describe

_WHOLE_BYTES = 16 << 20  # arrays above are looked at in stretches
_STRETCHES = 64
_STRETCH_BYTES = 64 << 10
_SAMPLES = 64  # of an array
_MOST_SAMPLES = 512  # of an input
_PART = 1 << 10  # numbers of which there is one mean, at least
_MOST_MEANS = 512
_PARTS = 5_000
_DEPTH = 12
_ROWS_OF_TABLE = 100_000
_GRAPH_BYTES = 32 << 20

_PLAIN = (int, str, bytes, bool, type(None), complex, datetime.date, datetime.timedelta, decimal.Decimal, uuid.UUID)


@dataclass(frozen=True)
class Content:
    """The fingerprints of a value; see ``det_native.schema.proof.InputFact`` for what they say."""

    exact: str
    loose: str
    samples: tuple[float, ...]
    means: tuple[float, ...]
    text: str


def content_of(value: Any) -> Content:
    """Take the fingerprints of a value. Nothing of it is changed, iterated or drawn from.

    Of what is of no known kind (an iterator, a handle, a library's object) only the class counts.
    """
    reader = _Reader()
    reader.read(value, 0)
    samples, means = tuple(reader.samples), tuple(reader.means)
    return Content(reader.exact.hexdigest(), reader.loose.hexdigest(), samples, means, describe(value))


class _Reader:
    """Reads one value into the two fingerprints and the samples."""

    def __init__(self) -> None:
        self.exact = hashlib.blake2b(digest_size=16)
        self.loose = hashlib.blake2b(digest_size=16)
        self.samples: list[float] = []
        self.means: list[float] = []
        self._left = _PARTS
        self._room = _MOST_SAMPLES
        self._inside: dict[int, int] = {}

    def read(self, value: Any, depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            return
        if isinstance(value, enum.Enum):
            self._both("enum", type(value).__qualname__, value.name)
        elif type(value) is float:
            self._floats("float", (value,))
        elif isinstance(value, _PLAIN):
            self._both(type(value).__name__, _without_place(value) if isinstance(value, str) else repr(value))
        elif id(value) in self._inside:
            self._both("itself", str(self._inside[id(value)]))
        else:
            self._inside[id(value)] = depth
            try:
                self._read_object(value, depth)
            finally:
                del self._inside[id(value)]

    def _read_object(self, value: Any, depth: int) -> None:
        read = self._numbers_reader(value) or self._container_reader(value) or self._object_reader(value)
        if read is not None:
            read(value, depth)
        else:
            self._kind(value)

    def _numbers_reader(self, value: Any) -> Callable[[Any, int], None] | None:
        """Return what reads arrays, tensors, tables and Datasets, of libraries that are loaded."""
        numpy, torch, pandas, tensorflow = map(sys.modules.get, ("numpy", "torch", "pandas", "tensorflow"))
        if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
            return self._array
        if torch is not None and isinstance(value, torch.Tensor):
            return self._torch_tensor
        if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series | pandas.Index):
            return self._table
        if tensorflow is not None and isinstance(value, tensorflow.data.Dataset):
            return self._dataset
        if tensorflow is not None and isinstance(value, tensorflow.Tensor | tensorflow.Variable):
            return self._array if hasattr(value, "numpy") else None
        return None

    def _container_reader(self, value: Any) -> Callable[[Any, int], None] | None:
        if isinstance(value, Mapping):
            return self._mapping
        if isinstance(value, list | tuple | deque | range):
            return self._sequence
        return self._set if isinstance(value, set | frozenset) else None

    def _object_reader(self, value: Any) -> Callable[[Any, int], None] | None:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.nn.Module):
            return self._module
        if torch is not None and isinstance(value, torch.utils.data.DataLoader):
            return self._loader
        if isinstance(value, types.FunctionType):
            return self._function
        if isinstance(value, types.MethodType):
            return lambda method, depth: self.read(method.__func__, depth + 1)
        return self._attributes if _holds_attributes(value) else None

    def _mapping(self, value: Any, depth: int) -> None:
        self._both("mapping", type(value).__name__, str(len(value)))
        for key, one in sorted(value.items(), key=lambda item: repr(item[0])):
            self.read(key, depth + 1)
            self.read(one, depth + 1)

    def _set(self, value: Any, depth: int) -> None:
        # Which elements come first differs from process to process: of a large set only their number counts.
        known = sorted(content_of(one).exact for one in value) if len(value) <= _PARTS else ()
        self._both("set", str(len(value)), *known)

    def _attributes(self, value: Any, depth: int) -> None:
        self._kind(value)
        for name, one in sorted(vars(value).items()):
            if not name.startswith("_") and _is_content(one):
                self._both("attribute", name)
                self.read(one, depth + 1)

    def _sequence(self, value: Any, depth: int) -> None:
        self._both("sequence", type(value).__name__, str(len(value)))
        if value and all(type(one) is float for one in value):
            self._floats("floats", value)
            return
        if len(value) > _PARTS // 4 and all(type(one) in (int, bool, str, bytes) for one in value):
            self._both("plain", hashlib.blake2b(repr(list(value)).encode(), digest_size=16).hexdigest())
            return
        for one in value:
            self.read(one, depth + 1)

    def _floats(self, kind: str, values: Iterable[float]) -> None:
        values = list(values)
        self._both(kind, str(len(values)))
        self.exact.update(repr(values).encode())
        self._sample(values[:: max(1, len(values) // _SAMPLES)])

    def _array(self, value: Any, depth: int) -> None:
        numpy = sys.modules["numpy"]
        array = numpy.asarray(value)
        self._both("array", str(array.shape), str(array.dtype))
        if array.dtype.hasobject:
            flat = array.reshape(-1)
            for one in flat[:: max(1, flat.size // 500)].tolist():
                self.read(one, depth + 1)
            return
        floating = array.dtype.kind in "fc" or array.dtype.kind == "V"
        for stretch in _stretches(array):
            found = numpy.ascontiguousarray(stretch).reshape(-1).view(numpy.uint8)
            self.exact.update(found)
            if not floating:
                self.loose.update(found)
            elif array.dtype.kind == "f":
                self._summarise(stretch)
        if array.dtype.kind in "fc" and array.size:
            flat = array.reshape(-1) if array.flags.c_contiguous else array.ravel()
            few = flat[:: max(1, flat.size // _SAMPLES)][:_SAMPLES]
            self._sample(
                numpy.abs(few).astype(float).tolist() if array.dtype.kind == "c" else few.astype(float).tolist()
            )

    def _summarise(self, stretch: Any) -> None:
        """Note mean, least and greatest of the parts of a stretch, so that no number of it is left out."""
        numpy = sys.modules["numpy"]
        flat = numpy.ravel(stretch, order="K")
        count = min(max(flat.size // _PART, 1), _STRETCHES, (_MOST_MEANS - len(self.means)) if flat.size else 0)
        if count <= 0:
            return
        starts = numpy.linspace(0, flat.size, count, endpoint=False).astype(numpy.intp)
        sizes = numpy.diff(starts, append=flat.size)
        with numpy.errstate(all="ignore"):
            self.means += (numpy.add.reduceat(flat, starts, dtype=float) / sizes).tolist()
            for reduce in (numpy.minimum.reduceat, numpy.maximum.reduceat):
                self.samples += reduce(flat, starts).astype(float).tolist()

    def _torch_tensor(self, tensor: Any, depth: int) -> None:
        torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
        plain = tensor.layout is torch.strided and not tensor.is_quantized and tensor.device.type != "meta"
        if not plain or numpy is None or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            self._both("tensor", type(tensor).__name__, str(tuple(tensor.shape)), str(tensor.dtype))
            return
        found = tensor.detach()
        if found.dtype in (torch.bfloat16, torch.float16):
            found = found.float()
        if found.numel() * found.element_size() > _WHOLE_BYTES and found.device.type != "cpu":
            found = found.reshape(-1)[:: max(1, found.numel() // 100_000)]  # not all of it across the bus
        self._both("tensor", str(tuple(tensor.shape)), str(tensor.dtype))
        try:
            self._array(found.resolve_conj().resolve_neg().cpu().numpy(), 0)
        except (TypeError, RuntimeError):  # a type that numpy has not
            return

    def _table(self, table: Any, depth: int) -> None:
        pandas = sys.modules["pandas"]
        self._both("table", type(table).__name__, str(table.shape))
        if isinstance(table, pandas.DataFrame):
            self._both(*(f"{name}: {kind}" for name, kind in table.dtypes.items()))
            columns = [table.iloc[:, place] for place in range(min(table.shape[1], 1_000))]
        else:
            columns = [table.to_series() if isinstance(table, pandas.Index) else table]
        for column in columns:
            if column.dtype.kind in "fiub":
                self._array(column.to_numpy(), 0)
                continue
            few = column.iloc[:: max(1, len(column) // _ROWS_OF_TABLE)]
            try:
                self._both(pandas.util.hash_pandas_object(few, index=False).to_numpy().tobytes().hex()[:1_000_000])
            except TypeError:  # cells that hold lists, say
                self._both(str(few.dtype))
        index = table if isinstance(table, pandas.Index) else table.index
        if index.dtype.kind in "iub" and not isinstance(table, pandas.Index):
            self._array(index.to_numpy(), 0)

    def _dataset(self, dataset: Any, depth: int) -> None:
        cardinality = int(dataset.cardinality())
        self._both("dataset", str(dataset.element_spec), str(cardinality))
        tensorflow = sys.modules["tensorflow"]
        graph = _graph_of(dataset, tensorflow)
        if graph is None:
            return
        functions = sorted(graph.library.function, key=lambda one: _operations(one.node_def))
        for nodes in (graph.node, *(one.node_def for one in functions)):
            self._both(_operations(nodes))
            for node in nodes:
                if node.op == "Const":
                    self._constant(node.attr["value"].tensor, tensorflow)

    def _constant(self, tensor: Any, tensorflow: Any) -> None:
        kind = tensorflow.as_dtype(tensor.dtype)
        number = kind.is_integer and not tensor.tensor_shape.dim  # a seed, maybe; a size tells itself otherwise
        if kind == tensorflow.string:
            texts = tensorflow.io.parse_tensor(tensor.SerializeToString(), tensorflow.string)
            self.read([_as_text(one) for one in tensorflow.reshape(texts, [-1]).numpy()], 0)
        elif not number and kind not in (tensorflow.resource, tensorflow.variant):
            self._array(tensorflow.make_ndarray(tensor), 0)

    def _module(self, module: Any, depth: int) -> None:
        for name, one in module.named_modules():
            self._both("module", name, type(one).__qualname__, one.extra_repr())
        for name, tensor in module.state_dict().items():
            self._both("state", name)
            self.read(tensor, depth + 1)

    def _loader(self, loader: Any, depth: int) -> None:
        self._kind(loader)
        self._both(str(loader.batch_size), str(loader.drop_last), type(loader.sampler).__name__)
        self.read(loader.dataset, depth + 1)

    def _function(self, function: types.FunctionType, depth: int) -> None:
        self._both("function", function.__qualname__)
        self._code(function.__code__)
        for cell in function.__closure__ or ():
            try:
                self.read(cell.cell_contents, depth + 1)
            except ValueError:  # nothing is in it yet
                continue
        self.read(function.__defaults__, depth + 1)
        self.read(function.__kwdefaults__, depth + 1)

    def _code(self, code: types.CodeType) -> None:
        self._both("code", code.co_code.hex(), *code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant)
            elif not isinstance(constant, str):
                self._both(repr(constant) if not isinstance(constant, frozenset) else repr(sorted(map(repr, constant))))

    def _kind(self, value: Any) -> None:
        kind = value if isinstance(value, type) else type(value)
        self._both("kind", kind.__qualname__)

    def _both(self, *texts: str) -> None:
        found = "\0".join(texts).encode("utf-8", "surrogatepass") + b"\1"
        self.exact.update(found)
        self.loose.update(found)

    def _sample(self, values: Iterable[float]) -> None:
        few = list(map(float, values))[: self._room]
        self._room -= len(few)
        self.samples += few


def _stretches(array: Any) -> list[Any]:
    """Return all of a small array, and of a large one stretches from its whole length."""
    if array.nbytes <= _WHOLE_BYTES:
        return [array]
    if not array.flags.c_contiguous:
        step = max(1, array.shape[0] * _STRETCH_BYTES * _STRETCHES // array.nbytes)
        return [array[:: max(1, array.shape[0] // step)]] if array.ndim else [array]
    flat = array.reshape(-1)
    length = max(1, _STRETCH_BYTES // array.itemsize)
    starts = [int(place * (flat.size - length) / (_STRETCHES - 1)) for place in range(_STRETCHES)]
    return [flat[start : start + length] for start in starts]


def _holds_attributes(value: Any) -> bool:
    """Whether a value is an object that keeps plain attributes: of the user's classes, or a dataset of a library."""
    kind = type(value)
    if isinstance(value, type | types.ModuleType | types.GeneratorType) or hasattr(value, "__next__"):
        return False
    if kind.__module__.partition(".")[0] in ("builtins", "_thread", "threading", "weakref", "logging", "io", "_io"):
        return False
    if not isinstance(getattr(value, "__dict__", None), dict):
        return False
    return kind.__module__ == "__main__" or _is_dataset(value) or not _is_installed(kind)


def _is_content(value: Any) -> bool:
    """Whether an attribute is data; counters and caches, which change by mere use, are not."""
    if isinstance(value, list | tuple | range):
        return True
    return (hasattr(value, "shape") and hasattr(value, "dtype")) or hasattr(value, "iloc") or _holds_attributes(value)


def _is_dataset(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.utils.data.Dataset)


def _is_installed(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return not file or "site-packages" in file or file.startswith((sys.prefix, sys.base_prefix))


def _without_place(text: str) -> str:
    """Return a text without folders: absolute paths are others on a worker."""
    return os.path.basename(text) if os.path.isabs(text) else text


def _as_text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _graph_of(dataset: Any, tensorflow: Any) -> Any:
    """Return the operations that make a Dataset, with the data they begin with; None where that would be too much."""
    bytes_of_element = 0
    for spec in tensorflow.nest.flatten(dataset.element_spec):
        shape, kind = getattr(spec, "shape", None), getattr(spec, "dtype", None)
        if shape is None or shape.rank is None or kind is None:
            return None
        bytes_of_element += math.prod(size or 1 for size in shape.as_list()) * max(getattr(kind, "size", 0) or 8, 1)
    if bytes_of_element * max(int(dataset.cardinality()), 1) > _GRAPH_BYTES:
        return None
    try:
        # By this the graph's own constants are written out: what `from_tensor_slices` was given.
        written = tensorflow.raw_ops.DatasetToGraphV2(
            input_dataset=tensorflow.data.experimental.to_variant(dataset), external_state_policy=1
        )
        graph = tensorflow.compat.v1.GraphDef.FromString(written.numpy())
    except Exception:  # noqa: BLE001 (a dataset that cannot be written has nothing to compare)
        return None
    return graph


def _operations(nodes: Iterable[Any]) -> str:
    """Return the operations by name; what they are called, and the seeds among their numbers, is made up anew."""
    return " ".join(f"{node.op}({len(node.input)})" for node in nodes)
