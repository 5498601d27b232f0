"""The notebook's side: IPython runs the cells of each shape, and what their training call would submit is kept.

Run with the name of a library and a folder. Everything is the product's own up to the place where a master is asked:
the log, the call, what is known of its inputs, and the bundle.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from forks import forked, warm_up
from ipykernel.compiler import XCachingCompiler
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from libraries import LIBRARIES
from shape import Cell

from det_native._version import PROTOCOL
from det_native.capture import log
from det_native.capture.bundle import assemble
from det_native.client.handles import Experiment
from det_native.experimental import cluster
from det_native.home import result, waiting
from det_native.storage.blobs import BlobStore


def main(library: str, folder: Path) -> None:
    """Write, for each shape, ``bundle.json``, ``config.json`` and a store of blobs into a folder of its number."""
    shapes, pieces, framework, modules = LIBRARIES[library]
    warm_up(framework, modules)
    HistoryManager.enabled = False  # nothing is kept in the user's profile, and no thread is started
    shell = InteractiveShell.instance(compiler_class=XCachingCompiler)
    for number, shape in enumerate(shapes):
        place = folder / str(number)
        told = forked(partial(_run, shell, shape.cells(pieces), place), place / "notebook" / "work")
        (place / "notebook.json").write_text(json.dumps(told))


def _run(shell: InteractiveShell, cells: list[Cell], place: Path) -> dict[str, Any]:
    sys.path.insert(0, "")
    log.install()
    cluster.submit = partial(_take, place)
    result.note_result = waiting.wait_for_result = _wait_for_nothing  # type: ignore[assignment]
    for cell in cells:
        shell.run_cell(cell.source, store_history=True).raise_error()
    if not (place / "bundle.json").exists():
        return {"failed": "no cell has called fit()"}
    return {}


def _take(
    place: Path, kind: Any, payload: Any, config: Any, framework: Any, settings: Any, origin: Any, noted: Any = None
) -> Experiment:
    """Capture what is to be sent, and write it down instead of sending it."""
    capture = origin.capture(kind, payload, framework, settings)
    capture.history.proof, capture.history.proof_values = noted.proof, noted.values
    bundle = assemble(capture, context_dir=settings.context_dir, protocol=PROTOCOL)
    blobs = BlobStore(str(place / "blobs"))
    for sha256, content in bundle.contents.items():
        blobs.put(sha256, content if isinstance(content, bytes) else content.read_bytes())
    (place / "config.json").write_text(config.model_dump_json())
    (place / "bundle.json").write_text(json.dumps(bundle.manifest.content()))
    return Experiment(cast("Any", SimpleNamespace(url="")), 1)


def _wait_for_nothing(*submitted: Any) -> None:
    """Return at once: nothing is trained here."""


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    main(sys.argv[1], Path(sys.argv[2]))
