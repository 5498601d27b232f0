"""scipy: sparse matrices and arrays."""

from __future__ import annotations

from typing import Any

from det_native.inspection.adapter import Content, Data, Library


class _Sparse(Data):
    def content(self, value: Any, reader: Content) -> bool:
        """Tell format, shape, and where which numbers are; whether they were looked up before does not count."""
        reader.say("sparse", value.format, str(value.shape))
        entries = value.tocoo(copy=False)
        for places in getattr(entries, "coords", None) or (entries.row, entries.col):
            reader.numbers(places)
        reader.numbers(entries.data)
        return True


# Its classes were derived from `spmatrix` before there were sparse arrays.
LIBRARY = Library({"scipy.sparse._spbase": _Sparse(), "scipy.sparse.spmatrix": _Sparse()})
