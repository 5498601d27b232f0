"""Notebooks that nobody writes by hand: the panel's command refuses them in a sentence and runs nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attack_parts import ANYTHING, TEXTS, cheaply, deep
from hypothesis import given
from hypothesis import strategies as st

from det_native.experimental.document import main

CREATE = "import det_native as det\ndet.experimental.create(Trial, {})\n"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a notebook's path, in the folder where the command is then; all is put back at the end."""
    folder = tmp_path_factory.mktemp("notebooks").resolve()
    kept = os.getcwd(), list(sys.path), os.environ.get("JPY_SESSION_NAME")
    os.chdir(folder)
    os.environ["JPY_SESSION_NAME"] = str(folder / "n.ipynb")
    yield folder / "n.ipynb"
    os.chdir(kept[0])
    sys.path[:] = kept[1]
    if kept[2] is None:
        del os.environ["JPY_SESSION_NAME"]
    else:
        os.environ["JPY_SESSION_NAME"] = kept[2]


def inspected(notebook: Path, *sources: str, **fields: Any) -> dict[str, Any]:
    """Return the answer about a document of these cells."""
    cells = [{"id": f"c{number}", "source": source} for number, source in enumerate(sources)]
    return answered(json.dumps({"path": str(notebook), "cells": cells, **fields}))


def answered(text: str) -> dict[str, Any]:
    """Return the answer to a request, which can be written."""
    here = os.getcwd()
    try:
        with cheaply():
            answer = main(["inspect"], text)
    finally:
        os.chdir(here)  # a request may name another folder that there is
    json.dumps(answer).encode()
    assert answer["ok"] or answer["error"]
    return answer


# What the parser and those that walk its trees cannot take, and what is done to the shell's lines.
CELLS = {
    "signs": "x = " + "-" * 100_000 + "1",
    "a sum": "x = " + "1+" * 100_000 + "1",
    "a sum that is parsed": "x = " + "1+" * 900 + "1",
    "attributes": "x = a" + ".b" * 50_000,
    "brackets": "x = " + "[" * 5000 + "]" * 5000,
    "branches": "if a: pass\n" + "elif b: pass\n" * 30_000,
    "blocks": "\n".join(" " * level + "if 1:" for level in range(99)) + "\n" + " " * 99 + "pass",
    "a string without an end": "x = '''" + "a" * 100_000,
    "format strings": "x = f'{" * 400,
    "a NUL": "x = '\0'",
    "other line ends": "\x0cx = 1\r\ny = 2\rz = 3\u2028q = 1\x0b",
    "a coding line": "# -*- coding: utf-7 -*-\nx = 1",
    "percent signs": "%" * 10_000,
    "shell lines": "!" * 10_000 + "\n" + "?" * 1000,
    "names without operators": "a " * 20_000 + "\n!ls",
    "half an assignment": "x" + " " * 50_000 + "= !ls",
    "quotes of a shell": "!pip install '\"",
    "line ends that are continued": "\\\n" * 9999,
    "a file elsewhere": "%%writefile /etc/passwd-of-test\nhello",
    "a file without a name": "%%writefile a\0b\nhello",
    "a file with a long name": "%%writefile " + "a" * 5000 + "\nhello",
    "an import from far above": "from " + "." * 500 + "x import y",
    "an import of many parts": "import " + "a." * 2000 + "b",
    "names of files": f"open('/etc/shadow'), open('../' * 9), open('a\\0b'), open('{'a' * 5000}')",
}


@pytest.mark.parametrize("what", CELLS)
def test_a_cell_that_cannot_be_read_is_refused_or_left_out(notebook: Path, what: str) -> None:
    answer = inspected(notebook, CELLS[what], CREATE)
    assert answer["ok"] or "Code cell 1" in json.dumps(answer)
    assert not Path("/etc/passwd-of-test").exists()


@pytest.mark.parametrize(
    "text",
    ["", "\0", "[]", "null", deep(200_000), '{"path": "/", "cells": ' + deep(100_000) + "}", '{"path": "\\ud800"}']
    + [
        json.dumps({"path": path, "cells": []})
        for path in ("", "n", "/tmp/\0/x", "/" + "a" * 5000 + "/x", "/dev/null/x")
    ],
)
def test_a_request_that_is_none_is_refused(text: str) -> None:
    answer = answered(text)
    assert not answer["ok"]
    assert "\n" not in answer["error"]


FRAGMENTS = st.sampled_from(
    [
        *(
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "'",
            '"',
            "'''",
            "\\",
            "\n",
            " ",
            "    ",
            ":",
            "=",
            ",",
            ".",
            "#",
            "%",
            "%%",
            "!",
        ),
        *(
            "f'{",
            "}'",
            "lambda ",
            "if 1",
            "else",
            "for x in",
            "import ",
            "from ",
            "det",
            "create",
            "Trial",
            "*",
            "**",
            ":=",
        ),
        *("%time ", "%%time\n", "%pip install ", "!pip install ", "x = !", "await ", "yield", "del ", "global ", "?"),
        *(
            "det.experimental.create(Trial, ",
            "config",
            "# det-skip\n",
            "class A:",
            "@",
            "\ufeff",
            "\x0c",
            "\r",
            "match x:",
        ),
    ]
)


@given(
    cells=st.lists(st.lists(FRAGMENTS | TEXTS, max_size=12).map("".join), max_size=3),
    fields=st.dictionaries(st.sampled_from(["call", "slots", "test", "place"]), ANYTHING, max_size=1),
)
def test_any_cells_are_read_or_refused(notebook: Path, cells: list[str], fields: dict[str, Any]) -> None:
    inspected(notebook, *cells, CREATE, **fields)


@given(request=st.fixed_dictionaries({"path": TEXTS, "cells": ANYTHING}) | ANYTHING)
def test_any_request_is_read_or_refused(notebook: Path, request: Any) -> None:
    answered(json.dumps(request))
