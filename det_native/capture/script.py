"""A call made by ``python train.py``: the script itself, its arguments, and the files that it uses."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from det_native.capture.bindings import imports_in
from det_native.capture.calls import occurrence, script_calls
from det_native.capture.explain_secrets import secret_problems, secret_rows
from det_native.capture.log import CallRecord
from det_native.capture.model import HEADLINE, Capture, Request, SourceFile
from det_native.capture.nesting import NOT_PYTHON, not_python
from det_native.capture.program_files import add_files
from det_native.capture.submitted import earlier_answers, earlier_trainings
from det_native.errors import ArgumentError, CaptureError, Problem
from det_native.schema.manifests import CallKind, CallSite, Program


def capture_script(request: Request, record: CallRecord | None, command: Sequence[str] | None) -> Capture:
    """Capture a call made by a script.

    Parameters
    ----------
    record : CallRecord or None
        Where the call was made; None if `command` names another script than the running one.
    command : sequence of str, optional
        Script and arguments, by default those that this process was started with.

    Raises
    ------
    ArgumentError
        The script does not exist, or lies outside the context directory.
    CaptureError
        A file cannot be sent.
    """
    script, arguments = _script(command)
    root = (request.context_dir or script.parent).resolve()
    if root not in script.parents:
        raise ArgumentError(
            f"context_dir is {str(root)!r}, but the script {str(script)!r} does not lie in it: the context "
            "directory is the "
            "working directory of the code. Give a directory that holds the script."
        )
    target = script.relative_to(root).as_posix()
    try:
        source = script.read_text(encoding="utf-8")
        relative = list(_relative_imports(source, target))
    except NOT_PYTHON as error:
        raise CaptureError(HEADLINE, [not_python(str(script), error)]) from None
    capture = Capture(
        Program(
            kind="script",
            framework=request.framework,
            command=(target, *arguments),
            call=_site(request.kind, record, root) if command is None else None,
            init=_site("init", request.init, root) if command is None else None,
        )
    )
    if command is None:
        others = [call for call in script_calls() if call is not record]

        def site_of(call: CallRecord) -> CallSite | None:
            return _site(cast(CallKind, call.kind), call, root)

        capture.history.earlier = list(earlier_trainings(others, site_of))
        capture.history.answers = list(earlier_answers(others, site_of))
    own = [(source, target)]
    # A configuration has no include= for its script: what PYTHONPATH leads to is sent, too.
    elsewhere = os.environ.get("PYTHONPATH", "").split(os.pathsep) if command is not None else []
    roots = [root, script.parent, *(Path(each) for each in elsewhere if each)]
    files = add_files(capture, own, request, roots, Path.cwd(), arguments=arguments)
    problems = [*files.problems, *(relative if command is None else ())]
    for text, where in [*own, *files.texts]:
        problems.extend(secret_problems(text, where, request.values))
        capture.notes.rows.extend(secret_rows(text, where))
    problems.extend(_no_values(name) for name in request.values)
    if problems:
        raise CaptureError(HEADLINE, list(dict.fromkeys(problems)))
    if request.context_dir is None:
        capture.files.insert(0, SourceFile(script, target, "the script itself"))
    capture.notes.warnings = files.warnings
    return capture


def _relative_imports(source: str, target: str) -> Iterator[Problem]:
    """Yield what is wrong if the script runs as a module (``python -m pack.train``) and needs that."""
    package = getattr(sys.modules.get("__main__"), "__package__", None)
    lines = [one.line for one in imports_in(ast.parse(source)) if one.level]
    if package and lines:
        yield Problem(
            f"{target}, line {min(lines)}",
            f"a relative import works here, as `python -m {package}.{Path(target).stem}`, but the workers run the file "
            "as a script, which belongs to no package.",
            f"Start the training from a script beside the folder {package.partition('.')[0]!r} that imports it.",
        )


def _no_values(name: str) -> Problem:
    return Problem(
        f"values={name!r}", "values are sent from notebooks only; a script makes its values itself.", "Remove values=."
    )


def _script(command: Sequence[str] | None) -> tuple[Path, list[str]]:
    if command is not None:
        words = list(command)
        if words and Path(words[0]).name.startswith("python"):
            words = words[1:]
        if not words:
            raise ArgumentError(
                "command is empty; give the script and its arguments, e.g. ['train.py', '--lr', '0.1']."
            )
    else:
        main = sys.modules.get("__main__")
        file = getattr(main, "__file__", None)
        if file is None:
            raise ArgumentError(
                "This Python runs neither a script nor a notebook, so there is no code to send. Put the code "
                "into a file, or "
                "name one: command=['train.py']."
            )
        words = [file, *sys.argv[1:]]
    path = Path(words[0]).expanduser().resolve()
    if not path.is_file():
        raise ArgumentError(f"command names the script {words[0]!r}, which does not exist in {Path.cwd()}.")
    return path, [str(word) for word in words[1:]]


def _site(kind: CallKind, record: CallRecord | None, root: Path) -> CallSite | None:
    if record is None:
        return None
    path = Path(record.file).resolve()
    file = path.relative_to(root).as_posix() if root in path.parents else path.name
    return CallSite(kind=kind, file=file, line=record.line, column=record.column, occurrence=occurrence(record))
