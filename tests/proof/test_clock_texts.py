"""Texts by clocks and of entropy are told from texts that say something."""

from __future__ import annotations

import datetime
import random
import tempfile
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.heap.clock_texts import exchanges, is_same_shape, may_differ

NOW = datetime.datetime.combine(datetime.date.today(), datetime.time(13))
FORMS = [
    "%Y%m%d-%H%M%S",
    "%Y-%m-%d_%H%M",
    "%b%d_%H-%M-%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%s",
    "%H_%M_%S",
    "%d.%m.%y %I:%M %p",
]
words = st.text("abcxyz-_./", max_size=12)


@pytest.mark.parametrize("form", FORMS)
@given(words, words, st.integers(1, 500_000))
def test_moments_of_one_form_have_one_shape(form: str, before: str, after: str, later: int) -> None:
    other = NOW + datetime.timedelta(seconds=later)
    here, there = (f"{before}/{moment.strftime(form)}/{after}" for moment in (NOW, other))
    assert is_same_shape(here, there) == (here != there)
    assert may_differ(here)
    renamed = here
    for old, new in exchanges(here, there).items():
        renamed = renamed.replace(old, new)
    if other.date() == NOW.date():
        assert renamed == there


@given(st.integers(), words)
def test_drawn_names_have_one_shape(seed: int, before: str) -> None:
    drawn = random.Random(seed)
    hexadecimal = [uuid.UUID(int=drawn.getrandbits(128)) for _ in range(2)]
    here, there = (f"{before}/model_{number}.pt" for number in hexadecimal)
    assert is_same_shape(here, there)
    assert exchanges(here, there) == {str(hexadecimal[0]): str(hexadecimal[1])}
    temporary = ["tmp" + "".join(drawn.choices("abcdefghijklmnopqrstuvwxyz0123456789_", k=8)) for _ in range(2)]
    here, there = (f"{before}/{name}/a" for name in temporary)
    assert is_same_shape(here, there)
    assert exchanges(here, there) == {temporary[0]: temporary[1]}


def test_folders_of_tempfile_have_one_shape() -> None:
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        assert is_same_shape(here, there)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("cuda", "cpu"),
        ("cuda:0", "cuda:1"),
        ("resnet18.pt", "resnet50.pt"),
        ("training", "validate"),
        ("epoch_03", "epoch_04"),
        ("gpunode3", "gpunode7"),
        ("5.15.0-101-generic", "5.15.0-118-generic"),
        ("10.12.13.14", "10.12.13.15"),
        ("best_val", "last_val"),
        ("0.1", "0.2"),
        ("a_20990101-101500", "b_20990101-101500"),
        ("a_20990101-101500", "a_20990101-1015"),
        ("same_20990101", "same_20990101"),
    ],
)
def test_texts_that_say_something_are_left_alone(here: str, there: str) -> None:
    assert not is_same_shape(here, there)
