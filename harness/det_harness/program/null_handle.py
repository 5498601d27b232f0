"""What a training call returns that is not the recorded one: something that accepts whatever is done with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from det_harness.program.made_up import MadeUpValues

#: By which a message shows that such a value has caused it.
NOT_TRAINED = "that this run is for: nothing was trained"


class NullHandle:
    """Stands for the result of a training call that the program makes besides the one being run.

    Attributes, calls, items, iteration (one element, of a pair two) and arithmetic give another one of its kind;
    comparisons are False, so that loops which wait for an end do not wait for ever. What is a real value then, a truth,
    a number or a text, is noted as made up.

    Parameters
    ----------
    place : str
        Where the call was made, for its text form.
    made_up : MadeUpValues, optional
        Is told of each real value that is made of it.
    origin : NullHandle, optional
        What the call returned, if this is something of it.
    parts : int
        Into how many values it is unpacked.
    """

    def __init__(
        self, place: str, made_up: MadeUpValues | None = None, origin: NullHandle | None = None, parts: int = 1
    ) -> None:
        object.__setattr__(self, "_place", place)
        object.__setattr__(self, "_made_up", made_up)
        object.__setattr__(self, "_origin", self if origin is None else origin)
        object.__setattr__(self, "_parts", parts)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._tell("the copy of {} is made up", look=True)
        return super().__reduce_ex__(protocol)

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance() asks for it
        self._tell("the type of {} is not that of the trained one", look=True)
        return type(self)

    def __repr__(self) -> str:
        self._tell("the text of {} is made up", look=True, shown=True)
        return _text_of(self)

    def __format__(self, spec: str) -> str:
        self._tell("the text of {} is made up", look=True, shown=True)
        return _text_of(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _part_of(self)

    def __setattr__(self, name: str, value: Any) -> None:
        return None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return _part_of(self)

    def __getitem__(self, key: Any) -> Any:
        return _part_of(self)

    def __setitem__(self, key: Any, value: Any) -> None:
        return None

    def __len__(self) -> int:
        parts: int = self._parts
        if self._origin is not self:
            self._tell("the length of {} is 1", look=True)
        return parts

    def __iter__(self) -> Iterator[Any]:
        if self._origin is not self:
            self._tell("the length of {} is 1", look=True)
        return iter([_part_of(self) for _ in range(self._parts)])

    def __contains__(self, item: Any) -> bool:
        self._tell("what is looked for in {} is never there")
        return False

    def __bool__(self) -> bool:
        if self._origin is not self:
            self._tell("{} counts as true")
        return True

    def __float__(self) -> float:
        self._tell("the number of {} is nan")
        return float("nan")

    def __int__(self) -> int:
        self._tell("the number of {} is 0")
        return 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        self._tell("the array of {} is empty")
        return np.zeros(0, dtype=dtype)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *details: Any) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        equal = isinstance(other, NullHandle) and other._origin is self._origin
        if other is not self and other is not None:
            self._tell(f"the comparison of {{}} is {equal}")
        return equal

    def __hash__(self) -> int:
        return id(self._origin)

    def _tell(self, what: str, *, look: bool = False, shown: bool = False) -> None:
        if self._made_up is not None:
            self._made_up.note(self, what, self._place, look=look, shown=shown)

    def _part(self, *operands: Any) -> Any:
        return _part_of(self)

    def _false(self, other: Any) -> bool:
        self._tell("the comparison of {} is False")
        return False

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _part
    __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __round__ = _part
    __lt__ = __le__ = __gt__ = __ge__ = _false


def _text_of(handle: NullHandle) -> str:
    return f"<the training call at {handle._place} is not the one {NOT_TRAINED}>"


def _part_of(handle: NullHandle) -> NullHandle:
    return NullHandle(handle._place, handle._made_up, handle._origin)


# A message that says of which type a value is, a TypeError's say, then says what is the matter with it.
NullHandle.__name__ = "the result of another training call, which does not train in this run"
NullHandle.__qualname__ = NullHandle.__name__
