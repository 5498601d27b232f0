"""The worker's side: the program of each shape's bundle is run up to its call, and what that is given is compared.

Run with the name of a library, the folder that the notebook's side has filled, and a number. Each shape is run as it
is, and once for each of its mutations, up to that number.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from det_harness.frameworks.base import harness_of
from det_harness.program.calls import CallMatcher
from det_harness.program.earlier import files_on_worker
from det_harness.program.inputs import InputCheck
from det_harness.program.load import LoadHost
from det_harness.program.runner import ProgramRunner
from det_harness.trial import rng
from forks import forked, warm_up
from libraries import LIBRARIES

from det_native.errors import InputDiffersError
from det_native.runtime import hosted
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import BundleManifest
from det_native.schema.rest import CaptureRow
from det_native.storage.blobs import BlobStore
from det_native.storage.unpack import unpack_bundle

Mutation = tuple[str, str]


def main(library: str, folder: Path, most: int) -> None:
    """Write ``told.json`` into the folder: for each shape, and the first so many mutations of it, what was said."""
    shapes, _, framework, modules = LIBRARIES[library]
    warm_up(framework, modules)
    told: dict[str, Any] = {}
    for number, shape in enumerate(shapes):
        place = folder / str(number)
        there = json.loads((place / "notebook.json").read_text())
        runs = (
            {}
            if "failed" in there
            else {
                name: forked(partial(_run, place, mutation), place / f"worker-{run}" / "work")
                for run, (name, mutation) in enumerate(_runs(shape.mutations[:most]).items())
            }
        )
        told[shape.name] = {"put_right": shape.put_right, "notebook": there, "runs": runs}
    (folder / "told.json").write_text(json.dumps(told))


def _runs(mutations: tuple[Mutation, ...]) -> dict[str, Mutation | None]:
    return {"": None, **{f"{old!r} is {new!r}": (old, new) for old, new in mutations}}


def _run(place: Path, mutation: Mutation | None) -> dict[str, Any]:
    bundle = BundleManifest.model_validate_json((place / "bundle.json").read_text())
    if mutation is not None:
        bundle = _mutated(bundle, *mutation)
    told = _compared(bundle, place)
    return {"refused": told.refused, "rows": told.rows}


def _mutated(bundle: BundleManifest, old: str, new: str) -> BundleManifest:
    cells = tuple(cell.model_copy(update={"source": cell.source.replace(old, new)}) for cell in bundle.program.cells)
    if cells == bundle.program.cells:
        raise ValueError(f"no cell of the program has {old!r}")
    return bundle.model_copy(update={"program": bundle.program.model_copy(update={"cells": cells})})


@dataclass
class Told:
    """What the comparison of one call has said: an error, and rows of what differs or was put right."""

    refused: str = ""
    rows: list[str] = field(default_factory=list)


def _compared(bundle: BundleManifest, place: Path) -> Told:
    """Run a bundle's program up to the recorded call, as a worker does, and compare."""
    blobs = BlobStore(str(place / "blobs"))
    work = Path.cwd()
    unpack_bundle(bundle, blobs, work)
    importlib.import_module("det_native.compat")
    harness = harness_of(bundle.program.framework)
    harness.prepare_process()
    runner = ProgramRunner(bundle, blobs.read, work)
    runner.own_seed = True
    proof = bundle.proof
    assert proof is not None
    config = json.loads((place / "config.json").read_text())
    environment = TrialEnvironment(config=config, hparams=proof.hparams, trial_seed=proof.seed)
    rows: list[CaptureRow] = []
    title = runner.source.program.title
    check = InputCheck(proof, bundle.program, "error", title, read_blob=blobs.read, add_rows=rows.extend)
    host = _Host(environment, runner.calls, check, blobs.read)
    rng.seed_process(proof.seed)
    with harness.calls_taken(), hosted(host):
        runner.run()
    host.told.rows += [f"{row.what}: {row.note}." for row in rows]
    return host.told


class _Host(LoadHost):
    """Compares at the program's recorded call; notes what is said there, and whether it is an error."""

    role = "worker"

    def __init__(self, environment: TrialEnvironment, calls: CallMatcher, check: InputCheck, read_blob: Any) -> None:
        super().__init__(environment, calls, Path(), read_blob=read_blob, files=files_on_worker({}))
        self._check = check
        self.told = Told()

    def reached(self, payload: Any) -> None:
        """Compare."""
        rows = _Rows()
        logger = logging.getLogger("det_harness")
        logger.addHandler(rows)
        try:
            self._check.compare(payload)
        except InputDiffersError as error:
            self.told.refused = str(error)
        finally:
            logger.removeHandler(rows)
        self.told.rows = rows.texts


class _Rows(logging.Handler):
    """Keeps the warnings of the comparison beside errors and rows."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of a record."""
        self.texts.append(record.getMessage())


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
