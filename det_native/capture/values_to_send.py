"""Values of a notebook that travel: those that the user has named, and what expensive cells have made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from det_native.capture.execution import Execution
from det_native.capture.explain import lower
from det_native.capture.model import CapturedValue
from det_native.capture.modules import is_local
from det_native.capture.program.choose import ROOM
from det_native.capture.program.records import Plan, Run, Travel
from det_native.capture.trained import Weights
from det_native.capture.values import CannotSendError, encode
from det_native.errors import Problem
from det_native.inspection.adapter import Encoded

#: What travels by its name: what it holds is what its module has where it arrives.
_BY_NAME = (ModuleType, FunctionType, BuiltinFunctionType, type)


class ValuesToSend:
    """Says which values can travel, and encodes those that do.

    Parameters
    ----------
    wanted : sequence of str
        Names that the user has given in ``values=``.
    namespace : mapping of str, optional
        The live values; without it those that the user has named can be sent, as far as anybody knows.
    executions : sequence of Execution
    runs : sequence of Run
        Of the same executions.
    trained : sequence of mapping
        For each execution, what it has trained; see ``LoggedExecution``.

    Attributes
    ----------
    declared : set of str
        Those of the names in ``values=`` that can be sent.
    encoded : dict of str to Encoded
    errors : dict of str to CannotSendError
        Of names that cannot be sent, why.
    """

    def __init__(
        self,
        wanted: Sequence[str],
        namespace: Mapping[str, Any] | None,
        executions: Sequence[Execution],
        runs: Sequence[Run],
        trained: Sequence[Mapping[str, Weights]] = (),
    ) -> None:
        self._wanted, self.executions, self.runs, self.trained = wanted, executions, runs, trained
        self.namespace, self._is_live = namespace or {}, namespace is not None
        self.declared: set[str] = set()
        self.encoded: dict[str, Encoded] = {}
        self.errors: dict[str, CannotSendError] = {}
        self.travels: dict[str, Travel] = {}

    def declare(self, problems: list[Problem], warnings: list[str]) -> None:
        """Encode what the user has named in ``values=``; add what stands in the way."""
        for name in self._wanted:
            if name not in self.namespace and self._is_live:
                problems.append(
                    Problem(
                        f"values={name!r}",
                        "there is no such name in the notebook.",
                        "Run a cell above the call that sets it.",
                    )
                )
                continue
            if name in self.runs[-1].touched:
                warnings.append(
                    f"values={name!r}: the cell that makes the call sets or changes `{name}` itself, so its code is "
                    "sent and not the value."
                )
                continue
            try:
                if self._is_live:
                    self.encoded[name] = encode(name, self.namespace[name], declared=True, is_local=is_local)
            except CannotSendError as error:
                if error.kind == "notebook":
                    warnings.append(
                        f"values={name!r}: `{name}` {error}; its cell runs again instead, so that the classes are the "
                        "same."
                    )
                else:
                    what = f"Cannot send `{name}` ({error}), declared in values=."
                    problems.append(Problem("", what, error.remedy))
                continue
            self.declared.add(name)

    def travel(self, name: str) -> Travel:
        """Say whether a value can travel, and encode it if it can."""
        if name in self.declared:
            return Travel(len(self.encoded[name].content) if self._is_live else 0)
        if name not in self.travels:
            value = self.namespace[name]
            weights = self._weights_of(name)
            if weights is not None:
                self.encoded[name] = weights
                self.travels[name] = Travel(len(weights.content), weights=True)
                return self.travels[name]
            try:
                if issubclass(type(value), _BY_NAME) and any(name in run.changed | run.between for run in self.runs):
                    raise CannotSendError("what it holds is not what its file makes")
                if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
                    raise CannotSendError("defined by code that is in no cell", kind="notebook")
                self.encoded[name] = self._encode(name)
                self.travels[name] = Travel(len(self.encoded[name].content))
            except CannotSendError as error:
                self.errors[name] = error
                self.travels[name] = Travel(refused=str(error))
        return self.travels[name]

    def _weights_of(self, name: str) -> Encoded | None:
        """Return what a training came to that a worker cannot repeat, if that is how the model is now."""
        last = max((index for index, run in enumerate(self.runs) if name in run.touched), default=0)
        trained = self.trained[last].get(name)
        if trained is None or trained.content is None:
            return None
        return Encoded("weights", trained.content, f"weights after {lower(self.executions[last].label)}")

    def _encode(self, name: str) -> Encoded:
        return encode(name, self.namespace[name], declared=False, arrays=True, limit=ROOM, is_local=is_local)

    def captured(self, plan: Plan, included: Sequence[int]) -> list[CapturedValue]:
        """Return the values of a plan, each with the cell of the program before which it is bound."""
        values = []
        for value in plan.values:
            encoded = self.encoded.get(value.name)
            if encoded is None:
                continue
            place = included.index(value.before)
            how = "declared" if value.name in self._wanted else "sent by value"
            cell = self.executions[value.maker].cell if value.maker is not None else ""
            values.append(
                CapturedValue(value.name, encoded.codec, encoded.content, place, f"{how}: {encoded.description}", cell)
            )
        return values

    def unused(self, plan: Plan) -> Iterator[str]:
        """Yield a sentence for each value that the user has named in vain."""
        sent = {value.name for value in plan.values}
        for name in self._wanted:
            if name in self.declared and name not in sent:
                yield f"values={name!r}: the call does not need `{name}`, so it is not sent."
