"""A call made in a notebook: which cells run again, and which values and files travel with them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from det_native.capture.cell_costs import (
    TRAINED,
    leaves_something,
    needs_large_files,
    seconds_of,
    secret_lines,
    why_it_stays,
)
from det_native.capture.execution import executions_of, facts_of
from det_native.capture.explain import (
    drawn_rows,
    execution_rows,
    failed_init_problem,
    lost_settings_warning,
    never_again_problem,
    refusal_problem,
    remade_rows,
    stays_row,
    trained_unseeded_problem,
    training_warning,
)
from det_native.capture.explain_again import few, reason_of, risk_warnings, why_forced
from det_native.capture.explain_secrets import secret_problems, secret_rows
from det_native.capture.failure import until
from det_native.capture.log import CallRecord, ExecutionLog
from det_native.capture.model import HEADLINE, Capture, CapturedStreams, Request
from det_native.capture.program.choose import choose
from det_native.capture.program.records import Plan, Read, Run, Step
from det_native.capture.program.runs import NOTHING, runs_of
from det_native.capture.program_files import add_files
from det_native.capture.seen_files import SeenFiles, read_later, settled_paths
from det_native.capture.side_effects.process import is_library_class
from det_native.capture.sites import site_in_cells
from det_native.capture.stale import changed_files, stale_modules
from det_native.capture.submitted import earlier_answers, earlier_trainings, has_come_home
from det_native.capture.transform import transform
from det_native.capture.value_paths import ValuePaths
from det_native.capture.values_to_send import ValuesToSend
from det_native.errors import CaptureError, Problem
from det_native.process.streams import encoded
from det_native.schema.manifests import CallKind, CallSite, Cell, Program

#: Names that IPython gives to what cells returned, and to their texts.
_HISTORY = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|In|Out|_[iod]h")


def capture_cells(request: Request, log: ExecutionLog, record: CallRecord, folder: Path) -> Capture:
    """Capture a call made in a cell.

    Parameters
    ----------
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
    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        self.namespace: Mapping[str, Any] = self.log.shell.user_ns
        self.calling = self.record.running
        self.executions = executions_of(self.log, self.calling)
        self.init = self._init_executions()
        self.runs = self._runs()
        self.values = ValuesToSend(
            self.request.values, self.namespace, self.executions, self.runs, self.log.sharing, self._wrapped()
        )
        self.runs = [
            replace(run, drawn=self.values.drawn(run)) if index != self.calling and logged.seen.drew else run
            for index, (run, logged) in enumerate(zip(self.runs, self.log.executions, strict=False))
        ]
        self.libraries = [name for name, value in self.namespace.items() if _is_of_library(value)]

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
        self.values.declare(self.problems, self.warnings)
        self._plan()
        included = [step.run for step in self.plan.steps]
        capture = Capture(self._program(included))
        capture.values = self.values.captured(self.plan, included)
        capture.history.streams = self._streams()
        self._add_earlier(capture)
        self._add_files(capture, included)
        self._explain(capture, included)
        capture.notes.warnings = list(dict.fromkeys(self.warnings))
        return capture

    # What runs again.

    def _init_executions(self) -> tuple[int, ...]:
        """Executions that called ``init()``: as the caller says, else the last that does so by the look of it."""
        given = self.request.init_executions
        if given is not None:
            return tuple(index for index in given if index <= self.calling)
        if self.request.kind == "create":
            return ()
        called = {call.running for call in self.log.calls if call.kind == "init"}
        calls = [one.index for one in self.executions if one.index in called and not (one.failed or one.skipped)]
        return tuple(calls[-1:])

    def _runs(self) -> list[Run]:
        secrets = {one.index: secret_lines(one.source, self.request.values) for one in self.executions}
        stays = {
            one.index: why_it_stays(one, self.log, self.namespace, bool(secrets[one.index]))
            for one in self.executions
            if one.index != self.calling
        }
        runs = runs_of(
            self.executions,
            self.record.running_line,
            facts_of(self.executions, self.log),
            wanted=self.init,
            stays=stays,
            seconds={one.index: seconds_of(self.log.executions[one.index]) for one in self.executions},
        )
        runs = [
            replace(run, secret_lines=secrets[index], leaves=leaves_something(one, run, self.namespace))
            for index, (run, one) in enumerate(zip(runs, self.executions, strict=True))
        ]
        held = {name: Read((name,)) for name in self._held_names(runs)}
        return [*runs[:-1], replace(runs[-1], reads={**runs[-1].reads, **held})]

    def _wrapped(self) -> list[tuple[Any, int]]:
        """Return the models and optimizers of the call, each with the execution that wrapped it."""
        call = next(iter(self.request.needed), None)
        context = getattr(call, "context", None) if not isinstance(call, type) else None
        times: Mapping[int, float] = getattr(context, "_wrapped_at", {})
        parts = [*getattr(call, "models", ()), *getattr(context, "optimizers", ())] if times else []
        begun = [(one.logged.time.started or 0.0, one.index) for one in self.executions]
        return [
            (part, max((index for started, index in begun if started <= times[id(part)]), default=-1))
            for part in parts
            if id(part) in times
        ]

    def _held_names(self, runs: Sequence[Run]) -> set[str]:
        """Return names of what the call was given, where no name that its cell reads holds it."""
        last = {name: index for index, run in enumerate(runs) for name in run.touched}
        known = runs[-1].reads.keys() | runs[-1].bound
        found = set()
        for part in self.request.needed:
            holders = [name for name, value in self.namespace.items() if value is part and name in last]
            if holders and not known.intersection(holders):
                found.add(max(holders, key=last.__getitem__))
        return found

    def _plan(self) -> None:
        """Choose what runs again, and note what stands in the way."""
        self.plan = self._choose(self.runs)
        root, context = self._roots()[0], self.request.context_dir
        trained = {call.running for call in self.log.calls if call.kind != "init"}
        large = {
            step.run: why
            for step in self.plan.steps
            if step.run not in self.plan.needed
            and (why := TRAINED if step.run in trained else needs_large_files(step, self.log, root, context))
        }
        if large:  # what they need besides is not worth its way
            self.runs = [
                replace(run, stays=large[index]) if index in large else run for index, run in enumerate(self.runs)
            ]
            self.plan = self._choose(self.runs)
        self._without_data = {
            step.source for step in self.plan.steps if step.run in large and step.run not in self.plan.needed
        }
        for refusal in self.plan.refusals:
            error = self.values.errors.get(refusal.name)
            self.problems.append(
                refusal_problem(refusal, self.runs, self.plan.left, self.executions, self.namespace, error)
            )
        for index, forced in self.plan.forced.items():
            name = forced.name if forced is not None else ""
            if name in self.log.executions[index].seen.trained:
                error = self.values.errors.get(name)
                self.problems.append(trained_unseeded_problem(name, self.executions[index], error))
        for index, why in self.plan.left.items():
            if self.executions[index].forced and self.runs[index].never:
                self.problems.append(never_again_problem(self.executions[index], why))
        self._check_init()

    def _choose(self, runs: Sequence[Run]) -> Plan:
        return choose(
            runs,
            self.values.travel,
            present=[name for name in self.namespace if not _HISTORY.fullmatch(name)],
            modules=self.libraries,
            declared=[*self.values.declared],
        )

    def _check_init(self) -> None:
        """Is the ``init()`` of this call in what runs again of its cell, if that has failed?"""
        record = self.request.init
        if record is None or record.running == self.calling:
            return
        execution = self.executions[record.running]
        if execution.failed and record.running_line > len(execution.source.splitlines()):
            self.problems.append(failed_init_problem(execution))

    # The program.

    @property
    def _last_init(self) -> int:
        return max(self.init, default=self.calling)

    def _program(self, included: list[int]) -> Program:
        cells, files = [], read_later(self.log, [step.run for step in self.plan.steps if step.kind != "settings"])
        for step in self.plan.steps:
            logged = self.log.executions[step.run]
            reason = reason_of(
                step.run, self.plan, self.runs, self.executions, files.get(step.run), step.run in self.init
            )
            cells.append(
                Cell(
                    number=logged.number,
                    cell_id=logged.front_end.cell_id,
                    source=step.source,
                    reason="makes the call" if step.run == self.calling else reason,
                    optional_from=step.optional_from,
                    failed_line=step.failed_line,
                )
            )
        return Program(
            kind="cells",
            framework=self.request.framework,
            cells=tuple(cells),
            call=self._call_site(included),
            init=self._init_site(included),
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

    def _add_earlier(self, capture: Capture) -> None:
        """Add the trainings by calls of the program whose weights the notebook has, and what was asked of them."""
        again = [step.run for step in self.plan.steps]
        whole = {step.run for step in self.plan.steps if step.kind != "settings"}

        def site_of(record: CallRecord) -> CallSite | None:
            if record is self.record or record.running not in whole:
                return None
            return site_in_cells(cast(CallKind, record.kind), record, self.log, again, self._roots())

        capture.history.earlier = list(earlier_trainings(self.log.calls, site_of))
        if self.request.kind == "create":
            capture.history.answers = list(earlier_answers(self.log.calls, site_of))

    def _streams(self) -> list[CapturedStreams]:
        """Return the states before each cell that has drawn: others, which stay behind, may have drawn before it."""
        states = [
            (place, step.run, self.log.executions[step.run].seen.streams)
            for place, step in enumerate(self.plan.steps)
            if step.kind != "settings"
        ]
        return [
            CapturedStreams(encoded(state), place, in_every_trial=index <= self._last_init)
            for place, index, state in states
            if state is not None
        ]

    def _label(self, index: int) -> str:
        return self.executions[index].cell

    # Files.

    def _roots(self) -> list[Path]:
        context = [self.request.context_dir] if self.request.context_dir is not None else []
        return [*context, self.folder]

    def _add_files(self, capture: Capture, included: list[int]) -> None:
        of_values = [
            (module, value.cell)
            for value in capture.values
            for module in sorted(self.values.encoded[value.name].modules)
        ]
        runs = [step.run for step in self.plan.steps if step.kind != "settings"]
        optional = {step.run: step.optional_from for step in self.plan.steps if step.optional_from is not None}
        seen = SeenFiles(self.log, runs, self._label, included, optional)
        files = add_files(
            capture,
            [(self._text_that_runs(step), self._label(step.run)) for step in self.plan.steps],
            self.request,
            self._roots(),
            Path.cwd(),
            titles={self._label(i): self.executions[i].label for i in included},
            of_values=of_values,
            without_data=self._without_data,
            seen=seen,
            values=ValuePaths(self.namespace, set(self.runs[-1].reads)),
        )
        assert capture.paths.root is not None
        capture.paths.settled = settled_paths(self.log, runs, partial(bisect_right, included), capture.paths.root, seen)
        self.problems.extend(files.problems)
        self.warnings.extend(stale_modules(files.modules.names, self.log))
        needed = {self._label(i): self.log.executions[i] for i in included if optional.get(i) != 1}
        self.warnings.extend([*files.warnings, *changed_files(files.data.files, needed)])

    def _text_that_runs(self, step: Step) -> str:
        """Return the text of a step; what stands behind the recorded call does not run on the worker."""
        return until(step.source, self.record.running_line) if step.run == self.calling else step.source

    # The report.

    def _explain(self, capture: Capture, included: list[int]) -> None:
        for step, cell in zip(self.plan.steps, capture.program.cells, strict=True):
            index = step.run
            logged, execution = self.log.executions[index], self.executions[index]
            self.problems.extend(secret_problems(step.source, execution.label, self.request.values))
            capture.notes.rows.extend(secret_rows(step.source, execution.cell))
            if step.kind == "settings":  # the row of what stays behind says so
                continue
            capture.notes.rows.extend(execution_rows(logged, execution, step.kind, cell.reason))
            capture.notes.rows.extend(remade_rows(sorted(self.runs[index].bound), self.namespace, execution))
            if index != self.calling:
                others = [call for call in self.log.calls if not has_come_home(call)]
                self.warnings.extend(training_warning(execution, step.source, others))
            if index != self.calling or logged.time.duration is not None:
                self.warnings.extend(risk_warnings(logged, execution, *self._forced(index)))
        settings = {step.run for step in self.plan.steps if step.kind == "settings"}
        for index, why in self.plan.left.items():
            if why != NOTHING:
                duration = self.log.executions[index].time.duration
                capture.notes.rows.append(stays_row(self.executions[index], duration, why, index in settings))
        for index, drawn in sorted(self.plan.unlike.items()):
            refused = {name: self.values.travels[name].refused for name in drawn if name in self.values.travels}
            capture.notes.rows.extend(drawn_rows(self.executions[index], sorted(drawn), refused))
        for index, names in self.plan.lost_settings.items():
            self.warnings.append(lost_settings_warning(self.executions[index], self.plan.left[index], few(names)))
        self.warnings.extend(self.values.unused(self.plan))
        for execution in self.executions:
            capture.requirements.extend(transform(execution.succeeded).requirements)
        capture.requirements = list(dict.fromkeys(capture.requirements))

    def _forced(self, index: int) -> tuple[str, str]:
        """Return why a cell runs again against its nature, and what to do; empty texts of any other."""
        if index not in self.plan.forced:
            return "", ""
        refusal = self.plan.forced[index]
        error = self.values.errors.get(refusal.name) if refusal is not None else None
        return why_forced(refusal, self.runs, self.executions, error)


def _is_of_library(value: object) -> bool:
    return issubclass(type(value), ModuleType) or is_library_class(value)
