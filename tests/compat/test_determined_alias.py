"""The ``determined`` alias, each time in a fresh interpreter: an import hook is global state."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run_python(code: str, *, path: Path | None = None) -> str:
    """Run code in a fresh interpreter, with `path` first on its module search path, and return what it prints."""
    prelude = f"import sys; sys.path.insert(0, {str(path)!r})\n" if path else ""
    finished = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_same_module_objects_and_specs_untouched() -> None:
    run_python(
        """
        import det_native, det_native.compat, det_native.errors
        import determined as det
        import determined.errors
        from determined import errors
        from determined.estimator import __name__ as name
        assert det is det_native
        assert errors is determined.errors is det_native.errors
        assert name == "det_native.estimator"
        assert det_native.__spec__.name == "det_native"
        assert det_native.errors.__spec__.name == "det_native.errors"
        assert sys.modules["determined.errors"] is det_native.errors if (sys := __import__("sys")) else None
        """
    )


def test_submodule_first_imports_it_once() -> None:
    run_python(
        """
        import det_native.compat
        import determined.errors as aliased
        import det_native.errors as own
        assert aliased is own
        assert aliased.DetError is own.DetError
        """
    )


def test_nothing_but_the_hook_is_imported() -> None:
    loaded = run_python(
        "import sys, det_native.compat; print(*[name for name in sys.modules if name.startswith('det_native')])"
    )
    assert set(loaded.split()) == {"det_native", "det_native.compat", "det_native.compat.hook"}


@pytest.mark.parametrize(
    "statement",
    ["from determined import Nope", "from determined.estimator import Nope", "import determined.nope.deeper"],
)
def test_unknown_name_is_an_import_error_that_says_so(statement: str) -> None:
    printed = run_python(
        f"""
        import det_native.compat
        try:
            {statement}
        except ImportError as error:
            print(error)
        """
    )
    assert "is not in `determined" in printed
    assert "alias of `det_native" in printed
    assert "nope" in printed.lower()


def test_unknown_attribute_is_an_attribute_error() -> None:
    assert run_python("import det_native.compat, determined; print(hasattr(determined, 'Nope'))").strip() == "False"


def test_other_imports_keep_their_own_errors() -> None:
    printed = run_python(
        """
        import det_native.compat, importlib.util
        print(importlib.util.find_spec("det_native.nope"))
        try:
            import nothing_of_this_name
        except ModuleNotFoundError as error:
            print(error)
        """
    )
    assert printed.splitlines() == ["None", "No module named 'nothing_of_this_name'"]


def test_stands_aside_for_a_real_one(tmp_path: Path) -> None:
    package = tmp_path / "determined"
    package.mkdir()
    (package / "__init__.py").write_text("real = True\n")
    (package / "core.py").write_text("real = True\n")
    run_python(
        """
        import det_native.compat
        import determined, determined.core
        assert determined.real and determined.core.real
        import det_native
        assert det_native is not determined
        """,
        path=tmp_path,
    )


def test_a_mere_folder_of_that_name_is_no_real_one(tmp_path: Path) -> None:
    (tmp_path / "determined").mkdir()
    run_python(
        "import det_native.compat, determined, det_native; assert determined is det_native",
        path=tmp_path,
    )


def test_installing_twice_changes_nothing() -> None:
    run_python(
        """
        import sys
        from det_native.compat import install
        from det_native.compat.hook import AliasFinder
        before = list(sys.meta_path)
        install()
        assert sys.meta_path == before
        assert isinstance(sys.meta_path[0], AliasFinder)
        """
    )
