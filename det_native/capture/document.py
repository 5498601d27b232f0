"""A notebook's document: its code cells from top to bottom as the front end has them, with no kernel and no values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from det_native.capture.document_calls import FoundCall, find_calls, instruction_position
from det_native.capture.log import comment_tags
from det_native.capture.request import HEADLINE
from det_native.capture.transform import Transformed, transform
from det_native.errors import CaptureError, Problem
from det_native.schema.manifests import CallSite

NO_CALL = "The notebook has no training call that could be sent."
_LOOKED_FOR = (
    "Looked for: model.fit(...) of a model from context.wrap_model(...), where context comes from "
    "det.experimental.keras.init(...); context.fit(...) or a loop over context.train(...) of "
    "det.experimental.pytorch.init(...); or det.experimental.create(TrialClass, config)."
)


@dataclass(frozen=True)
class DocumentCell:
    """A code cell of a document.

    Attributes
    ----------
    id : str
    source : str
        As the front end has it now.
    execution_count : int or None
        What the notebook shows in brackets.
    executed : str or None
        What last ran; None if it never did, or nobody knows.
    tags : frozenset of str
    """

    id: str
    source: str
    execution_count: int | None = None
    executed: str | None = None
    tags: frozenset[str] = field(default_factory=frozenset)

    @property
    def skipped(self) -> bool:
        """Whether it is tagged det-skip."""
        return "det-skip" in self.tags | comment_tags(self.source)

    @property
    def python(self) -> Transformed:
        """The cell as Python."""
        return transform(self.source)


class Document:
    """A document that was read, and its training call.

    Parameters
    ----------
    cells : sequence of DocumentCell
    chosen : int, optional
        Which of its training calls, from 0; the last one by default.

    Attributes
    ----------
    cells : list of DocumentCell
        Those that are not empty.
    trees : list of ast.Module or None
        The cells as Python; None for what is none, or is skipped.
    invalid : dict of int to str
        Cells that are not valid Python, and why.
    calls : list of FoundCall
        All training calls, in order.
    call : FoundCall
        The one that is sent.
    inits : list of FoundCall
        The calls of ``init()`` above it.
    above : list of int
        The cells from the top to the one that runs the call, but for those that are skipped or not valid Python.
    prompts : bool
        Whether cells have the numbers that the notebook shows; else their places among the code cells.

    Raises
    ------
    CaptureError
        If it makes no training call, or not so many.
    """

    def __init__(self, cells: Sequence[DocumentCell], chosen: int | None = None) -> None:
        self.cells = [cell for cell in cells if cell.source.strip()]
        pythons = [cell.python for cell in self.cells]
        self.invalid = {at: one.error for at, one in enumerate(pythons) if one.error and not one.language}
        self.trees = [
            None if at in self.invalid or one.language or cell.skipped else ast.parse(one.source)
            for at, (cell, one) in enumerate(zip(self.cells, pythons, strict=True))
        ]
        self._number(len(self.cells))
        found = find_calls(self.trees)
        inits = [call for call in found if call.kind == "init"]
        self.calls = self._candidates([call for call in found if call.kind != "init"], inits)
        if chosen is not None and chosen >= len(self.calls):
            what = f"has {len(self.calls)} training calls or fewer; number {chosen + 1} was chosen."
            raise CaptureError(HEADLINE, [Problem("The notebook", what, "Press Submit again: it has changed since.")])
        self.call = self.calls[-1 if chosen is None else chosen]
        self.inits = (
            [] if self.call.kind == "create" else [one for one in inits if one.route.order < self.call.route.order]
        )
        running = self.call.running
        self._number(running + 1)
        self.above = [at for at in range(running + 1) if at not in self.invalid and not self.cells[at].skipped]

    @property
    def init(self) -> FoundCall | None:
        """The ``init()`` that the call belongs to, by all that the text says."""
        return self.inits[-1] if self.inits else None

    def label(self, index: int) -> str:
        """Return how messages call a cell."""
        return f"Cell [{self.number(index)}]" if self.prompts else f"Code cell {self.number(index)}"

    def within(self, index: int) -> str:
        """Return how messages call a cell in the middle of a sentence."""
        label = self.label(index)
        return label[0].lower() + label[1:]

    def number(self, index: int) -> int:
        """Return the number of a cell: the one that the notebook shows, or its place."""
        shown = self.cells[index].execution_count if self.prompts else None
        return index + 1 if shown is None else shown

    def title(self) -> str:
        """Return what the call is called: ``fit() in cell [7], line 3``."""
        call = self.call
        return f"{call.kind}() in {self.within(call.owner)}, line {call.node.lineno}"

    def site(self, call: FoundCall, sent: Sequence[int]) -> CallSite | None:
        """Return where a call stands in the cells that are sent; None if it does not."""
        if call.owner not in sent or call.running not in sent:
            return None
        line, column = instruction_position(call.node)
        return CallSite(
            kind=call.kind,
            cell=sent.index(call.owner),
            line=line,
            column=column,
            occurrence=call.occurrence,
            running=sent.index(call.running),
            running_line=call.route.line,
        )

    def _number(self, count: int) -> None:
        """Number the cells as the notebook does, if each of the first `count` shows a number of its own.

        Else by their place, so that no two that matter are called alike.
        """
        shown = [cell.execution_count for cell in self.cells[:count]]
        self.prompts = None not in shown and len(set(shown)) == len(shown)

    def _candidates(self, trainings: list[FoundCall], inits: list[FoundCall]) -> list[FoundCall]:
        wraps = any("wrap_model" in cell.source for cell, tree in zip(self.cells, self.trees, strict=True) if tree)
        sure = [call for call in trainings if call.sure]
        found = sure or (trainings if inits or wraps else [])
        if found:
            return found
        invalid = [f"{self.label(index)} is not valid Python ({why})" for index, why in self.invalid.items()]
        what = f"{'; '.join(invalid)}." if invalid else "There is none among its code cells."
        where = self.label(inits[-1].running) if inits else ""
        if inits:
            what = f"init() is called, but no model that its context wraps is trained. {what}"
        raise CaptureError(NO_CALL, [Problem(where, what, _LOOKED_FOR)])
