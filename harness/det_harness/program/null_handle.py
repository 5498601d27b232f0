"""What a training call returns that is not the recorded one: something that accepts whatever is done with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class NullHandle:
    """Stands for the result of a training call that the program makes besides the one being run.

    Attributes, calls, items, iteration (one element), arithmetic and formatting give the handle itself again;
    comparisons are False, so that loops which wait for an end do not wait for ever.

    Parameters
    ----------
    place : str
        Where the call was made, for its text form.
    """

    def __init__(self, place: str) -> None:
        object.__setattr__(self, "_place", place)

    def __repr__(self) -> str:
        return f"<the training call at {self._place} is not the one that this run is for: nothing was trained>"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        return None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        return None

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        return iter((self,))

    def __contains__(self, item: Any) -> bool:
        return False

    def __bool__(self) -> bool:
        return True

    def __float__(self) -> float:
        return float("nan")

    def __int__(self) -> int:
        return 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.zeros(0, dtype=dtype)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *details: Any) -> None:
        return None

    def _itself(self, *operands: Any) -> Any:
        return self

    def _false(self, other: Any) -> bool:
        return False

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _itself
    __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __round__ = _itself
    __lt__ = __le__ = __gt__ = __ge__ = _false


# A message that says of which type a value is, a TypeError's say, then says what is the matter with it.
NullHandle.__name__ = "the result of another training call, which does not train in this run"
NullHandle.__qualname__ = NullHandle.__name__
