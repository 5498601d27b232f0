"""What a document's call asks for, as far as its text has literals: settings, configuration, and what running tells."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from det_native.capture.document import Document
from det_native.capture.document_calls import FoundCall, Imports
from det_native.capture.document_literals import Literals, NotLiteralError, mentions
from det_native.capture.request import Request
from det_native.errors import ArgumentError, ConfigurationError, DetError, Problem, SignatureError
from det_native.experimental.arguments import NAMES_OF_CREATE, NAMES_OF_INIT, Mode, Place, arrange, resolve
from det_native.experimental.document_place import with_slots
from det_native.experimental.settings import Settings, check_before_fit, check_settings, check_supported, left_to_fit
from det_native.experimental.unimported import MAIN, framework_in_text
from det_native.frameworks import get_framework, known_frameworks
from det_native.schema.config import ExperimentConfig
from det_native.schema.loading import load_config
from det_native.schema.manifests import CallKind, Framework
from det_native.schema.reading import read
from det_native.schema.signatures import check_names

_PLACE_ARGUMENTS = ("mode", "local", "test")


@dataclass
class Plan:
    """How a document is to be submitted.

    Attributes
    ----------
    kind : {'fit', 'train', 'train_and_evaluate', 'create'}
    framework : str
    settings : Settings
    config : ExperimentConfig or None
        Complete; None if running the cells has to tell.
    written : Place
        What the document itself says about where to run.
    reasons : list of str
        Why the cells must run first; empty if they need not.
    problems : list of Problem
    """

    kind: CallKind
    framework: Framework
    settings: Settings
    config: ExperimentConfig | None = None
    written: Place = Place(local=False, test=False)  # noqa: RUF009 (frozen)
    reasons: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def slots(self) -> int:
        """Slots for each trial, as far as is known."""
        if self.config is not None:
            return self.config.resources.slots_per_trial
        written = self.settings.config.get("resources") if isinstance(self.settings.config, Mapping) else None
        slots = written.get("slots_per_trial") if isinstance(written, Mapping) else None
        return slots if isinstance(slots, int) and slots > 0 else 1

    def request(self) -> Request:
        """Return what the call asks of capture."""
        return request_of(self.kind, self.framework, self.settings)


def request_of(kind: CallKind, framework: Framework, settings: Settings) -> Request:
    """Return what a call with these settings asks of capture."""
    return Request(framework, kind, values=settings.values, include=settings.include, context_dir=settings.context_dir)


def plan_document(document: Document, *, test: bool, slots: int | None) -> Plan:
    """Read what the training call of a document asks for.

    Parameters
    ----------
    document : Document
    test : bool
        One minimal loop only.
    slots : int or None
        Slots for each trial; None leaves it to the configuration.
    """
    return _Planner(document, test, slots).plan()


class _Planner:
    def __init__(self, document: Document, test: bool, slots: int | None) -> None:
        self.document, self.slots = document, slots
        self.call = document.call
        self.asking = self.call if self.call.kind == "create" else document.init
        self.imports = Imports(document.trees)
        self.result = Plan(self.call.kind, "", Settings({}, Place(local=False, test=test)))
        self.framework = self.result.framework = self._framework()

    def plan(self) -> Plan:
        self._check_call()
        arguments = self._arguments()
        try:
            self.result.written = self._written(arguments)
            self.result.settings = self._settings(arguments)
            if not self.result.problems:
                self._configure(arguments.get("config"))
        except (DetError, TypeError) as error:
            self._refused(error)
        return self.result

    # The call itself.

    def _framework(self) -> Framework:
        call, init = self.call, self.document.init
        of_model = next(one.name for one in known_frameworks() if one.init and not one.context_calls)
        if call.kind != "create":
            return call.framework or (init.framework if init is not None else None) or of_model
        trial = next(iter(call.node.args), None) or _keyword(call.node, "trial_def")
        text = ast.Module([one for tree in self.document.trees if tree is not None for one in tree.body], [])
        found = framework_in_text(f"{MAIN}:{trial.id}", Path.cwd(), text) if isinstance(trial, ast.Name) else None
        if found is None:
            self.result.reasons.append("which framework its trial class is of shows when the cells run")
            found = next(one for one in known_frameworks() if one.trial_class)
        return found.name

    def _check_call(self) -> None:
        call, title, result = self.call, self.document.title(), self.result
        if call.route.loop is not None:
            what = f"{call.kind}() stands in a loop (line {call.route.loop}): a document is sent as one experiment."
            remedy = "Take it out of the loop, let a searcher vary the hyperparameters, or run the cell itself."
            result.problems.append(Problem(self._where(call), what, remedy))
        if call.route.doubt:
            result.reasons.append(f"{title}: {call.route.doubt}")
        if call.route.in_function:
            result.reasons.append(f"{title} stands in a function, and running it tells with what")
        if not call.sure:
            result.reasons.append(f"{title}: whether its model is wrapped shows when it runs")
        inits = self.document.inits
        if call.kind != "create" and not inits:
            result.reasons.append("where init() is called shows when the cells run")
        elif len(inits) > 1:
            result.reasons.append(f"which of {len(inits)} calls of init() above it is meant shows when the cells run")
        elif inits and (inits[0].route.doubt or inits[0].route.loop is not None or inits[0].route.in_function):
            place = "a loop" if inits[0].route.loop is not None else "a function"
            result.reasons.append(f"init(): {inits[0].route.doubt or f'it stands in {place}'}")

    def _where(self, call: FoundCall) -> str:
        return f"{self.document.label(call.owner)}, line {call.node.lineno}"

    # Arguments of init() and create().

    def _arguments(self) -> dict[str, Any]:
        call = self.asking
        if call is None:
            return {}
        node, literals = call.node, self.document.literals()
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            self.result.reasons.append(f"the arguments of {call.kind}() are given by * or **")
        leading = ("trial_def", "config") if call.kind == "create" else ("config",)
        positional = [_value(literals, one) for one in node.args if not isinstance(one, ast.Starred)]
        keywords = {one.arg: _value(literals, one.value) for one in node.keywords if one.arg is not None}
        for name in keywords.keys() & {"mode"}:
            # The one argument that is no literal by its nature: a member of an enumeration of ours.
            path = self.imports.path(next(one.value for one in node.keywords if one.arg == name))
            member = path.rpartition(".")[2].lower()
            keywords[name] = member if path.startswith("det_native.") and member in set(Mode) else keywords[name]
        first = dict(zip(leading, positional, strict=False))
        try:
            names = NAMES_OF_CREATE if call.kind == "create" else NAMES_OF_INIT
            check_names(call.kind, keywords, (*leading, *names))
            return {**first, **arrange(call.kind, positional[len(leading) :], keywords)}
        except (ArgumentError, SignatureError) as error:
            self.result.problems.append(Problem(self._where(call), str(error)))
            return first

    def _written(self, arguments: Mapping[str, Any]) -> Place:
        said = {name: arguments.get(name) for name in _PLACE_ARGUMENTS}
        return resolve(**{name: None if isinstance(one, NotLiteralError) else one for name, one in said.items()})

    def _settings(self, arguments: Mapping[str, Any]) -> Settings:
        kept: dict[str, Any] = {}
        for name in ("context_dir", "command", "master_url", "values", "include"):
            value = arguments.get(name)
            if isinstance(value, NotLiteralError):
                self._must_run(name, value)
            elif value is not None:
                kept[name] = value
        config = arguments.get("config")
        if isinstance(config, NotLiteralError):
            self._must_run("config", config)
        checked = check_settings(
            {} if isinstance(config, NotLiteralError) else config,
            *(None, None, None),
            kept.get("context_dir"),
            kept.get("command"),
            kept.get("master_url"),
            kept.get("values", ()),
            kept.get("include", ()),
        )
        if checked.values:
            names = ", ".join(checked.values)
            self.result.reasons.append(f"values={names}: the cells that make what is sent as values")
        config = with_slots(checked.config, self.slots)
        return replace(checked, place=self.result.settings.place, config=config)

    def _must_run(self, what: str, unread: NotLiteralError) -> None:
        place = f"{self.document.within(unread.cell)}, line {unread.line}"
        self.result.reasons.append(f"{what} depends on `{unread.text}` ({place})")

    # The configuration.

    def _configure(self, config: Any) -> None:
        settings, creates = self.result.settings, self.call.kind == "create"
        if isinstance(config, NotLiteralError):
            return
        if not creates:
            check_before_fit(settings, self.framework)
            written = read(settings.config).raw
            filled = {name for name in get_framework(self.framework).call_fills if name not in written}
            missing = sorted(left_to_fit(settings) | filled)
            if missing:
                fields = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
                self.result.reasons.append(f"{fields} not in the configuration: what {self.call.kind}() is given tells")
                return
        loaded = load_config(settings.config, warn=False)
        check_supported(loaded, settings, None if creates else self.framework, searches=True)
        variables = self._variables()
        if not self.result.reasons:
            self.result.config = loaded.with_variables(variables)

    def _variables(self) -> dict[str, str]:
        """Return the variables by which the cells, or the notebook's server, have the framework imported."""
        names = get_framework(self.framework).deciding_variables if self.framework else ()
        for name in names:
            trees = ((at, self.document.trees[at]) for at in self.document.above)
            mentioned = [at for at, tree in trees if tree is not None and mentions(name, tree)]
            if mentioned:
                place = self.document.within(mentioned[-1])
                self.result.reasons.append(f"what {name} is, with which the framework is imported ({place})")
        return {name: os.environ[name] for name in names if name in os.environ}

    def _refused(self, error: Exception) -> None:
        where = self._where(self.asking or self.call)
        if isinstance(error, ConfigurationError):
            self.result.problems.extend(Problem(one.where or where, one.what, one.remedy) for one in error.problems)
        else:
            self.result.problems.append(Problem(where, str(error)))


def _value(literals: Literals, node: ast.expr) -> Any:
    """Return the value of an argument, or why it is no literal."""
    try:
        return literals.read(node)
    except NotLiteralError as error:
        return error


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in node.keywords if one.arg == name), None)
