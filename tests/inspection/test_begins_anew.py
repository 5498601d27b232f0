"""Whether a method sets anew all that the methods of an object change."""

from __future__ import annotations

import pytest

from det_native.inspection.attributes import begins_anew


class Kept:
    def __init__(self) -> None:
        self.rows: list[int] = []
        self.best, self.name = 0, "kept"

    def begin(self) -> None:
        self.best = 0

    def see(self, value: int) -> None:
        self.rows.append(value)
        self.best = max(self.best, value)


class Renewed(Kept):
    def begin(self) -> None:
        self.best = 0
        self._clear()

    def _clear(self) -> None:
        self.rows = []


class Constant:
    def __init__(self) -> None:
        self.name = "constant"

    def see(self, value: int) -> int:
        return value


@pytest.mark.parametrize(
    ("made", "but", "anew"),
    [(Kept(), (), False), (Kept(), ("rows",), True), (Renewed(), (), True), (Constant(), (), True)],
)
def test_it_is_told_by_the_code(made: object, but: tuple[str, ...], anew: bool) -> None:
    assert begins_anew(made, "begin", but) is anew
