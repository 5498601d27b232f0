"""From raw cells to Python with the same lines."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.capture.calls import cell_line
from det_native.capture.transform import transform


@pytest.mark.parametrize(
    ("raw", "source"),
    [
        ("x = 1\n%matplotlib inline\ny = 2", "x = 1\npass\ny = 2"),
        ("if x:\n    !ls -l \\\n      more\n    y = 2", "if x:\n    pass\n\n    y = 2"),
        ("%%time\n\nx = 1", "\n\nx = 1"),
        ("%time history = model.fit(x)", "history = model.fit(x)"),
        ("z = %time f(3)", "z = f(3)"),
        ("a = (1\n%2)", "a = (1\n%2)"),
        ('s = """\n!ls\n%foo\n"""\n!ls', 's = """\n!ls\n%foo\n"""\npass'),
        ("df.head?\nx = 3  # what?", "pass\nx = 3  # what?"),
        ("?print", "pass"),
        ("x = 5 % 3\n!ls", "x = 5 % 3\npass"),
        ("   x = 1\n   y = 2", "x = 1\ny = 2"),
        (">>> x = 1\n>>> y", "x = 1\ny"),
        ("get_ipython().run_line_magic('matplotlib', 'inline')\nx = 1", "pass\nx = 1"),
        ("%env MODE=fast", "__import__('os').environ['MODE'] = 'fast'"),
        ("x = 1  # kept\ndf.head()", "x = 1  # kept\ndf.head()"),
        ("%%writefile a.py\nx = 1", "\n"),
    ],
)
def test_lines_stay_where_they_are(raw: str, source: str) -> None:
    result = transform(raw)
    assert result.source == source
    assert result.error == ""
    assert result.language is None


@pytest.mark.parametrize(
    ("raw", "requirements"),
    [
        ("%pip install -q torch==2.1 'numpy>1' --upgrade", ("torch==2.1", "numpy>1")),
        ("!pip install a b && echo done", ("a", "b")),
        ("!{sys.executable} -m pip install -r requirements.txt", ("-r requirements.txt",)),
        ("%pip install --index-url https://example.invalid c", ("c",)),
        ("!uv pip install d", ("d",)),
        ("get_ipython().system('pip install e')", ("e",)),
        ("%pip list", ()),
        ("%%bash\ncd /tmp\npip install f  # it\n", ("f",)),
        ("%%html\npip install g", ()),
    ],
)
def test_installs_are_requirements(raw: str, requirements: tuple[str, ...]) -> None:
    assert transform(raw).requirements == requirements


def test_what_only_the_shell_can_bind_is_noted() -> None:
    assert transform("files = !ls *.py\na, b = %magic x").shell.keys() == {"files", "a", "b"}
    assert transform("%%bash --out listing --err oops\nls").shell.keys() == {"listing", "oops"}
    assert transform("%%capture out\nprint(1)").shell.keys() == {"out"}


@pytest.mark.parametrize("magic", ["%%bash", "%%R", "%%sql", "%%javascript_unknown", "%%html"])
def test_other_languages_are_told(magic: str) -> None:
    result = transform(f"{magic}\nwhatever (")
    assert result.language == magic
    assert result.source.strip() == ""


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("%%writefile a.py", None),
        ("%%file 'a b.py'", "%%file"),
        ("%%writefile -a a.py", None),
        ("%%writefile {folder}/a.py", "%%writefile"),
    ],
)
def test_a_cell_that_writes_a_file_is_no_python_where_its_path_is_put_together(line: str, language: str | None) -> None:
    assert transform(f"{line}\nx = 1\n").language == language


def test_code_that_runs_many_times_is_left_out_but_known() -> None:
    result = transform(["%timeit things.append(1)", "%%not a magic here"][0])
    assert (result.source, result.repeated) == ("pass", "things.append(1)")
    assert transform("%%timeit\nthings.append(1)").repeated == "things.append(1)"


def test_lines_of_ipython_are_translated_back() -> None:
    source = "\n\n!ls \\\n  more\nx = 1"
    lines = transform(source).kernel_lines
    assert [cell_line(lines, source, line, body=False) for line in (1, 2)] == [3, 5]
    source = "%%time\n\nx = 1\ny = 2"
    assert cell_line(transform(source).kernel_lines, source, 2, body=True) == 4


def test_what_does_not_parse_says_why() -> None:
    assert "never closed" in transform("x = ((").error


@given(st.lists(st.sampled_from(["x = 1", "!ls", "%magic a", "", "print?", "y = [", "]", "if x:", "    z = 2", "'''"])))
def test_no_line_is_ever_added_or_lost(lines: list[str]) -> None:
    raw = "\n".join(lines)
    assert transform(raw).source.count("\n") == raw.count("\n")


@given(st.text(alphabet="abx =()[]'\"\n%!?#:\\", max_size=60))
def test_python_is_left_alone(raw: str) -> None:
    try:
        ast.parse(raw)
    except (SyntaxError, ValueError):
        transform(raw)
        return
    if raw.strip() and raw.lstrip("\n")[0] not in " \t" and not raw.lstrip().startswith("%%"):
        assert transform(raw).source == raw
