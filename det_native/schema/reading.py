"""A configuration as users give it (dictionary, YAML text, path) read into plain data."""

from __future__ import annotations

import json
import math
import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from det_native.errors import ConfigurationError, Problem

_SUFFIXES = (".yaml", ".yml", ".json")
_DEPTH = 50
# Fields of all sections together. Each that is not known is an error of its own, with what was meant.
_MOST_NAMES = 100_000
_TOO_DEEP = "is nested too deeply to be read."


@dataclass(frozen=True)
class Reading:
    """A configuration that was read.

    Attributes
    ----------
    raw : dict
        A copy of what was written; values that JSON cannot hold are still in it, so that ``load_config(raw)`` reports
        them.
    title : str
        What to call it in messages.
    problems : tuple of Problem
        What JSON cannot hold.
    """

    raw: dict[str, Any]
    title: str
    problems: tuple[Problem, ...] = ()


def read(config: Mapping[str, Any] | str | os.PathLike[str] | None) -> Reading:
    """Return the configuration as a dictionary of its own.

    Parameters
    ----------
    config
        A mapping; YAML text; a path, as ``Path`` or as text that ends in .yaml, .yml or .json; None for an empty one.

    Raises
    ------
    ConfigurationError
        If there is no such file, it is not YAML or JSON, or it holds something other than a mapping.
    """
    title = "experiment configuration"
    if config is None:
        return Reading({}, title)
    if isinstance(config, os.PathLike) or (isinstance(config, str) and _is_path(config)):
        path = Path(config).expanduser()
        title = f"experiment configuration {path}"
        found = _parse(_contents(path, title), title, is_json=path.suffix.lower() == ".json")
    elif isinstance(config, str):
        found = _parse(config, title, is_json=False)
    else:
        found = config
    if found is None:
        return Reading({}, title)
    if not isinstance(found, Mapping):
        raise _invalid(title, Problem("", _not_a_mapping(config, found)))
    reader = _Plain(keep=True)
    return Reading(reader.value(found, "") or {}, title, tuple(reader.problems))


def plain_mapping(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Return a copy of `values` that JSON can hold, and the problems with what JSON cannot hold (None in the copy).

    Tuples become lists, paths text, and numbers of numpy Python's.
    """
    reader = _Plain()
    plain: dict[str, Any] | None = reader.value(values, "")
    return plain or {}, reader.problems


def _is_path(text: str) -> bool:
    of_yaml = "\n" in text or ": " in text or text.lstrip().startswith(("{", "["))
    return not of_yaml and text.strip().lower().endswith(_SUFFIXES)


def _contents(path: Path, title: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise _invalid(
            title, Problem(str(path), f"there is no such file (seen from {Path.cwd()}).", "Check the path.")
        ) from None
    except (OSError, ValueError) as error:  # no such text, or a path with a NUL in it
        raise _invalid(title, Problem(str(path), f"cannot be read: {error}.")) from None


def _parse(text: str, title: str, *, is_json: bool) -> Any:
    if is_json:
        try:
            return json.loads(text, object_pairs_hook=_without_repeats)
        except _RepeatedNameError as error:
            raise _invalid(title, Problem(str(error), "is given twice.", "Keep one of the two.")) from None
        except json.JSONDecodeError as error:
            raise _invalid(title, Problem(f"line {error.lineno}, column {error.colno}", f"{error.msg}.")) from None
        except ValueError as error:  # a number of more than 4,300 digits
            raise _invalid(title, Problem("", f"is not read: {error}.")) from None
        except RecursionError:
            raise _invalid(title, Problem("", _TOO_DEEP)) from None
    return _parse_yaml(text, title)


def _parse_yaml(text: str, title: str) -> Any:
    import yaml

    from det_native.schema.yaml_text import parse_yaml

    try:
        return parse_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = ", ".join(part for part in (error.context, error.problem) if part)
        # What the constructor refuses is YAML, as far as its form goes.
        kind = "cannot be used" if isinstance(error, yaml.constructor.ConstructorError) else "is not YAML"
        raise _invalid(title, Problem(where, f"{kind}: {what}.", error.note or "")) from None
    except yaml.YAMLError as error:
        raise _invalid(title, Problem("", f"is not YAML: {error}.")) from None


class _RepeatedNameError(ValueError):
    """An object of a JSON text has a name twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _RepeatedNameError(name)
        found[name] = value
    return found


def _not_a_mapping(config: object, found: object) -> str:
    if isinstance(config, str) and isinstance(found, str):
        return (
            f"{found[:80]!r} is text, not fields with values; a path must end in .yaml, .yml or .json, "
            "and YAML has lines of the form  name: value."
        )
    return f"must be fields with values (a dictionary, YAML text or a path), not {type(found).__name__}."


def _invalid(title: str, problem: Problem) -> ConfigurationError:
    return ConfigurationError(f"The {title} cannot be read:", [problem])


class _Plain:
    """Makes plain data of one configuration; notes what cannot be made so, with its path.

    Parameters
    ----------
    keep : bool
        Whether to leave such values as they are, instead of None.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self._keep = keep
        self.problems: list[Problem] = []
        self._containers: list[int] = []
        self._names = 0

    def value(self, value: Any, where: str) -> Any:
        if isinstance(value, str):
            return str.__str__(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Mapping | list | tuple):
            return self._container(value, where)
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            number = float(value)
            if math.isfinite(number):
                return number
            return self._refused(value, where, f"is {number}; only finite numbers can be used.")
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        return self._refused(value, where, _foreign(value), "Use text, numbers, true or false, lists and dictionaries.")

    def _container(self, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...], where: str) -> Any:
        if id(value) in self._containers:
            return self._refused(None, where, "contains itself.")
        if len(self._containers) == _DEPTH:
            return self._refused(None, where, f"is nested more than {_DEPTH} deep.")
        if isinstance(value, Mapping):
            before, self._names = self._names, self._names + len(value)
            if self._names > _MOST_NAMES:
                if before > _MOST_NAMES:  # it was said
                    return None
                return self._refused(
                    None, where or "the configuration", f"is too large: there are more than {_MOST_NAMES:,} fields."
                )
        self._containers.append(id(value))
        if isinstance(value, Mapping):
            if where.startswith("notify[") and True in value:  # `on` of a reader of YAML 1.1
                value = {"on" if name is True else name: entry for name, entry in value.items()}
            plain: Any = {
                str.__str__(name) if isinstance(name, str) else name: self.value(
                    entry, f"{where}.{name}" if where else name or '""'
                )
                for name, entry in value.items()
                if self._is_name(name, where)
            }
        else:
            plain = [self.value(entry, f"{where}[{index}]") for index, entry in enumerate(value)]
        self._containers.pop()
        return plain

    def _is_name(self, name: object, where: str) -> bool:
        if isinstance(name, str) and name:
            return True
        remedy = f'Write it in quotes: "{name}".' if name != "" else "Give the field a name."
        what = f"has the name {name!r}, which is {'empty' if name == '' else 'not text'}."
        self.problems.append(Problem(where or "the configuration", what, remedy))
        return self._keep

    def _refused(self, value: Any, where: str, what: str, remedy: str = "") -> Any:
        self.problems.append(Problem(where, what, remedy))
        return value if self._keep else None


def _foreign(value: object) -> str:
    kind = type(value)
    if kind.__name__ == "bool_":
        return f"is {value!r} of numpy; write bool(...) around it."
    if kind.__module__ == "datetime":
        return f"is the date {value}; put it in quotes if text is meant."
    return f"is of type {kind.__module__}.{kind.__qualname__}, which a configuration cannot hold."
