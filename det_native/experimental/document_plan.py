"""What a document's call asks for, as far as its text tells: settings, configuration, and what only running tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from det_native.capture.document import Document, call_title
from det_native.capture.document_calls import FoundCall
from det_native.capture.document_values import Class, Unknown, parts
from det_native.capture.request import Request
from det_native.errors import ArgumentError, ConfigurationError, DetError, Problem, SignatureError
from det_native.experimental.arguments import NAMES, Place, arrange, check_names, resolve
from det_native.experimental.document_framework import call_text, framework_of
from det_native.experimental.document_place import with_slots
from det_native.experimental.settings import Settings, check_before_fit, check_settings, check_supported, left_to_fit
from det_native.frameworks import known_frameworks, trial_class_names
from det_native.schema.config import ExperimentConfig
from det_native.schema.loading import load_config
from det_native.schema.manifests import CallKind, Framework

_PLACE_ARGUMENTS = ("mode", "local", "test")


@dataclass
class Plan:
    """How a document is to be submitted.

    Attributes
    ----------
    kind : {'fit', 'train', 'create'}
    framework : str
    settings : Settings
    config : ExperimentConfig or None
        Complete; None if running the cells has to tell.
    partial : mapping
        The configuration as far as the text tells.
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
    partial: Mapping[str, Any] = field(default_factory=dict)
    written: Place = Place(local=False, test=False)  # noqa: RUF009 (frozen)
    reasons: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def slots(self) -> int:
        """Slots for each trial, as far as is known."""
        if self.config is not None:
            return self.config.resources.slots_per_trial
        resources = self.partial.get("resources")
        slots = resources.get("slots_per_trial") if isinstance(resources, Mapping) else None
        return slots if isinstance(slots, int) and slots > 0 else 1

    def request(self) -> Request:
        """Return what the call asks of capture."""
        settings = self.settings
        return Request(
            self.framework,
            self.kind,
            values=settings.values,
            include=settings.include,
            context_dir=settings.context_dir,
        )


