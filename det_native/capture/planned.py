"""A call made in a notebook, by the rule that what ran runs again: quick cells again, of expensive ones the values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType, ModuleType

from det_native.capture.carry import NO_LIMIT, pack
from det_native.capture.cells import CellCapture
from det_native.capture.data import collect_data
from det_native.capture.execution import Execution, Missing, Slice
from det_native.capture.explain import SLOW, human_time, missing_problem
from det_native.capture.facts import human_size, size_of
from det_native.capture.model import Capture, CapturedStreams, CapturedValue
from det_native.capture.modules import is_local
from det_native.capture.planned_wider import wider_of
from det_native.capture.program.choose import ROOM, SECONDS, choose
from det_native.capture.program.records import Plan, Read, Refusal, Run, Step, Travel
from det_native.capture.program.runs import runs_of
from det_native.capture.program.settings import done_for_effect, settings_of
from det_native.capture.reads import reads_of
from det_native.capture.reads_record import Import
from det_native.capture.secrets import find_secrets
from det_native.capture.slice_texts import lower, via
from det_native.capture.values import CannotSendError, encode_plain
from det_native.capture.wider_capture import may_need_files
from det_native.errors import Problem
from det_native.inspection.attributes import is_library_of_ours
from det_native.inspection.registry import adapter_of
from det_native.schema.manifests import Program
from det_native.schema.rest import CaptureRow

#: Bytes in memory that are better not made again unasked.
LARGE = 100_000_000
#: Bytes of files that only a run needs which nothing needs.
MOST_OF_FILES = 1 << 20


@dataclass
class PlannedCapture(CellCapture):
    """One capture of a call made in a cell."""

    travels: dict[str, Travel] = field(default_factory=dict)
    errors: dict[str, CannotSendError] = field(default_factory=dict)
    plan: Plan = field(default_factory=Plan)
    runs: list[Run] = field(default_factory=list)
    secret_lines: dict[int, frozenset[int]] = field(default_factory=dict)
    states: set[str] = field(default_factory=set)

    def _chosen(self) -> Slice:
        self._read()
        self._need_held()
        touched = {name: index for index, run in enumerate(self.runs) for name in run.touched}
        self._declare(Slice(touched=touched, surely_touched=touched))
        self.plan = self._choose()
        large = {step.run: why for step in self.plan.steps if (why := self._why_files_stay(step))}
        if large:  # what they need besides is not worth its way
            self.runs = [replace(run, stays=large.get(index, run.stays)) for index, run in enumerate(self.runs)]
            self.plan = self._choose()
        return self._as_slice()

    def _choose(self, runs: Sequence[Run] | None = None, seconds: float = SECONDS) -> Plan:
        return choose(
            self.runs if runs is None else runs,
            self._travel,
            seconds=seconds,
            present=[name for name in self.namespace if self._is_sendable_name(name)],
            modules=self._libraries(),
            declared=[*self.cuts],
        )

    def _libraries(self) -> list[str]:
        """Return the names of modules, and of classes that no cell defines."""
        return [
            name
            for name, value in self.namespace.items()
            if isinstance(value, ModuleType) or (isinstance(value, type) and value.__module__ != "__main__")
        ]

    def _why_files_stay(self, step: Step) -> str:
        """Return that a run needs large files, if nothing needs the run."""
        if step.run in self.plan.needed or not may_need_files(step.source):
            return ""
        data = collect_data([(step.source, "")], self._roots()[0], Path.cwd(), self.request.context_dir)
        size = sum(file.path.stat().st_size for file in data.files)
        return f"needs files of {human_size(size)}" if size > MOST_OF_FILES else ""

    def _read(self) -> None:
        init = self._init_executions()
        self.secret_lines = {
            one.index: lines for one in self.executions if (lines := self._lines_with_secrets(one.source))
        }
        self.runs = runs_of(
            self.executions,
            self.record.running_line,
            self.facts,
            wanted=init,
            stays={one.index: why for one in self.executions if (why := self._why_it_stays(one))},
            seconds={one.index: self._seconds_of(one) for one in self.executions},
        )
        for index, lines in self.secret_lines.items():
            self.runs[index] = replace(self.runs[index], secret_lines=lines)
        for index, run in enumerate(self.runs[:-1]):
            if self.log.executions[index].drew and (drawn := self._drawn(run)):
                self.runs[index] = replace(run, drawn=drawn)

    def _drawn(self, run: Run) -> frozenset[str]:
        """Return the names that a run which asked for random bytes may have made of them; no code, none of ours."""
        settled = settings_of(run.source, (), ()).names
        return frozenset(
            name
            for name in (run.bound | run.changed) - settled
            if self._is_data_or_object(name) and not is_library_of_ours(type(self.namespace.get(name)).__module__)
        )

    def _need_held(self) -> None:
        """Objects that the call was given, but that no name which its cell reads holds."""
        last = {name: index for index, run in enumerate(self.runs) for name in run.touched}
        call = self.runs[-1]
        for part in self.request.needed:
            holders = [name for name, value in self.namespace.items() if value is part and name in last]
            if holders and not (call.reads.keys() | call.bound).intersection(holders):
                name = max(holders, key=last.__getitem__)
                self.needed.add(name)
        if self.needed:
            more = {name: Read((name,)) for name in sorted(self.needed)}
            self.runs[-1] = replace(call, reads={**call.reads, **more})

    def _seconds_of(self, execution: Execution) -> float:
        logged = self.log.executions[execution.index]
        return max(0.0, (logged.duration or 0.0) - logged.importing)

    def _why_it_stays(self, execution: Execution) -> str:
        """Return why an execution does not run again unasked; empty if it may."""
        if execution.index == self.calling:
            return ""
        if any(call.running == execution.index and call.kind != "init" for call in self.log.calls):
            return "trained"
        if execution.outside:
            kind, _, what = execution.outside[0].partition(": ")
            said = {"network": "used the network", "shell": "ran a command", "delete": "deleted", "move": "moved"}
            return f"{said[kind]} ({what})"
        if self.log.executions[execution.index].trained:
            return "trained while TensorFlow had no seed"
        size = self._bytes_of(execution)
        if size > LARGE:
            return f"left {human_size(size)} in memory"
        return "holds what looks like a secret" if execution.index in self.secret_lines else ""

    def _lines_with_secrets(self, source: str) -> frozenset[int]:
        if '"' not in source and "'" not in source:  # to look for one takes a while
            return frozenset()
        return frozenset(one.line for one in find_secrets(source) if one.name not in self.request.values)

    def _bytes_of(self, execution: Execution) -> int:
        bound = execution.effects.bound if execution.effects is not None else frozenset()
        size = 0
        for name in bound & self.namespace.keys():
            with suppress(Exception):  # a class of the user's may raise whatever is asked of it
                size += size_of(self.namespace[name]) or 0
        return size

    def _travel(self, name: str) -> Travel:
        """Say whether a value can travel, and encode it if it can."""
        if name not in self.travels:
            try:
                self.travels[name] = self._encode(name)
            except CannotSendError as error:
                self.errors[name] = error
                self.travels[name] = Travel(refused=str(error))
        return self.travels[name]

    def _encode_declared(self, name: str) -> None:
        self.travels[name] = self._encode(name)

    def _encode(self, name: str) -> Travel:
        value, declared = self.namespace[name], name in self.request.values
        if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            raise CannotSendError("defined by code that is in no cell", kind="notebook")
        shares, adapter = self._sharing(name), adapter_of(type(value))
        plain = encode_plain(name, value, declared=declared, limit=ROOM)
        if plain is not None:
            self.encoded[name] = plain
            return Travel(len(plain.content), shares=shares, is_data=adapter is not None and adapter.is_data)
        limit = NO_LIMIT if declared else ROOM
        try:
            packed = pack([name], self.namespace, checked=declared, limit=limit, is_local=is_local)
        except CannotSendError as error:
            if adapter is None or error.kind in ("secret", "large") or adapter.state(value) is None:
                raise
            packed = pack([name], self.namespace, states=[name], checked=declared, limit=limit, is_local=is_local)
            self.states.add(name)
        self.encoded[name] = packed.encoded
        return Travel(
            len(packed.encoded.content),
            weights=name in self.states,
            code=packed.code,
            shares=shares,
            holds_model=packed.holds_model,
        )

    def _sharing(self, name: str) -> frozenset[str]:
        """Return the names whose values have objects that can change in common with that of another one."""
        looks = self.log.looks
        if name not in looks:
            return frozenset()
        kinds = [name for name, value in self.namespace.items() if isinstance(value, type) and name in looks]
        own = looks[name].objects.difference(*(looks[kind].objects for kind in kinds))
        return frozenset(
            other
            for other, one in looks.items()
            if other != name and not own.isdisjoint(one.objects) and self._is_data_or_object(other)
        )

    def _is_data_or_object(self, name: str) -> bool:
        return not isinstance(self.namespace.get(name, ModuleType), type | FunctionType | ModuleType)

    def _as_slice(self) -> Slice:
        """Return the plan as the rest of capture takes it."""
        plan = self.plan
        reasons = {step.run: self._reason(step.run) for step in plan.steps}
        sources = {step.run: step for step in plan.steps}
        self.executions = [
            one
            if one.index not in sources
            else replace(one, source=sources[one.index].source, head=sources[one.index].source)
            for one in self.executions
        ]
        used = {step.run: set(self.runs[step.run].bound) for step in plan.steps}
        touched = {name: index for index, run in enumerate(self.runs) for name in run.touched}
        self.problems.extend(self._refusal(one) for one in plan.refusals)
        return Slice(
            included=reasons,
            by_value={value.name: value.before for value in plan.values},
            used=used,
            touched=touched,
            imported=self._imported(),
            read=set(self.runs[-1].reads),
        )

    def _imported(self) -> dict[str, Import]:
        """Return the names that are what they were imported as."""
        found: dict[str, Import] = {}
        for run in self.runs:
            imports = reads_of(run.source).imports if run.source else {}
            found = {name: one for name, one in found.items() if name not in run.touched}
            found |= {name: one for name, one in imports.items() if name in run.bound}
        return found

    def _reason(self, index: int) -> str:
        if index == self.calling:
            return "makes the call"
        if index in self.plan.forced:
            name = self.plan.forced[index]
            return f"`{name}` is needed and cannot travel" if name else "sets something for the process"
        if index in self.plan.left:
            return f"settings only: {self.plan.left[index]}"
        return "ran before the call" if index in self.plan.needed else "ran before the call; nothing needs it"

    def _refusal(self, one: Refusal) -> Problem:
        user, execution = self.executions[one.user], None
        read = self.runs[one.user].reads.get(one.name, Read((one.name,)))
        if one.maker is not None:
            execution = self.executions[one.maker]
        if execution is None:
            missing = Missing(one.name, read.path, read.line, read.certain)
            touched = {name: index for index, run in enumerate(self.runs) for name in run.touched}
            return missing_problem(missing, user, self.namespace, self.executions, touched, is_local)
        why = self.runs[execution.index].never or self.plan.left.get(execution.index) or "does not make it again"
        error = self.errors.get(one.name)
        return Problem(
            "",
            f"`{one.name}`, used in {lower(user.label)}{via(read.path)}, was made by {lower(execution.label)}, which "
            f"cannot run again ({why}), and cannot be sent ({one.why}).",
            (error.remedy if error is not None else "")
            or f"Make `{one.name}` in a cell of its own, or send it: values=['{one.name}'].",
        )

    def _add_wider(self, capture: Capture, found: Slice) -> None:
        """Add the program with the slow cells, too, for a worker to which the first one gives other inputs."""
        slow = {index for index, logged in enumerate(self.log.executions) if (logged.duration or 0.0) > SLOW}
        runs = [replace(run, stays=run.stays or ("took long" if i in slow else "")) for i, run in enumerate(self.runs)]
        init = max(self._init_executions(), default=self.calling)
        second = self._choose(runs, seconds=math.inf)
        capture.wider = wider_of(capture, self.plan, second, self.log, init, self._roots()[0], self.request.context_dir)

    def _streams(self, included: list[int]) -> list[CapturedStreams]:
        work = {step.run for step in self.plan.steps if step.kind != "settings"}
        places = {included.index(index) for index in work}
        return [one for one in super()._streams(included) if one.before_cell in places]

    def _explain(self, capture: Capture, found: Slice, included: list[int]) -> None:
        super()._explain(capture, found, included)
        capture.rows.extend(self._rows_of_what_stays())

    def _program(self, found: Slice, included: list[int]) -> Program:
        program = super()._program(found, included)
        lines = {step.run: step.optional_from for step in self.plan.steps}
        cells = [
            cell.model_copy(update={"optional_from": lines[index]})
            for cell, index in zip(program.cells, included, strict=True)
        ]
        return program.model_copy(update={"cells": tuple(cells)})

    def _values(self, found: Slice, included: list[int]) -> list[CapturedValue]:
        values = []
        self._put_together()
        for value in self.plan.values:
            encoded = self.encoded[value.name]
            place = included.index(value.before)
            how = "declared" if value.name in self.request.values else "sent by value"
            cell = self._label(value.maker) if value.maker is not None else ""
            note = f"{how}: {encoded.description}"
            values.append(
                CapturedValue(value.name, encoded.codec, encoded.content, place, note, cell, in_place=value.in_place)
            )
        sent = {value.name for value in self.plan.values}
        for name in self.request.values:
            if name in self.cuts and name not in sent:
                self.warnings.append(f"values={name!r}: the call does not need `{name}`, so it is not sent.")
        return values

    def _put_together(self) -> None:
        """Have the values that are bound at one time, and share objects, come out of one pickle."""
        groups: list[tuple[int, set[str]]] = []
        for value in self.plan.values:
            shares = {value.name, *self.travels[value.name].shares}
            met = [group for group in groups if group[0] == value.before and not shares.isdisjoint(group[1])]
            groups = [group for group in groups if group not in met]
            groups.append((value.before, {value.name}.union(*(names for _, names in met))))
        for _, names in groups:
            if len(names) > 1:
                packed = pack(names, self.namespace, states=self.states & names, checked=True, is_local=is_local)
                self.encoded |= dict.fromkeys(names, packed.encoded)

    def _rows_of_what_stays(self) -> list[CaptureRow]:
        rows = []
        for index, why in self.plan.left.items():
            if why.startswith("does nothing"):
                continue
            seconds = self.log.executions[index].duration or 0.0
            took = f"; took {human_time(seconds)}" if seconds >= 1 else ""
            calls = done_for_effect(self.runs[index].source, self._libraries())
            undone = f"; what it does there is not done: {', '.join(calls)}" if calls else ""
            note = f"stays behind: {why}{took}{undone}"
            label = self._label(index)
            rows.append(
                CaptureRow(what=f"cell {label}".strip(), how="stays", size=0, cell=label, status="not sent", note=note)
            )
        for index, drawn in sorted(self.plan.unlike.items()):
            for name in sorted(drawn):
                why = self.travels[name].refused if name in self.travels else ""
                note = f"drawn without a seed; cannot travel ({why or 'its value of then is gone'}): another one there"
                label = self._label(index)
                rows.append(CaptureRow(what=name, how="drawn", size=0, cell=label, status="not sent", note=note))
        for index, names in self.plan.lost_settings.items():
            self.warnings.append(
                f"{self.executions[index].label} stays behind ({self.plan.left[index]}) and has set "
                f"{', '.join(names)} for the whole process. Set it in a cell of its own."
            )
        return rows
