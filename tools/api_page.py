"""Write docs/api.md, every public name of det_native with its docstring.

``make docs`` runs it; the page is made of the code alone, and git ignores it. An argument is another file to write. The
exit status is 1 if a public name has no docstring.

Public are the names that the packages list, and the classes that these return: their own methods and properties that do
not begin with an underscore.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

TARGET = Path(__file__).resolve().parents[1] / "docs" / "api.md"
PACKAGES = (
    "det_native",
    "det_native.experimental",
    "det_native.experimental.keras",
    "det_native.experimental.pytorch",
    "det_native.experimental.estimator",
    "det_native.keras",
    "det_native.pytorch",
    "det_native.estimator",
    "det_native.tensorboard",
    "det_native.core",
    "det_native.experimental.core_v2",
    "det_native.util",
    "det_native.errors",
)
#: What init() gives; no annotation leads there from the names of the packages.
CONTEXTS = (
    "det_native.keras.context:TFKerasNativeContext",
    "det_native.pytorch.native:PyTorchNativeContext",
    "det_native.estimator.native:EstimatorNativeContext",
    "det_native.keras.trial_context:TFKerasTrialContext",
    "det_native.client.keras_experiment:KerasExperiment",
    "det_native.client.estimator_experiment:EstimatorExperiment",
    "det_native.client.artifacts:Artifact",
    "det_native.client.media:Medium",
    "det_native.client.tensorboard:TensorBoard",
)
#: What handles ask; nobody else does.
INNER = ("Source",)
INTRODUCTION = """\
# Python interface

Every public name, as its docstring says it. This page is made by `make docs`; change the docstrings instead,
and run it again. The names are those of `import det_native as det`; what the configuration may hold is in
[configuration.md](configuration.md), and the commands of the shell are listed by `det --help`.
"""

_SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
_LISTED = {"Parameters", "Attributes", "Raises", "Returns", "Yields", "Other Parameters", "Warns"}


@dataclass
class Member:
    """A method or property of a class, a function, or a value."""

    heading: str
    text: str


@dataclass
class Entry:
    """A public name."""

    heading: str
    text: str
    members: list[Member] = field(default_factory=list)


@dataclass
class Page:
    """What is written, and what lacks a docstring."""

    sections: list[tuple[str, str, list[Entry]]] = field(default_factory=list)
    undocumented: list[str] = field(default_factory=list)
    _seen: dict[int, str] = field(default_factory=dict)
    _waiting: list[type] = field(default_factory=list)

    def add_package(self, name: str) -> None:
        """Take up the public names of a package."""
        package = import_module(name)
        entries = []
        for public in sorted(dir(package)):
            value = getattr(package, public)
            if public.startswith("__") or inspect.ismodule(value):
                continue
            known = self._seen.get(id(value))
            shown = f"{_short(name)}.{public}"
            if known is not None and (inspect.isclass(value) or callable(value)):
                entries.append(Entry(shown, f"The same as `{known}`."))
                continue
            entries.append(self._entry(shown, value, public))
        self.sections.append((_short(name), inspect.getdoc(package) or "", entries))

    def add_returned(self) -> None:
        """Take up the classes that public names return, and those that these return."""
        entries = []
        for place in CONTEXTS:
            module, _, name = place.partition(":")
            self._want(getattr(import_module(module), name))
        while self._waiting:
            kind = self._waiting.pop(0)
            if id(kind) not in self._seen:
                entries.append(self._entry(kind.__name__, kind, kind.__name__))
        entries.sort(key=lambda entry: entry.heading)
        text = "Nobody makes these by their names: the functions and handles above give them."
        self.sections.append(("What is returned", text, entries))

    def _entry(self, shown: str, value: Any, name: str) -> Entry:
        self._seen.setdefault(id(value), shown)
        if inspect.isclass(value):
            return self._class(shown, value)
        if typing.get_origin(value) is not None:
            return Entry(shown, "A type for annotations.")
        if callable(value):
            self._want_hints(value)
            return Entry(f"{shown}{_signature(value)}", self._text(value, shown))
        return Entry(shown, f"`{value!r}`" if isinstance(value, str | int) else f"A `{type(value).__name__}`.")

    def _class(self, shown: str, kind: type) -> Entry:
        made = "" if issubclass(kind, BaseException | Enum | BaseModel) else _signature(kind)
        entry = Entry(f"class {shown}{made}", self._text(kind, shown))
        if issubclass(kind, BaseModel):
            return entry
        if issubclass(kind, Enum):
            entry.members += [Member(f"{name} = {one.value!r}", "") for name, one in kind.__members__.items()]
            return entry
        above = [base for base in kind.__mro__[1:] if id(base) in self._seen and _is_ours(base)]
        if above:
            entry.text += f"\n\nIt has what `{self._seen[id(above[0])]}` has, too."
        for name, member in _members(kind, above):
            title = f"{kind.__name__}.{name}"
            if isinstance(member, property):
                self._want_hints(member.fget)
                entry.members.append(Member(name, self._text(member, title)))
            else:
                self._want_hints(member)
                entry.members.append(Member(f"{name}{_signature(member)}", self._text(member, title)))
        return entry

    def _text(self, value: Any, shown: str) -> str:
        # A name that has none of its own would be told that of a class of Python's.
        text = inspect.getdoc(value) or ""
        if not text or (inspect.isclass(value) and not _own_doc(value)):
            self.undocumented.append(shown)
            return ""
        return markdown(text)

    def _want_hints(self, function: Any) -> None:
        try:
            hint = typing.get_type_hints(function).get("return")
        except (NameError, TypeError, AttributeError):  # what only a type checker imports
            return
        for kind in _classes(hint):
            self._want(kind)

    def _want(self, kind: type) -> None:
        ours = kind.__module__.startswith("det_native.") and not issubclass(kind, BaseModel)
        hidden = kind.__name__.startswith("_") or kind.__name__ in INNER
        if ours and not hidden and id(kind) not in self._seen and kind not in self._waiting:
            self._waiting.append(kind)


def _short(name: str) -> str:
    return name.replace("det_native", "det", 1)


def _own_doc(kind: type) -> bool:
    return any("__doc__" in vars(base) and vars(base)["__doc__"] for base in kind.__mro__ if _is_ours(base))


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("det_native", "det_harness")


def _members(kind: type, above: Sequence[type]) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that classes of ours define, in the order of their names.

    Those of `above` are told elsewhere.
    """
    defined: dict[str, Any] = {}
    told = {base for known in above for base in known.__mro__}
    for base in reversed(kind.__mro__):
        if _is_ours(base) and base not in told:
            defined |= vars(base)
    for name, value in sorted(defined.items()):
        if name.startswith("_"):
            continue
        member = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(member, property) or inspect.isfunction(member):
            yield name, member


