"""Why a name that a document's cells use is not there: by the text of the others."""

from __future__ import annotations

from det_native.capture.document import Document
from det_native.capture.explain import via
from det_native.capture.program.records import Read
from det_native.capture.reads import reads_of
from det_native.errors import Problem


def missing_problem(document: Document, at: int, name: str, read: Read, maker: tuple[int, str] | None) -> Problem:
    """Return what is wrong with a name that a cell uses and that is not there then.

    Parameters
    ----------
    document : Document
    at : int
        The cell that uses it.
    name : str
    read : Read
        How.
    maker : (int, str) or None
        The cell that makes it, and why that one cannot run again; None if no cell above does.
    """
    where = f"{document.label(at)}, line {max(read.line, 1)}"
    used, cells = f"`{name}` is used{via(read.path)}", document.cells
    skipped = [i for i, cell in enumerate(cells[:at]) if cell.skipped and name in cell.source]
    later = [
        i for i, tree in enumerate(document.trees) if i > at and tree and name in reads_of(document.source(i)).bound
    ]
    invalid = [i for i in document.invalid if i <= at and name in cells[i].source]
    if skipped:
        what = f"{used}, but {document.within(skipped[-1])}, which defines it, is tagged det-skip."
        return Problem(where, what, "Untag it.")
    if later:
        what = f"{used}, but only {document.within(later[0])}, further down, defines it."
        return Problem(where, what, "Move that cell up: cells are sent in the order of the document.")
    if invalid:
        what = f"{used}, but {document.within(invalid[-1])} is not valid Python ({document.invalid[invalid[-1]]})."
        return Problem(where, what, "Fix that cell.")
    for i, cell in enumerate(cells[: at + 1]):
        if name in cell.python.shell:
            line = cell.python.shell[name]
            what = f"{used}, which {document.within(i)} sets by `{line}`: shell lines and magics do not run there."
            return Problem(where, what, "Write that in Python.")
    if maker is not None:
        what = f"{used}, but {document.within(maker[0])}, which makes it, cannot run there: it {maker[1]}."
        return Problem(where, what, "Write that cell otherwise.")
    hidden = [(i, one) for i, cell in enumerate(cells[: at + 1]) for one in (*cell.python.hidden, cell.python.language)]
    runs = [f"; {document.within(i)} runs `{one}`" for i, one in hidden if one]
    what = f"{used}, but no cell above defines it{runs[-1] if runs else ''}."
    return Problem(where, what, "Define it in a cell above.")
