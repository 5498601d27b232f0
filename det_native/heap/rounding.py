"""What is known of many floating-point numbers, block by block, so that last digits are told from other data.

Of each block of up to some thousand numbers: how many, the least, the greatest, the sum, the sum of squares, and a
weighted sum, which another order of the same numbers changes. All numbers are in some block. Two blocks agree if they
differ in no more than a small error of each number would make, relative to how far the numbers of that block spread.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import math
import zlib
from collections.abc import Sequence
from typing import Any

_WHOLE_BYTES = 1 << 30  # of an array; of a larger one the blocks are those of stretches
_STRETCHES = 256
_STRETCH_BYTES = 64 << 10

_MOST_BLOCKS = 1_024  # of an input
_SMALLEST = 512  # numbers of a block of a large array
_FEWEST_ROWS = 32
_MOST_COLUMNS = 256  # of a table of numbers of which each column is seen by itself
_PER_PASS = 1 << 16

# How far each number may be off: of the spread of its block, and of the size of all numbers beside it, by their type.
_OF_SPREAD = 2e-3
_OF_SIZE = 1e-6
_OF_SIZE_BY_BYTES = {4: 1e-5, 2: 1e-2}
# What may be off in all numbers alike, so that it does not cancel out in a sum: of their spread, and of the size above.
_ALIKE_OF_SPREAD = 1e-5
_ALIKE_OF_SIZE = 0.1
_NOTHING = 1e-12

_COUNT, _LEAST, _GREATEST, _SUM, _SQUARES, _WEIGHTED, _FLOOR = range(7)


class Blocks:
    """Collects the blocks of one input, and writes them down as a text of bounded size."""

    def __init__(self) -> None:
        self._series: list[Any] = []

    def add(self, numbers: Any, bytes_of_each: int) -> None:
        """Take an array of finite numbers; where it is a table with a few columns, each of these by itself."""
        import numpy

        if not numbers.size:
            return
        with numpy.errstate(all="ignore"):
            columns = numbers.shape[1] if numbers.ndim == 2 and 1 < numbers.shape[1] <= _MOST_COLUMNS else 0
            table = _of_columns(numbers, columns) if columns else _of_flat(numbers)[None]
            error = _OF_SIZE_BY_BYTES.get(bytes_of_each, _OF_SIZE)
            size = numpy.sqrt(table[:, :, _SQUARES].sum(axis=1) / table[:, :, _COUNT].sum(axis=1))
            table[:, :, _FLOOR] = error * size[:, None]
        self._series.append(table)

    def add_one(self, number: float) -> None:
        """Take a number that stands alone."""
        import numpy

        squares = abs(number) ** 2 if abs(number) < 1e150 else float("inf")
        row = [1.0, number, number, number, squares, number, _OF_SIZE * abs(number)]
        self._series.append(numpy.array(row).reshape(1, 1, 7))

    def written(self) -> str:
        """Return all blocks as a text; of too many, neighbours are put together."""
        import numpy

        if not self._series:
            return ""
        series = self._series
        with numpy.errstate(all="ignore"):
            while _blocks_in(series) > _MOST_BLOCKS and any(one.shape[1] > 1 for one in series):
                series = [_paired(one) for one in series]
            table = numpy.concatenate([one.reshape(-1, 7) for one in series])[None]
            while table.shape[1] > _MOST_BLOCKS:
                table = _paired(table)
        return base64.b64encode(zlib.compress(table.astype("<f8").tobytes(), 1)).decode()


def _blocks_in(series: list[Any]) -> int:
    return sum(len(one) * one.shape[1] for one in series)


def agree(some: str, others: str) -> bool:
    """Whether each block of the one is that of the other but for last digits."""
    import numpy

    one, other = _read(some), _read(others)
    if one.shape != other.shape or not len(one) or (one[:, _COUNT] != other[:, _COUNT]).any():
        return False
    with numpy.errstate(all="ignore"):
        count = one[:, _COUNT]
        size = numpy.sqrt(numpy.minimum(one[:, _SQUARES], other[:, _SQUARES]) / count)
        floor = numpy.minimum(one[:, _FLOOR], other[:, _FLOOR])
        nothing = numpy.where(floor < numpy.maximum(one[:, _FLOOR], other[:, _FLOOR]) / 2, _NOTHING, 0.0)
        spread = numpy.minimum(_spread(one), _spread(other))
        each = _OF_SPREAD * spread + floor + nothing
        alike = _ALIKE_OF_SPREAD * spread + _ALIKE_OF_SIZE * (floor + nothing)
        of_sum = 4 * numpy.sqrt(count) * each + count * alike
        of_squares = 2 * (size + each) * of_sum
        margins = {_LEAST: 3 * each, _GREATEST: 3 * each, _SUM: of_sum, _WEIGHTED: of_sum, _SQUARES: of_squares}
        return all(_near(one[:, what], other[:, what], margin) for what, margin in margins.items())


def _spread(table: Any) -> Any:
    import numpy

    count = table[:, _COUNT]
    return numpy.sqrt(numpy.maximum(table[:, _SQUARES] / count - (table[:, _SUM] / count) ** 2, 0))


def _near(some: Any, others: Any, margin: Any) -> bool:
    import numpy

    return bool(((some == others) | (numpy.isfinite(margin) & (numpy.abs(some - others) <= margin))).all())


def _read(text: str) -> Any:
    import numpy

    return numpy.frombuffer(zlib.decompress(base64.b64decode(text)) if text else b"", "<f8").reshape(-1, 7)


def _of_flat(numbers: Any) -> Any:
    """Return the blocks of all numbers, one after the other."""
    import numpy

    flat = numbers.reshape(-1)
    length = max(_SMALLEST, -(-flat.size // _MOST_BLOCKS))
    weights = _weights(min(length, flat.size))
    full = flat.size // length * length
    step = max(1, _PER_PASS // length) * length
    passes = [flat[start : min(start + step, full)] for start in range(0, full, step)]
    found = [_of_rows(one.reshape(-1, length), weights) for one in passes]
    if full < flat.size:
        found.append(_of_rows(flat[full:].reshape(1, -1), weights))
    return numpy.concatenate(found)


def _of_columns(numbers: Any, columns: int) -> Any:
    """Return the blocks of each column."""
    import numpy

    rows = len(numbers)
    blocks = max(1, min(rows // _FEWEST_ROWS, _MOST_BLOCKS // columns))
    length = -(-rows // blocks)
    weights = _weights(min(length, rows))
    found = [_of_rows(numbers[start : start + length].T, weights) for start in range(0, rows, length)]
    return numpy.stack(found, axis=1)


def _of_rows(rows: Any, weights: Any) -> Any:
    """Return one block for each row."""
    import numpy

    rows = rows.astype(numpy.float64)
    table = numpy.empty((len(rows), 7))
    table[:, _COUNT] = rows.shape[1]
    table[:, _LEAST], table[:, _GREATEST] = rows.min(axis=1), rows.max(axis=1)
    table[:, _SUM] = rows.sum(axis=1)
    table[:, _SQUARES] = numpy.einsum("ij,ij->i", rows, rows)
    table[:, _WEIGHTED] = rows @ weights[: rows.shape[1]]
    return table


def _paired(series: Any) -> Any:
    """Return each of the series with each two neighbours put together."""
    import numpy

    if series.shape[1] == 1:
        return series
    paired = series[:, 0::2].copy()
    second = series[:, 1::2]
    first = paired[:, : second.shape[1]]
    first[..., _LEAST] = numpy.minimum(first[..., _LEAST], second[..., _LEAST])
    first[..., _GREATEST] = numpy.maximum(first[..., _GREATEST], second[..., _GREATEST])
    first[..., _FLOOR] = numpy.maximum(first[..., _FLOOR], second[..., _FLOOR])
    for what in (_COUNT, _SUM, _SQUARES):
        first[..., what] += second[..., what]
    first[..., _WEIGHTED] += 0.618 * second[..., _WEIGHTED]
    return paired


@functools.lru_cache(maxsize=8)
def _weights(count: int) -> Any:
    """Return numbers between -1 and 1 without a pattern, the same in every process."""
    import numpy

    with numpy.errstate(over="ignore"):
        mixed = numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> numpy.uint64(shift))) * numpy.uint64(factor)
    return (mixed ^ (mixed >> numpy.uint64(31))) / numpy.float64(2**63) - 1.0


class Fingerprint:
    """Takes up the parts of one value.

    Attributes
    ----------
    exact, loose : hash
        Of all content, and of all but the floating-point numbers.
    blocks : Blocks
        What is known of these.
    """

    def __init__(self) -> None:
        self.exact, self.loose = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
        self.blocks = Blocks()

    def both(self, text: str) -> None:
        """Take a text, into both fingerprints."""
        content = text.encode("utf-8", "surrogatepass") + b"\1"
        self.exact.update(content)
        self.loose.update(content)

    def floats(self, values: Sequence[float]) -> None:
        """Take floating-point numbers of Python."""
        self.both(f"floats {len(values)}")
        self.exact.update(repr(values).encode())
        if len(values) > 1:
            import numpy

            self.numbers(numpy.array(values))
        elif all(map(math.isfinite, values)):
            self.blocks.add_one(*values)
        else:
            self.loose.update(repr(values).encode())

    def numbers(self, array: Any) -> None:
        """Take floating-point numbers, of which only the blocks count; of very many, stretches."""
        import numpy

        size = array.dtype.itemsize
        if array.dtype.kind == "V":  # of a library: bfloat16 and the like
            array, size = array.astype(numpy.float32), 2
        self.both(f"{array.dtype} {array.shape}")
        for part in [array] if array.nbytes <= _WHOLE_BYTES else _stretches(array):
            self._add(numpy.ascontiguousarray(part), size)

    def _add(self, array: Any, size: int) -> None:
        import numpy

        if array.dtype.kind == "c":
            array = array.reshape(-1).view(array.real.dtype)
        with numpy.errstate(all="ignore"):  # infinities of both signs
            total = array.sum(dtype=numpy.float64)
        if array.size and not numpy.isfinite(total):
            # Which of them are not finite is the same or not.
            finite = numpy.isfinite(array)
            places = numpy.sign(array[~finite]).astype(numpy.float32)
            self.loose.update(numpy.packbits(finite).tobytes() + numpy.nan_to_num(places, nan=2.0).tobytes())
            array = numpy.where(finite, array, array.dtype.type(0))
        self.blocks.add(array, size)


def _stretches(array: Any) -> list[Any]:
    """Return stretches from the whole length of an array."""
    if not array.flags.c_contiguous:
        step = max(1, array.shape[0] * _STRETCH_BYTES * _STRETCHES // array.nbytes)
        return [array[:: max(1, array.shape[0] // step)]] if array.ndim else [array]
    flat = array.reshape(-1)
    length = max(1, _STRETCH_BYTES // array.itemsize)
    starts = [int(place * (flat.size - length) / (_STRETCHES - 1)) for place in range(_STRETCHES)]
    return [flat[start : start + length] for start in starts]