def _classes(hint: Any) -> Iterator[type]:
    if inspect.isclass(hint) and not typing.get_args(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _classes(part)


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    parameters = [one for name, one in signature.parameters.items() if name not in ("self", "cls", "kind")]
    shown = [one.replace(annotation=inspect.Parameter.empty, default=_default(one.default)) for one in parameters]
    return str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))


class _Shown:
    """A default value that has no repr which reads the same in each process."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, Enum):
        return _Shown(f"{type(value).__name__}.{value.name}")
    try:
        ast.literal_eval(repr(value))
    except (SyntaxError, ValueError):
        return _Shown(getattr(value, "__name__", "..."))
    return value


def markdown(docstring: str) -> str:
    """Return a numpydoc docstring as Markdown."""
    pieces = _SECTION.split(docstring)
    parts = [_prose(pieces[0])]
    for title, text in zip(pieces[1::2], pieces[2::2], strict=True):
        parts.append(f"**{title}**")
        parts.append(_items(text) if title in _LISTED else _prose(text))
    return "\n\n".join(part for part in parts if part)


def _items(text: str) -> str:
    """Return what a section lists: a name and its kind at the margin, what is said of it indented below."""
    items: list[tuple[str, list[str]]] = []
    for line in text.strip("\n").splitlines():
        if line and not line[0].isspace():
            items.append((line, []))
        elif items:
            items[-1][1].append(line.strip())
    shown = []
    for head, lines in items:
        names, colon, kind = head.partition(" : ")
        said = _inline(" ".join(filter(None, lines)))
        title = f"`{names}`" + (f" ({_inline(kind)})" if colon else "")
        shown.append(f"- {title}{': ' if said else ''}{said}")
    return "\n".join(shown)


def _prose(text: str) -> str:
    """Return paragraphs; what is indented, as an example, becomes a block of code."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            parts.append("```\n" + inspect.cleandoc(paragraph) + "\n```")
        else:
            parts.append(_inline(" ".join(line.strip() for line in lines)))
    return "\n\n".join(filter(None, parts))


def _inline(text: str) -> str:
    """Return a line with the marks of Markdown."""
    text = _ROLE.sub(r"`\1`", text.replace("::", ":") if text.endswith("::") else text)
    pieces = re.split(r"(``[^`]+``|`[^`]+`)", text)
    shown = [
        f"`{piece.strip('`')}`" if piece.startswith("`") else piece.replace("<", "\\<").replace("*", "\\*")
        for piece in pieces
    ]
    return "".join(shown)


def page() -> Page:
    """Return what there is to write."""
    made = Page()
    for name in PACKAGES:
        made.add_package(name)
    made.add_returned()
    return made


def text_of(made: Page) -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION]
    for title, said, entries in made.sections:
        parts.append(f"## {title}\n\n{markdown(said)}\n")
        for entry in entries:
            parts.append(f"### `{entry.heading}`\n\n{entry.text}\n" if entry.text else f"### `{entry.heading}`\n")
            parts += [f"#### `{one.heading}`\n" + (f"\n{one.text}\n" if one.text else "") for one in entry.members]
    return "\n".join(parts).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    """Write the page; return the exit status."""
    made = page()
    for name in made.undocumented:
        print(f"{name} has no docstring.", file=sys.stderr)
    target = Path(arguments[0]) if arguments else TARGET
    target.write_text(text_of(made), encoding="utf-8")
    return int(bool(made.undocumented))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
