"""Write the description of the master's interface, from which the front end's types are made.

``make openapi`` runs this, then ``npm run types``; both results are committed, and a test says when they are stale.
With ``--check`` nothing is written, and the exit status is 1 if the file is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

from det_native.master.api.app import create_app
from det_native.master.service import Service

TARGET = Path(__file__).resolve().parents[1] / "jupyter_ext" / "src" / "shared" / "openapi.json"


class _Undisturbed:
    """Stands where a master would be: describing the interface asks nothing of it."""

    log = Path("master.log")


def description() -> str:
    """Return the description as text, the same for the same interface."""
    app = create_app(cast(Service, _Undisturbed()))
    schema = app.openapi()
    # It is not the release that the types depend on.
    schema["info"]["version"] = "1"
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check the file; return the exit status."""
    text = description()
    if "--check" in arguments:
        stale = not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text
        if stale:
            print("The description of the interface is stale: make openapi", file=sys.stderr)
        return int(stale)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
