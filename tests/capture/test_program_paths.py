"""Absolute paths that a program names in any of the usual ways, and the same program with others in their stead."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from det_native.capture.missing_files import paths_elsewhere, reads_elsewhere
from det_native.capture.program_paths import constant_names, put_places

HEAD = "import os\nfrom pathlib import Path\nDATA = '/data'\nFOLDER = Path('/data')\nBIG = '/data/big.csv'\nx = 'a'\n"
PLACES = {"/data/big.csv": "/w/o/data/big.csv", "/data/pictures": "/w/o/data/pictures", "~/y.csv": "/w/o/home/y.csv"}


def value_of(expression: str) -> Any:
    """Return what an expression of a second cell gives once both cells have their places."""
    trees = [ast.parse(HEAD), ast.parse(f"found = {expression}")]
    names = constant_names(trees)
    for tree in trees:
        put_places(tree, names, PLACES)
    space: dict[str, Any] = {}
    for tree in trees:
        exec(compile(ast.fix_missing_locations(tree), "<cell>", "exec"), space)  # noqa: S102 (of this file)
    return space["found"]


@pytest.mark.parametrize(
    "expression",
    [
        *("'/data/big.csv'", "BIG", "f'{DATA}/big.csv'", "DATA + '/big.csv'", "'/data/' + 'big.csv'"),
        *("os.path.join(DATA, 'big.csv')", "os.path.join('/data', 'big.csv')", "str(FOLDER / 'big.csv')"),
        *("str(Path('/data') / 'big.csv')", "str(Path(DATA, 'big.csv'))", "str(Path(BIG))"),
    ],
)
def test_a_file_is_read_at_its_place_however_it_is_named(expression: str) -> None:
    assert value_of(expression) == "/w/o/data/big.csv"


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("'/data/pictures/cat.png'", "/w/o/data/pictures/cat.png"),
        ("f'/data/pictures/{x}.png'", "/w/o/data/pictures/a.png"),
        ("os.path.join('/data/pictures', x)", "/w/o/data/pictures/a"),
        ("'~/y.csv'", "/w/o/home/y.csv"),
        ("DATA", "/data"),
        ("'/data/bigger.csv'", "/data/bigger.csv"),
        ("'/data/big.csv.bak'", "/data/big.csv.bak"),
        ("x + '/data/big.csv'", "a/data/big.csv"),
        ("f'{x}/data/big.csv'", "a/data/big.csv"),
        ("'see /data/big.csv'", "see /data/big.csv"),
        ("{'path': '/data/big.csv'}['path']", "/w/o/data/big.csv"),
        ("os.path.join('/data/', 'big.csv')", "/w/o/data/big.csv"),
        ("(lambda str, type: '%s/big.csv' % '/data')(1, 2)", "/data/big.csv"),
        ("'/data/pictures/%s' % x", "/w/o/data/pictures/a"),
    ],
)
def test_what_lies_in_a_folder_and_what_is_another_path(expression: str, found: str) -> None:
    assert value_of(expression) == found


def test_a_name_that_is_bound_twice_stands_for_nothing() -> None:
    trees = [ast.parse("D = '/a'"), ast.parse("def f(D):\n    return D"), ast.parse("E = '/b'")]
    assert list(constant_names(trees)) == ["E"]


def test_paths_that_a_program_names() -> None:
    cells = [(HEAD, "[1]"), ("read(f'{DATA}/a.csv')\nopen('/data/out.csv', 'w')\nread(f'/data/part{i}.csv')", "[2]")]
    module = ("DATA = '/other'\nread(DATA + '/b.csv')", "tools.py")
    found = paths_elsewhere([*cells, module])
    assert ("/data/a.csv", "[2]", 1) in found
    assert ("/data", "[1]", 3) in found
    assert ("/other/b.csv", "tools.py", 2) in found
    assert "/data/out.csv" not in [text for text, _, _ in found]


def test_a_place_inside_of_the_path_itself_is_put_once() -> None:
    trees = [ast.parse("D = '/data/x'\nfound = f'{D}'")]
    put_places(trees[0], constant_names(trees), {"/data": "/data/run/.det_outside/data"})
    space: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(trees[0]), "<cell>", "exec"), space)  # noqa: S102 (of this file)
    assert space["found"] == "/data/run/.det_outside/data/x"


@pytest.mark.parametrize(
    ("source", "certain"),
    [
        ("D = '/data/x.csv'\npd.read_csv(D)", True),
        ("D = '/data/x.csv'\npd.read_csv(D)\npd.read_csv(D)", True),
        ("D = '/data/x.csv'\nif not os.path.exists(D):\n    make()\npd.read_csv(D)", False),
        ("D = '/data/x.csv'\ndownload(url)\npd.read_csv(D)", False),
        ("D = '/data/x.csv'\nD = other()\npd.read_csv(D)", False),
        ("D = '/data/x.csv'\ntry:\n    pd.read_csv(D)\nexcept OSError:\n    pass", False),
    ],
)
def test_what_is_read_by_a_name(source: str, certain: bool) -> None:
    assert bool(reads_elsewhere([(source, "[1]")])) is certain


def test_what_stays_in_a_folder_that_has_another_place() -> None:
    places = {"/nb": "/w", "/nb/big": "/nb/big"}
    trees = [ast.parse("D = '/nb'"), ast.parse("found = [D, D + '/big/a', '/nb/big', D + '/bigger', f'{D}/big/{1}']")]
    names = constant_names(trees)
    space: dict[str, Any] = {}
    for tree in trees:
        put_places(tree, names, places)
        exec(compile(ast.fix_missing_locations(tree), "<cell>", "exec"), space)  # noqa: S102 (of this file)
    assert space["found"] == ["/w", "/nb/big/a", "/nb/big", "/w/bigger", "/nb/big/1"]
