"""Reads what was sent with the code."""

import pathlib


def rows(path: str) -> list[float]:
    return [float(line) for line in pathlib.Path(path).read_text().split()]
