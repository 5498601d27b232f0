"""Fingerprints of what a training call is given, equal in every process that has made the same.

Two processes that run the same code do not always get the same bits: the order in which threads add up numbers, and the
instructions of the processor, change the last digits. So there are two fingerprints, of all content and of all but the
floating-point numbers, and of those what `blocks.py` says of each block.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import enum
import hashlib
import math
import os
import re
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.proof.attributes import changed_names, is_own_module, settings_in
from det_native.proof.blocks import Blocks
from det_native.proof.words import describe

_WHOLE_BYTES = 1 << 30  # of an input; arrays beyond are looked at in stretches
_STRETCHES = 256
_STRETCH_BYTES = 64 << 10
_BUS_BYTES = 256 << 20  # of a tensor on a device
_PARTS = 50_000
_PARTS_OF_SET = 5_000
_FEW = 16
_DIGIT = re.compile(r"\d")
_DIGITS = 5  # in a text: a moment, a process, a part of a random name
_YEAR_2001, _YEAR_2096 = 1e9, 4e9  # in seconds since 1970
_JOINED = 8 << 10  # bytes of an array, on average
_WHOLE = {int, bool, str, bytes, type(None)}
_DEPTH = 12
_GRAPH_BYTES = 32 << 20

_PLAIN = (int, str, bytes, bool, type(None), complex, datetime.date, datetime.timedelta, decimal.Decimal, uuid.UUID)


@dataclass(frozen=True)
class Content:
    """The fingerprints of a value; see ``det_native.schema.proof.InputFact`` for what they say."""

    exact: str
    code: str
    loose: str
    blocks: str
    text: str
    partly: str = ""


def content_of(value: Any, *, of_process: bool = False) -> Content:
    """Take the fingerprints of a value. Nothing of it is changed, iterated or drawn from.

    Of what is of no known kind (an iterator, a handle, a library's object) only the class counts.
    """
    reader = _Reader(settings=of_process)
    reader.read(value, 0)
    exact, loose = reader.exact.hexdigest()[:32], reader.loose.hexdigest()
    code = f"{sys.version_info[0]}.{sys.version_info[1]}:{reader.code.hexdigest()}" if reader.has_code else ""
    return Content(exact, code, loose, reader.blocks.written(), describe(value), reader.partly)


class _Reader:
    """Reads one value into the two fingerprints and the blocks."""

    def __init__(self, *, settings: bool = False) -> None:
        self.exact = hashlib.sha256()  # processors have instructions for it
        self.loose = hashlib.blake2b(digest_size=16)
        self.blocks = Blocks()
        self.code = hashlib.blake2b(digest_size=16)
        self.has_code = False
        self.partly = ""
        self._settings = settings
        self._left = _PARTS
        self._whole = _WHOLE_BYTES
        self._inside: dict[int, int] = {}

    def read(self, value: Any, depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            self.partly = f"its first {_PARTS:,} parts" if self._left < 0 else f"its first {_DEPTH} levels"
            return
        if isinstance(value, enum.Enum):
            self._both("enum", type(value).__qualname__, value.name)
        elif self._settings and _is_of_process(value):
            self._both("of this process", type(value).__name__)
        elif type(value) is float:
            self._floats("float", [value])
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
        if isinstance(value, types.SimpleNamespace | argparse.Namespace):
            return lambda namespace, depth: self._mapping(vars(namespace), depth)
        return self._attributes if _holds_attributes(value) else None

    def _mapping(self, value: Any, depth: int) -> None:
        self._both("mapping", type(value).__name__, str(len(value)))
        for key, one in sorted(value.items(), key=lambda item: repr(item[0])):
            self.read(key, depth + 1)
            self.read(one, depth + 1)

    def _set(self, value: Any, depth: int) -> None:
        # Which elements come first differs from process to process: of a large set only their number counts.
        if set(map(type, value)) <= _WHOLE:
            known = [hashlib.sha256(repr(sorted(map(repr, value))).encode("utf-8", "surrogatepass")).hexdigest()]
        elif len(value) <= _PARTS_OF_SET:
            known = sorted(content_of(one).exact for one in value)
        else:
            known = []
            self.partly = "the number and the kind of the elements"
        self._both("set", str(len(value)), *known)

    def _attributes(self, value: Any, depth: int) -> None:
        self._kind(value)
        outer, self._settings = self._settings, True
        for name, one in settings_in(value):
            if _is_content(one):
                self._both("attribute", name)
                self.read(one, depth + 1)
        self._settings = outer

    def _sequence(self, value: Any, depth: int) -> None:
        self._both("sequence", type(value).__name__, str(len(value)))
        if value and all(type(one) is float for one in value):
            self._floats("floats", list(value))
            return
        if isinstance(value, range):
            self._both(repr(value))
            return
        if len(value) > _FEW and _is_plain(value):
            self._both("plain", hashlib.blake2b(_plain_text(value), digest_size=16).hexdigest())
            return
        if len(value) > _FEW and (array := _joined(value)) is not None:
            self._both("arrays", hashlib.sha256(repr([one.shape for one in value]).encode()).hexdigest())
            self._array(array, depth)
            return
        for one in value:
            self.read(one, depth + 1)

    def _floats(self, kind: str, values: list[float]) -> None:
        self._both(kind, str(len(values)))
        self.exact.update(repr(values).encode())
        if len(values) > 1:
            import numpy

            self._numbers(numpy.array(values))
        elif math.isfinite(values[0]):
            self.blocks.add_one(values[0])
        else:
            self.loose.update(repr(values).encode())

    def _array(self, value: Any, depth: int) -> None:
        numpy = sys.modules["numpy"]
        array = numpy.asarray(value)
        self._both("array", str(array.shape), str(array.dtype))
        if array.dtype.hasobject:
            self._sequence(array.reshape(-1).tolist(), depth)
            return
        if array.dtype.names is not None:
            for name in array.dtype.names:
                self._array(array[name], depth)
            return
        stretches = [array]
        if array.nbytes > self._whole:
            stretches = _stretches(array)
            self.partly = f"{_STRETCHES} stretches of its large arrays"
        else:
            self._whole -= array.nbytes
        for stretch in stretches:
            found = numpy.ascontiguousarray(stretch)
            self._bytes(found, self.exact)
            if array.dtype.kind in "fc":
                self._numbers(found)
            elif array.dtype.kind != "V":
                self._bytes(found, self.loose)
            else:  # of a library: bfloat16 and the like
                try:
                    self._numbers(found.astype(numpy.float32), 2)
                except (TypeError, ValueError):
                    self._bytes(found, self.loose)

    def _bytes(self, array: Any, into: Any) -> None:
        into.update(array.reshape(-1).view(sys.modules["numpy"].uint8))

    def _numbers(self, array: Any, bytes_of_each: int = 0) -> None:
        """Note floating-point numbers block by block; which of them are not finite is the same or not."""
        import numpy

        if array.dtype.kind == "c":
            array = array.reshape(-1).view(array.real.dtype)
        if array.size and not numpy.isfinite(array.sum(dtype=numpy.float64)):
            finite = numpy.isfinite(array)
            places = numpy.sign(array[~finite]).astype(numpy.float32)
            self.loose.update(numpy.packbits(finite).tobytes() + numpy.nan_to_num(places, nan=2.0).tobytes())
            array = numpy.where(finite, array, array.dtype.type(0))
        self.blocks.add(array, bytes_of_each or array.dtype.itemsize)

    def _torch_tensor(self, tensor: Any, depth: int) -> None:
        torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
        plain = tensor.layout is torch.strided and not tensor.is_quantized and tensor.device.type != "meta"
        if not plain or numpy is None or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            self._both("tensor", type(tensor).__name__, str(tuple(tensor.shape)), str(tensor.dtype))
            return
        found = tensor.detach()
        if found.numel() * found.element_size() > _BUS_BYTES and found.device.type != "cpu":
            found = found.reshape(-1)[:: max(1, found.numel() // 100_000)]  # not all of it across the bus
            self.partly = "one in many of the numbers of its large tensors"
        self._both("tensor", str(tuple(tensor.shape)), str(tensor.dtype))
        found = found.resolve_conj().resolve_neg().cpu()
        if found.dtype is torch.bfloat16:
            whole = found.contiguous().view(torch.int16).numpy()
            self._bytes(whole, self.exact)
            self._numbers(found.float().numpy(), 2)
            return
        try:
            array = found.numpy()
        except (TypeError, RuntimeError):  # a type that numpy has not
            return
        self._array(array, 0)

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
            try:
                hashes = pandas.util.hash_pandas_object(column, index=False).to_numpy()
            except TypeError:  # cells that hold lists, say
                self._sequence(column.tolist(), 2)
            else:
                self._bytes(hashes, self.exact)
                self._bytes(hashes, self.loose)
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
        # Whole numbers beside the functions may be seeds that were made up, or numbers of threads.
        for place, nodes in enumerate((graph.node, *(one.node_def for one in functions))):
            self._both(_operations(nodes))
            for node in nodes:
                if node.op == "Const":
                    self._constant(node.attr["value"].tensor, tensorflow, whole_numbers=place > 0)

    def _constant(self, tensor: Any, tensorflow: Any, *, whole_numbers: bool) -> None:
        kind = tensorflow.as_dtype(tensor.dtype)
        number = kind.is_integer and not tensor.tensor_shape.dim and not whole_numbers
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
        self.has_code = True
        self._code(function.__code__)
        changed = changed_names(function.__code__)
        outer, self._settings = self._settings, True
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            try:
                if name not in changed:
                    self.read(cell.cell_contents, depth + 1)
            except ValueError:  # nothing is in it yet
                continue
        self._settings = outer
        self.read(function.__defaults__, depth + 1)
        self.read(function.__kwdefaults__, depth + 1)

    def _code(self, code: types.CodeType) -> None:
        self._of_code("code", code.co_code.hex(), *code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant)
            elif not isinstance(constant, str):
                self._of_code(
                    repr(constant) if not isinstance(constant, frozenset) else repr(sorted(map(repr, constant)))
                )
            elif constant != code.co_consts[0] and not _is_of_process(constant):  # the first may be a description
                self._of_code(constant)

    def _of_code(self, *texts: str) -> None:
        self.code.update("\0".join(texts).encode("utf-8", "surrogatepass") + b"\1")

    def _kind(self, value: Any) -> None:
        kind = value if isinstance(value, type) else type(value)
        self._both("kind", kind.__qualname__)

    def _both(self, *texts: str) -> None:
        found = "\0".join(texts).encode("utf-8", "surrogatepass") + b"\1"
        self.exact.update(found)
        self.loose.update(found)


def _stretches(array: Any) -> list[Any]:
    """Return stretches from the whole length of an array."""
    if not array.flags.c_contiguous:
        step = max(1, array.shape[0] * _STRETCH_BYTES * _STRETCHES // array.nbytes)
        return [array[:: max(1, array.shape[0] // step)]] if array.ndim else [array]
    flat = array.reshape(-1)
    length = max(1, _STRETCH_BYTES // array.itemsize)
    starts = [int(place * (flat.size - length) / (_STRETCHES - 1)) for place in range(_STRETCHES)]
    return [flat[start : start + length] for start in starts]


def _joined(value: Any) -> Any:
    """Return many small arrays of one type as one; None if that is not what a sequence holds."""
    numpy = sys.modules.get("numpy")
    if numpy is None or set(map(type, value)) != {numpy.ndarray} or len({one.dtype for one in value}) > 1:
        return None
    dtype = value[0].dtype
    if (
        dtype.hasobject
        or dtype.names is not None
        or sum(one.nbytes for one in value) > min(_JOINED * len(value), _BUS_BYTES)
    ):
        return None
    return numpy.concatenate([one.reshape(-1) for one in value])


def _is_plain(value: Any) -> bool:
    """Whether a list holds nothing but whole numbers and texts, or lists of such."""
    kinds = set(map(type, value))
    return kinds <= _WHOLE or (kinds <= {list, tuple} and all(set(map(type, one)) <= _WHOLE for one in value))


def _plain_text(value: Any) -> bytes:
    def moved(row: Any) -> list[Any]:
        return [_without_place(one) if type(one) is str else one for one in row]

    nested = isinstance(value[0], list | tuple)
    if not nested:
        return repr(moved(value)).encode("utf-8", "surrogatepass")
    rows = [moved(one) if any(type(each) is str for each in one) else list(one) for one in value]
    return repr((rows, sorted({type(one).__name__ for one in value}))).encode("utf-8", "surrogatepass")


def _holds_attributes(value: Any) -> bool:
    """Whether a value is an object that keeps plain attributes: of the user's classes, or a dataset of a library."""
    kind = type(value)
    if isinstance(value, type | types.ModuleType | types.GeneratorType) or hasattr(value, "__next__"):
        return False
    if not isinstance(getattr(value, "__dict__", None), dict):
        return False
    return is_own_module(kind.__module__) or _is_dataset(value)


def _is_content(value: Any) -> bool:
    """Whether an attribute is data or a setting; handles and objects of libraries are not."""
    if isinstance(value, (*_PLAIN, float, list, tuple, range, set, frozenset, deque, Mapping)):
        return True
    if isinstance(value, types.FunctionType | types.MethodType | types.SimpleNamespace):
        return True
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        return True
    return (hasattr(value, "shape") and hasattr(value, "dtype")) or hasattr(value, "iloc") or _holds_attributes(value)


def _is_dataset(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.utils.data.Dataset)


def _is_of_process(value: Any) -> bool:
    """Whether a setting tells a place, a moment or a number of this process, which another one has its own of."""
    if isinstance(value, str):
        return os.sep in value or len(_DIGIT.findall(value)) >= _DIGITS
    if isinstance(value, datetime.date | datetime.timedelta | uuid.UUID):
        return True
    return type(value) in (int, float) and _YEAR_2001 < value < _YEAR_2096


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
