"""Which framework a document's call is of, and what reads that call's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from det_native.capture.document import Document
from det_native.capture.document_calls import FoundCall
from det_native.capture.document_values import Class, Unknown
from det_native.frameworks import get_framework, known_frameworks, resolve
from det_native.schema.manifests import Framework


class CallText(Protocol):
    """What the text of a native training call says about the configuration."""

    def unknown(self, path: str) -> str | Unknown | None:
        """Return why the call does not tell a field of the configuration; None if it does."""

    def fills(self) -> dict[str, Any]:
        """Return what the call says, by dotted path."""

    def defaults(self) -> dict[str, Any]:
        """Return what holds if neither the configuration nor the call says anything."""


def call_text(call: FoundCall, framework: Framework) -> CallText | None:
    """Return what reads a training call, None if its framework has nothing that does."""
    reference = get_framework(framework).call_text
    return cast(Callable[[FoundCall], CallText], resolve(reference))(call) if reference else None


def framework_of(document: Document) -> Framework:
    """Return the framework of a document's training call, by a guess where its text does not tell."""
    call, init = document.call, document.init
    if call.kind == "create":
        trial = call.positional[0] if call.positional else call.keywords.get("trial_def")
        roots = list(trial.roots) if isinstance(trial, Class) else []
        able = [one for one in known_frameworks() if one.trial_class]
        of_class = [one for one in able if any(root.startswith(f"{one.api}.") for root in roots)]
        return (of_class or able)[0].name
    of_model = (one.name for one in known_frameworks() if one.init and not one.context_calls)
    return call.framework or (init.framework if init is not None else None) or next(of_model)
