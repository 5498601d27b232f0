"""A call made in a notebook: which cells, values and files it needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from det_native.capture.execution import Execution, Missing, Slice
from det_native.capture.explain import (
    early_warning,
    execution_rows,
    failed_init_problem,
    missing_problem,
    remade_rows,
    risk_warnings,
    too_large_weights,
    too_many_values,
    training_warning,
)
from det_native.capture.explain_secrets import secret_problems, secret_rows
from det_native.capture.live import executions_of, facts_of
from det_native.capture.log import CallRecord, ExecutionLog
from det_native.capture.made_again import MadeAgain
from det_native.capture.model import Capture, CapturedStreams, CapturedValue
from det_native.capture.modules import is_local
from det_native.capture.observation.holding import shares_with_others
from det_native.capture.program.choose import ALWAYS_THERE
from det_native.capture.program_files import add_files
from det_native.capture.reads import reads_of
from det_native.capture.request import HEADLINE, Request
from det_native.capture.set_order import has_order_of_a_set
from det_native.capture.sites import site_in_cells
from det_native.capture.slicer import slice_log
from det_native.capture.stale import overwritten_files, remade_values, stale_modules
from det_native.capture.transform import transform
from det_native.capture.values import TOTAL_LIMIT, CannotSendError, encode
from det_native.capture.wider_capture import WiderCapture
from det_native.errors import CaptureError, Problem
from det_native.inspection.adapter import Encoded
from det_native.inspection.streams import encoded
from det_native.schema.manifests import CallSite, Cell, Program

#: Names that IPython gives to what cells returned, and to their texts.
_HISTORY = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|In|Out|_[iod]h")
_ROUNDS = 12


def capture_cells(request: Request, log: ExecutionLog, record: CallRecord, folder: Path) -> Capture:
    """Capture a call made in a cell.

    Parameters
    ----------
    request : Request
    log : ExecutionLog
    record : CallRecord
        Where the call was made.
    folder : Path
        The notebook's folder.

    Raises
    ------
    CaptureError
        With everything that stands in the way.
    """
    return CellCapture(request, log, record, folder).run()


@dataclass
class CellCapture:
    """One capture of a call made in a cell; ``run`` gives it, ``collect`` also what stands in its way."""

    request: Request
    log: ExecutionLog
    record: CallRecord
    folder: Path
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    encoded: dict[str, Encoded] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    orders: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.namespace: Mapping[str, Any] = self.log.shell.user_ns
        self.calling = self.record.running
        self.executions = executions_of(self.log, self.calling)
        self.facts = facts_of(self.executions, self.log)

    def run(self) -> Capture:
        """Return the capture.

        Raises
        ------
        CaptureError
            With everything that stands in the way.
        """
        capture = self.collect()
        if self.problems:
            raise CaptureError(HEADLINE, list(dict.fromkeys(self.problems)))
        return capture

    def collect(self) -> Capture:
        """Return the capture; what stands in the way is in `problems`."""
        found = self._chosen()
        self._check_init(found)
        included = sorted(found.included)
        capture = Capture(self._program(found, included))
        capture.values = self._values(found, included)
        capture.streams = self._streams(included)
        self._add_files(capture, found, included)
        self._explain(capture, found, included)
        if not self.problems and self.request.wider:
            self._add_wider(capture, found)
        capture.warnings = list(dict.fromkeys(self.warnings))
        return capture

    def _add_wider(self, capture: Capture, found: Slice) -> None:
        init = max(self._init_executions(), default=self.calling)
        parts = (self.log, self.request, self.executions, self.facts, self._roots(), self.cuts)
        WiderCapture(*parts).add(capture, found, self.record.running_line, init)

    # The slice and what is sent by value.

    def _chosen(self) -> Slice:
        """Return what is sent, and note what stands in the way."""
        found = self._slice()
        self._need_payload(found)
        self._declare(found)
        for _ in range(_ROUNDS):
            found = self._slice()
            if not self._cut_more(found) and not self._cut_orders(found):
                break
        self.executions = [
            replace(one, head=found.heads[one.index]) if one.index in found.heads else one for one in self.executions
        ]
        self.problems.extend(found.problems)
        self.warnings.extend(found.warnings)
        self._check_missing(found)
        self._check_total()
        return found

    def _slice(self) -> Slice:
        return slice_log(
            self.executions,
            self.calling,
            self.record.running_line,
            needed=sorted(self.needed),
            forced=self._init_executions(),
            cuts=self.cuts,
            facts=self.facts,
        )

    def _need_payload(self, found: Slice) -> None:
        """Objects that the call was given, but that no name which its cell reads holds."""
        for part in self.request.needed:
            holders = [n for n, v in self.namespace.items() if v is part and found.touched.get(n, -1) >= 0]
            if holders and not found.read.intersection(holders):
                self.needed.add(max(holders, key=found.touched.__getitem__))

    def _init_executions(self) -> tuple[int, ...]:
        """Executions that called ``init()``: as the caller says, else the last that does so by the look of it."""
        given = self.request.init_executions
        if given is not None:
            return tuple(index for index in given if index <= self.calling)
        if self.request.kind == "create":
            return ()
        calls = [e.index for e in self.executions if not e.failed and not e.skipped and self._calls_init(e)]
        return tuple(calls[-1:])

    def _calls_init(self, execution: Execution) -> bool:
        return any(call.kind == "init" and call.running == execution.index for call in self.log.calls)

    def _declare(self, found: Slice) -> None:
        """Cut the slice at the names that the user declared in ``values=``."""
        for name in self.request.values:
            if name not in self.namespace:
                self.problems.append(
                    Problem(f"values={name!r}", "there is no such name in the notebook.", "Run the cell that sets it.")
                )
                continue
            after = found.touched.get(name, -1)
            if after >= self.calling:
                after = found.surely_touched.get(name, -1)
            if after >= self.calling:
                self.warnings.append(
                    f"values={name!r}: the cell that makes the call sets or changes `{name}` itself, so its code is "
                    "sent and not the value."
                )
                continue
            try:
                self.encoded[name] = encode(name, self.namespace[name], declared=True, is_local=is_local)
            except CannotSendError as error:
                self._refuse_declared(name, error)
                continue
            self.cuts[name] = after

    def _refuse_declared(self, name: str, error: CannotSendError) -> None:
        if error.kind == "notebook":
            self.warnings.append(
                f"values={name!r}: `{name}` {error}; its cell runs again instead, so that the classes are the same."
            )
            return
        self.problems.append(Problem("", f"Cannot send `{name}` ({error}), declared in values=.", error.remedy))

    def _cut_more(self, found: Slice) -> bool:
        """Decide to send more by value: loop variables that live at the call, and names whose source is gone."""
        before = len(self.cuts)
        touched = found.touched
        for name in sorted(found.loops - self.cuts.keys() - self.refused):
            if name in self.namespace and touched.get(name, -1) < self.calling:
                self._try(name, touched.get(name, -1))
        for missing, _ in found.missing:
            name = missing.name
            if name in self.cuts or name in self.refused or not self._is_sendable_name(name):
                continue
            if touched.get(name, -1) < self.calling:
                self._try(name, touched.get(name, -1))
        for name, user in sorted(found.doubtful.items()):
            known = name in self.cuts or name in self.refused or not self._is_sendable_name(name)
            if not known and touched.get(name, -1) < user:
                self._try_doubtful(name, touched.get(name, -1))
        return len(self.cuts) > before

    def _try_doubtful(self, name: str, after: int) -> None:
        """Send what a statement that failed may have changed, if it is small and no other name has a part of it."""
        if shares_with_others(name, self.log.looks):
            self.refused.add(name)
            return
        self._try(name, after, arrays=True)
        if name in self.cuts and sum(self._undeclared_sizes().values()) > TOTAL_LIMIT:
            del self.cuts[name], self.encoded[name]
            self.refused.add(name)

    def _cut_orders(self, found: Slice) -> bool:
        """Send by value what has the order of a set: the cells before ``init()`` would make another one."""
        before = len(self.cuts)
        init = max(self._init_executions(), default=self.calling)
        for index in sorted(found.included):
            if index >= init:
                break
            execution = self.executions[index]
            for name in sorted(found.used.get(index, set()) - self.cuts.keys() - self.refused):
                value = self.namespace.get(name)
                if found.touched.get(name) != index or type(value) not in (list, tuple, dict):
                    continue
                reads = reads_of(execution.source).reads if execution.source else ()
                if has_order_of_a_set(value, execution.source, self.namespace, reads):
                    self._try(name, index)
                    self.orders.add(name)
        return len(self.cuts) > before

    def _is_sendable_name(self, name: str) -> bool:
        return name in self.namespace and not _HISTORY.fullmatch(name)

    def _try(self, name: str, after: int, *, arrays: bool = False) -> None:
        value = self.namespace[name]
        try:
            if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
                raise CannotSendError("defined by code that is in no cell", kind="notebook")
            self.encoded[name] = encode(name, value, declared=False, arrays=arrays, is_local=is_local)
        except CannotSendError:
            self.refused.add(name)
            return
        self.cuts[name] = after

    def _check_init(self, found: Slice) -> None:
        """Is the ``init()`` of this call in what is sent of its cell, if that has failed?"""
        record = self.request.init
        if record is None or record.running == self.calling:
            return
        execution = self.executions[record.running]
        if execution.failed and record.running_line > len(execution.sent.splitlines()):
            self.problems.append(failed_init_problem(execution))

    def _check_missing(self, found: Slice) -> None:
        for missing, user in found.missing:
            if missing.name in ALWAYS_THERE | {"__session__"} or not self._matters(missing, user, found):
                continue
            self.problems.append(
                missing_problem(missing, user, self.namespace, self.executions, found.touched, is_local)
            )

    def _matters(self, missing: Missing, user: Execution, found: Slice) -> bool:
        if _HISTORY.fullmatch(missing.name):
            return missing.certain
        if missing.name not in self.namespace:
            return user.index == self.calling and len(missing.path) > 1
        effects, touched = user.effects, found.touched.get(missing.name, -1)
        out_of_sight = bool(user.magics) and effects is not None and missing.name in effects.bound | effects.changed
        return missing.certain or touched < user.index or missing.name in self.cuts or out_of_sight

    def _check_total(self) -> None:
        sizes = self._undeclared_sizes()
        if sum(sizes.values()) > TOTAL_LIMIT:
            self.problems.append(too_many_values(sizes))

    def _undeclared_sizes(self) -> dict[str, int]:
        return {n: len(e.content) for n, e in self.encoded.items() if n not in self.request.values}

    def _seconds(self, included: list[int]) -> float | None:
        before = [self.log.executions[index] for index in included if index != self.calling]
        if any(each.duration is None or each.outside or each.succeeded is False for each in before):
            return None
        return sum(each.duration or 0.0 for each in before)

    # The program.

    def _program(self, found: Slice, included: list[int]) -> Program:
        cells = []
        for index in included:
            logged = self.log.executions[index]
            cells.append(
                Cell(
                    number=logged.number,
                    cell_id=logged.cell_id,
                    source=self.executions[index].sent,
                    reason=found.included[index],
                )
            )
        return Program(
            kind="cells",
            framework=self.request.framework,
            cells=tuple(cells),
            call=self._call_site(included),
            init=self._init_site(included),
            prompts=self.log.prompts,
        )

    def _call_site(self, included: list[int]) -> CallSite | None:
        site = site_in_cells(self.request.kind, self.record, self.log, included, self._roots())
        owner = self.log.owner_of(self.record.file) if site is None else None
        if site is None:
            known = owner is not None and owner.index <= self.calling
            label = self.executions[owner.index].label if owner is not None and known else "A cell"
            self.problems.append(
                Problem("", f"{label} holds the call, but is not sent.", "Tag it det-include, or run it again.")
            )
        return site

    def _init_site(self, included: list[int]) -> CallSite | None:
        record = self.request.init
        return site_in_cells("init", record, self.log, included, self._roots()) if record is not None else None

    def _values(self, found: Slice, included: list[int]) -> list[CapturedValue]:
        values = []
        for name, first in sorted(found.by_value.items()):
            user = next(position for position, index in enumerate(included) if index >= first)
            encoded = self.encoded[name]
            how = "declared" if name in self.request.values else "sent by value"
            if name in self.orders:
                how = "sent by value, as the order of a set is another one in each process"
            values.append(
                CapturedValue(
                    name, encoded.codec, encoded.content, user, f"{how}: {encoded.description}", self._label(first)
                )
            )
        values += self._weights(found, included)
        for name in self.request.values:
            if name in self.cuts and name not in found.by_value:
                self.warnings.append(f"values={name!r}: the call does not need `{name}`, so it is not sent.")
        return values

    def _weights(self, found: Slice, included: list[int]) -> list[CapturedValue]:
        """Return what trainings came to that a worker cannot repeat."""
        values = []
        for index, name in found.weights:
            weights = self.log.executions[index].trained[name]
            label = self.executions[index].label.replace("Cell", "cell", 1)
            if weights.content is None:
                problem = too_large_weights(name, label, weights.size)
                if self.request.wider:
                    self.problems.append(problem)
                else:
                    self.warnings.append(f"{problem.what} {problem.remedy}")
                continue
            user = next(position for position, each in enumerate(included) if each > index)
            why = f"weights after {label}: TensorFlow had no seed, so that the training cannot be repeated"
            values.append(CapturedValue(name, "weights", weights.content, user, why, self._label(index), index))
        return values

    def _streams(self, included: list[int]) -> list[CapturedStreams]:
        """Return the states before each cell that has drawn: others, which stay behind, may have drawn before it."""
        init = max(self._init_executions(), default=self.calling)
        states = [(position, index, self.log.executions[index].streams) for position, index in enumerate(included)]
        return [
            CapturedStreams(encoded(found), position, in_every_trial=index <= init)
            for position, index, found in states
            if found is not None
        ]

    def _label(self, index: int) -> str:
        number = self.executions[index].number
        return f"[{number}]" if number is not None else ""

    # Files.

    def _roots(self) -> list[Path]:
        context = [self.request.context_dir] if self.request.context_dir is not None else []
        return [*context, self.folder]

    def _add_files(self, capture: Capture, found: Slice, included: list[int]) -> None:
        of_values = [
            (module, value.cell)
            for value in capture.values
            if value.codec != "weights"
            for module in sorted(self.encoded[value.name].modules)
        ]
        made = MadeAgain(self.log, included)
        capture.made = made.maker

        def maker(path: Path) -> str | None:
            index = made.maker(path)
            return self._label(index) if index is not None else None

        files = add_files(
            capture,
            [(self.executions[i].sent, self._label(i)) for i in included],
            self.request,
            self._roots(),
            Path.cwd(),
            titles={self._label(i): self.executions[i].label for i in included},
            of_values=of_values,
            maker=maker,
        )
        names, ran = files.modules.names, {self._label(i): self.log.executions[i] for i in included}
        self.problems.extend(files.problems)
        self.warnings.extend(stale_modules(names, self.log, self.namespace, found.imported))
        self.warnings.extend([*files.warnings, *overwritten_files(files.data.files, ran)])
        self.warnings.extend(remade_values(names, self.log, ran))

    # The report.

    def _explain(self, capture: Capture, found: Slice, included: list[int]) -> None:
        last = self.executions[self.calling]
        for index in included:
            logged, execution = self.log.executions[index], self.executions[index]
            source = execution.sent
            self.problems.extend(secret_problems(source, execution.label, self.request.values))
            capture.rows.extend(secret_rows(source, self._label(index)))
            capture.rows.extend(execution_rows(logged, execution, found.included[index]))
            names = sorted(found.used.get(index, ()))
            capture.rows.extend(remade_rows(names, self.namespace, execution))
            lines = logged.source.count("\n") + 1 if index in found.untrained else len(source.splitlines())
            trained = [
                call.kind
                for call in self.log.calls
                if call.running == index and call.kind != "init" and call.running_line <= lines
            ]
            if trained and execution is not last:
                self.warnings.append(training_warning(execution, dict.fromkeys(trained)))
            if execution.failed:  # how long the part of it took that is sent is not known
                logged = replace(logged, duration=None)
            if execution is not last or logged.duration is not None:
                self.warnings.extend(risk_warnings(logged, execution, execution.outside, names))
        for execution in self.executions:
            capture.requirements.extend(transform(execution.succeeded).requirements)
        capture.requirements = list(dict.fromkeys(capture.requirements))
        capture.seconds = self._seconds(included)
        early = [e for e in (self.log.executions[i] for i in included) if not e.recorded]
        if early:
            self.warnings.append(early_warning([each.number for each in early]))