def plan_document(document: Document, *, test: bool, slots: int | None) -> Plan:
    """Read what the last training call of a document asks for.

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
        place = Place(local=False, test=test)
        self.framework = framework = framework_of(document)
        self.result = Plan(self.call.kind, framework, Settings({}, place))

    def plan(self) -> Plan:
        self._check_call()
        arguments = self._arguments()
        try:
            self.result.written = resolve(**{name: _known(arguments.get(name)) for name in _PLACE_ARGUMENTS})
            self.result.settings = self._settings(arguments)
        except (DetError, TypeError) as error:
            self._refused(error)
            return self.result
        if not self.result.problems:
            self._configure()
        return self.result

    # The call itself.

    def _check_call(self) -> None:
        call, where = self.call, self._where(self.call)
        if call.loop is not None:
            what = f"{call.kind}() stands in a loop (line {call.loop}): a document is sent as one experiment."
            remedy = "Take it out of the loop, let a searcher vary the hyperparameters, or run the cell itself."
            self.result.problems.append(Problem(where, what, remedy))
        if call.doubt:
            self.result.reasons.append(f"{call_title(self.document)}: {call.doubt}")
        if not call.sure:
            self.result.reasons.append(f"{call_title(self.document)}: whether its model is wrapped shows when it runs")
        init = self.document.init
        if call.kind != "create" and init is None:
            self.result.reasons.append("where init() is called shows when the cells run")
        elif init is not None and (init.doubt or init.loop is not None):
            self.result.reasons.append(f"init(): {init.doubt or 'it stands in a loop'}")

    def _where(self, call: FoundCall) -> str:
        return f"{self.document.label(call.owner)}, line {call.node.lineno}"

    # Arguments of init() and create().

    def _arguments(self) -> dict[str, Any]:
        call = self.call if self.call.kind == "create" else self.document.init
        if call is None:
            return {}
        if not call.complete:
            self.result.reasons.append(f"the arguments of {call.kind}() are given by * or **")
        leading = ("trial_def", "config") if call.kind == "create" else ("config",)
        first = dict(zip(leading, call.positional, strict=False))
        try:
            check_names(call.kind, call.keywords, (*leading, *NAMES))
            arranged = arrange(call.kind, call.positional[len(leading) :], call.keywords)
        except (ArgumentError, SignatureError) as error:
            self.result.problems.append(Problem(self._where(call), str(error)))
            return first
        trial = first.get("trial_def", arranged.get("trial_def"))
        if isinstance(trial, Class):
            self._check_trial(call, trial)
        return {**first, **arranged}

    def _check_trial(self, call: FoundCall, trial: Class) -> None:
        for one in known_frameworks():
            if not one.trial_class and any(root.startswith(f"{one.api}.") for root in trial.roots):
                what = f"{trial.name}: trial classes of {one.name} come with a later version of det_native."
                remedy = f"create() takes a {trial_class_names()} now."
                self.result.problems.append(Problem(self._where(call), what, remedy))

    def _settings(self, arguments: Mapping[str, Any]) -> Settings:
        kept: dict[str, Any] = {}
        for name in ("context_dir", "command", "master_url", "values", "include"):
            value = arguments.get(name)
            unknown = [one for _, one in parts(value) if isinstance(one, Unknown)]
            if unknown:
                self.result.reasons.append(f"{name} is {self._shown(unknown[0])}")
            elif value is not None:
                kept[name] = value
        config = arguments.get("config")
        unknown_parts = list(_unknown_parts(config))
        for path, one in unknown_parts:
            self.result.reasons.append(f"{path or 'config'} is {self._shown(one)}")
        if isinstance(config, dict):
            self.result.partial = config
        checked = check_settings(
            {} if unknown_parts else config,
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
        changed = {**vars(checked), "place": self.result.settings.place}
        changed["config"] = with_slots(checked.config, self.slots)
        return Settings(**changed)

    def _shown(self, unknown: Unknown) -> str:
        label = self.document.label(unknown.cell)
        return f"`{unknown.why}` ({label[0].lower()}{label[1:]}, line {unknown.line})"

    # The configuration.

    def _configure(self) -> None:
        settings = self.result.settings
        config = self._config_argument()
        unknown = any(_unknown_parts(config))
        try:
            if unknown or self.call.kind != "create":
                known = with_slots(_known_parts(config), self.slots) if unknown else settings.config
                check_before_fit(replace(settings, config=known), self.framework)
            if unknown:
                return
            loaded = self._complete(settings)
            if loaded is None:
                return
            check_supported(loaded, settings, self.framework if self.call.kind != "create" else None, searches=True)
        except DetError as error:
            self._refused(error)
            return
        if not self.result.reasons:
            self.result.config = loaded

    def _config_argument(self) -> Any:
        call = self.call if self.call.kind == "create" else self.document.init
        if call is None:
            return None
        place = 1 if call.kind == "create" else 0
        return call.positional[place] if len(call.positional) > place else call.keywords.get("config")

    def _complete(self, settings: Settings) -> ExperimentConfig | None:
        """Complete the configuration, by the arguments of ``fit()`` too; None if those are known only at the call."""
        if self.call.kind == "create":
            return load_config(settings.config, warn=False)
        open_fields = left_to_fit(settings)
        said = call_text(self.call, self.framework)
        if said is None:
            self.result.reasons.append("what its training call asks for shows when it runs")
            return None
        unknown = [(path, reason) for path in sorted(open_fields) if (reason := said.unknown(path)) is not None]
        for path, reason in unknown:
            explained = self._shown(reason) if isinstance(reason, Unknown) else reason
            self.result.reasons.append(f"{path} is not in the configuration, and {explained}")
        if unknown:
            return None
        return load_config(settings.config, fills=said.fills(), defaults=said.defaults(), warn=False)

    def _refused(self, error: Exception) -> None:
        where = self._where(self.document.init or self.call)
        if isinstance(error, ConfigurationError):
            self.result.problems.extend(Problem(one.where or where, one.what, one.remedy) for one in error.problems)
        else:
            self.result.problems.append(Problem(where, str(error)))


def _unknown_parts(config: Any) -> Iterator[tuple[str, Unknown]]:
    """Yield (path, value) of what is not known of a configuration."""
    for path, value in parts(config):
        if not isinstance(value, int | float | str | bytes | type(None)) and not hasattr(value, "__fspath__"):
            yield path, value if isinstance(value, Unknown) else Unknown(type(value).__name__.lower(), 0, 1)


def _known_parts(config: Any) -> dict[str, Any]:
    """Return a configuration without what is not known of it."""
    known = {}
    for name, value in config.items() if isinstance(config, dict) else ():
        if isinstance(value, dict):
            value = _known_parts(value) or None
        if value is not None and not any(_unknown_parts(value)):
            known[name] = value
    return known


def _known(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value
