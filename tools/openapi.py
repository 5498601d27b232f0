"""Write the description of the master's interface, from which the front end's types are made.

The build of the front end (``tools/build_hook.py``) runs this, then ``npm run types``; so does ``make openapi``. Git
ignores both results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from det_native.master.api.app import create_app
from det_native.master.service import Service

TARGET = Path(__file__).resolve().parents[1] / "jupyter_ext" / "src" / "generated" / "openapi.json"


class _NoMaster:
    """Stands where a master would be: describing the interface asks nothing of it."""

    log = Path("master.log")


def description() -> str:
    """Return the description as text, the same for the same interface."""
    app = create_app(cast(Service, _NoMaster()))
    schema = app.openapi()
    # It is not the release that the types depend on.
    schema["info"]["version"] = "1"
    _drop_defaults_of_bodies(schema)
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _drop_defaults_of_bodies(schema: dict[str, Any]) -> None:
    """Leave defaults only in what the master answers: openapi-typescript takes a field with a default for required."""
    components = schema["components"]["schemas"]
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    sent = _names([operation.get("requestBody") for operation in operations], components)
    answered = _names([operation["responses"] for operation in operations], components)
    for name in sent - answered:
        for field in components[name].get("properties", {}).values():
            field.pop("default", None)


def _names(parts: Any, components: dict[str, Any]) -> set[str]:
    """Return the names of all components that parts of a description refer to, by others too."""
    found: set[str] = set()
    new = set(_references(parts))
    while new:
        found |= new
        new = set(_references([components[name] for name in new])) - found
    return found


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        reference = part.get("$ref")
        if isinstance(reference, str):
            yield reference.rpartition("/")[2]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _references(each)


def main() -> None:
    """Write the file."""
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(description(), encoding="utf-8")


if __name__ == "__main__":
    main()
