"""Lists of handles, which a notebook shows in a few lines."""

from __future__ import annotations

from typing import Any, TypeVar

Handle = TypeVar("Handle")

# Of a longer list, as many from its beginning and from its end.
ENDS = 6


class Listing(list[Handle]):
    """A list as any other, only that IPython leaves out the middle of a long one."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        left_out = len(self) - 2 * ENDS
        lines = [repr(each) for each in (self if left_out <= 1 else self[:ENDS])]
        if left_out > 1:
            lines += [f"... {left_out} more ...", *(repr(each) for each in self[-ENDS:])]
        with printer.group(1, "[", "]"):
            for number, line in enumerate(lines):
                if number:
                    printer.text(",")
                    printer.breakable()
                printer.text(line)
