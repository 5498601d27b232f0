"""Arrays, tensors and tables as parts of a fingerprint."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from det_native.proof.fingerprint import Fingerprint

#: Bytes of a tensor on a device; of larger ones not all goes across the bus.
BUS_BYTES = 256 << 20
_WHOLE_BYTES = 1 << 30  # of an input; arrays beyond are looked at in stretches
_STRETCHES = 256
_STRETCH_BYTES = 64 << 10


class Arrays:
    """Reads arrays, tensors and tables, of libraries that are loaded.

    Parameters
    ----------
    into : Fingerprint
    objects : callable
        Reads the list of the elements of an array of objects, with the depth at which it stands.
    """

    def __init__(self, into: Fingerprint, objects: Callable[[list[Any], int], None]) -> None:
        self._into = into
        self._objects = objects
        self._whole = _WHOLE_BYTES

    def reader(self, value: Any) -> Callable[[Any, int], None] | None:
        """Return what reads a value; None if it is none of these."""
        numpy, torch, pandas, tensorflow = map(sys.modules.get, ("numpy", "torch", "pandas", "tensorflow"))
        if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
            return self.array
        if torch is not None and isinstance(value, torch.Tensor):
            return self._torch_tensor
        if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series | pandas.Index):
            return self._table
        if tensorflow is not None and isinstance(value, tensorflow.Tensor | tensorflow.Variable):
            return self.array if hasattr(value, "numpy") else None
        return None

    def array(self, value: Any, depth: int) -> None:
        """Read an array, or what numpy makes one of."""
        numpy = sys.modules["numpy"]
        array = numpy.asarray(value)
        self._into.both("array", str(array.shape), str(array.dtype))
        if array.dtype.hasobject:
            self._objects(array.reshape(-1).tolist(), depth)
            return
        if array.dtype.names is not None:
            for name in array.dtype.names:
                self.array(array[name], depth)
            return
        stretches = [array]
        if array.nbytes > self._whole:
            stretches = _stretches(array)
            self._into.partly = f"{_STRETCHES} stretches of its large arrays"
        else:
            self._whole -= array.nbytes
        for stretch in stretches:
            found = numpy.ascontiguousarray(stretch)
            self._into.bytes(found, self._into.exact)
            if array.dtype.kind in "fc":
                self._into.numbers(found)
            elif array.dtype.kind != "V":
                self._into.bytes(found, self._into.loose)
            else:  # of a library: bfloat16 and the like
                try:
                    self._into.numbers(found.astype(numpy.float32), 2)
                except (TypeError, ValueError):
                    self._into.bytes(found, self._into.loose)

    def _torch_tensor(self, tensor: Any, depth: int) -> None:
        torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
        plain = tensor.layout is torch.strided and not tensor.is_quantized and tensor.device.type != "meta"
        if not plain or numpy is None or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            self._into.both("tensor", type(tensor).__name__, str(tuple(tensor.shape)), str(tensor.dtype))
            return
        found = tensor.detach()
        if found.numel() * found.element_size() > BUS_BYTES and found.device.type != "cpu":
            found = found.reshape(-1)[:: max(1, found.numel() // 100_000)]  # not all of it across the bus
            self._into.partly = "one in many of the numbers of its large tensors"
        self._into.both("tensor", str(tuple(tensor.shape)), str(tensor.dtype))
        found = found.resolve_conj().resolve_neg().cpu()
        if found.dtype is torch.bfloat16:
            whole = found.contiguous().view(torch.int16).numpy()
            self._into.bytes(whole, self._into.exact)
            self._into.numbers(found.float().numpy(), 2)
            return
        try:
            array = found.numpy()
        except (TypeError, RuntimeError):  # a type that numpy has not
            return
        self.array(array, 0)

    def _table(self, table: Any, depth: int) -> None:
        pandas = sys.modules["pandas"]
        self._into.both("table", type(table).__name__, str(table.shape))
        if isinstance(table, pandas.DataFrame):
            self._into.both(*(f"{name}: {kind}" for name, kind in table.dtypes.items()))
            columns = [table.iloc[:, place] for place in range(min(table.shape[1], 1_000))]
        else:
            columns = [table.to_series() if isinstance(table, pandas.Index) else table]
        for column in columns:
            if column.dtype.kind in "fiub":
                self.array(column.to_numpy(), 0)
                continue
            try:
                hashes = pandas.util.hash_pandas_object(column, index=False).to_numpy()
            except TypeError:  # cells that hold lists, say
                self._objects(column.tolist(), 2)
            else:
                self._into.bytes(hashes, self._into.exact)
                self._into.bytes(hashes, self._into.loose)
        index = table if isinstance(table, pandas.Index) else table.index
        if index.dtype.kind in "iub" and not isinstance(table, pandas.Index):
            self.array(index.to_numpy(), 0)


def _stretches(array: Any) -> list[Any]:
    """Return stretches from the whole length of an array."""
    if not array.flags.c_contiguous:
        step = max(1, array.shape[0] * _STRETCH_BYTES * _STRETCHES // array.nbytes)
        return [array[:: max(1, array.shape[0] // step)]] if array.ndim else [array]
    flat = array.reshape(-1)
    length = max(1, _STRETCH_BYTES // array.itemsize)
    starts = [int(place * (flat.size - length) / (_STRETCHES - 1)) for place in range(_STRETCHES)]
    return [flat[start : start + length] for start in starts]
