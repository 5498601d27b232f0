"""Patterns of paths: two concern each other exactly where a path may be meant by both."""

from __future__ import annotations

import fnmatch
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.capture.path_texts import HOLE
from det_native.files_home.patterns import concerns, meet, pattern_of

patterns = st.text("ab*", max_size=5)
_TEXTS = ["".join(letters) for length in range(9) for letters in product("ab", repeat=length)]


@given(patterns, patterns)
def test_two_patterns_meet_where_a_text_matches_both(first: str, second: str) -> None:
    both = any(fnmatch.fnmatchcase(text, first) and fnmatch.fnmatchcase(text, second) for text in _TEXTS)
    assert meet(first, second) == both


@given(patterns, patterns)
def test_it_does_not_matter_which_comes_first(first: str, second: str) -> None:
    assert meet(first, second) == meet(second, first)


@pytest.mark.parametrize(
    ("read", "written", "expected"),
    [
        ("/n/best.keras", "/n/best.keras", True),
        ("/n/best.keras", "/n/other.keras", False),
        ("/n/samples", "/n/samples/*.png", True),
        ("/n/samples/*", "/n/samples/gan_*.png", True),
        ("/n/model/saved_model.pb", "/n/model", True),
        ("/n/*.png", "/n/gan_*.png", True),
        ("/n/data.csv", "/n/*.png", False),
        ("/n/sample", "/n/samples/*.png", False),
    ],
)
def test_reading_and_writing(read: str, written: str, expected: bool) -> None:
    assert concerns(read, written) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("best.keras", "/n/best.keras"),
        ("./out/../best.keras", "/n/best.keras"),
        ("/data/a.csv", "/data/a.csv"),
        (f"gan_{HOLE}.png", "/n/gan_*.png"),
        (f"{HOLE}/best.pt", "*/best.pt"),
        ("out/*.png", "/n/out/*.png"),
        (".", "/n"),
        (HOLE, None),
        ("https://example.org/a.csv", None),
        ("", None),
    ],
)
def test_texts_become_absolute(text: str, expected: str | None) -> None:
    assert pattern_of(text, "/n") == expected
