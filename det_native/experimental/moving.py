"""A run in a kernel is sent to the cluster: its program, with the same configuration."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from det_native.capture.model import Bundle, BundleRow
from det_native.client.connect import connect
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.last import note_begun
from det_native.client.life import fork_body
from det_native.client.source import Source
from det_native.display.report import show_report
from det_native.display.text import title_of
from det_native.errors import ArgumentError
from det_native.experimental.cluster import for_master, send
from det_native.schema import rest
from det_native.schema.forks import forked_config
from det_native.schema.loading import load_config
from det_native.schema.manifests import BundleManifest, Sha256


def move(source: Source, experiment_id: int, place: str, config: Any, master_url: str | None) -> Experiment:
    """Submit the program of a kernel's run; see ``Experiment.move``."""
    if place != "cluster":
        raise ArgumentError(f'move({place!r}): a run in a kernel is moved to the "cluster"; there is no other place.')
    detail = source.experiment(experiment_id)
    if not detail.in_kernel:
        raise ArgumentError(
            f"Experiment {experiment_id} is on a cluster already: fork() runs its program there once more."
        )
    manifest = source.bundle(experiment_id)
    wanted = fork_body(None, config, None)
    changed = forked_config(detail.config, wanted.config, {})
    loaded = load_config({**changed, "name": wanted.config.get("name") or detail.name}, framework=detail.framework)
    folder = Path(tempfile.mkdtemp(prefix="det-native-move-"))
    try:
        bundle = for_master(_bundle(source, experiment_id, manifest, folder), master_url)
        shown = show_report(bundle.report)
        shown.say("Asking the master ...")
        session = connect(master_url, framework=detail.framework)
        made = send(session, loaded, bundle, shown, test=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    moved = Experiment(HttpSource(session), made.id)
    _describe(moved, detail)
    note_begun(moved)
    shown.say(f"{title_of(made.id, made.name)} is submitted. experiment.wait() waits for its end.")
    return moved


def _bundle(source: Source, experiment_id: int, manifest: BundleManifest, folder: Path) -> Bundle:
    """Return the program as it is sent, with its contents in files of `folder`."""
    contents: dict[Sha256, Path | bytes] = {}
    for sha256 in manifest.hashes():
        contents[sha256] = folder / sha256
        (folder / sha256).write_bytes(source.blob(sha256))
    rows = [BundleRow.about([file.sha256], what=file.path, how="file", size=file.size) for file in manifest.files] + [
        BundleRow.about([value.sha256], what=value.name, how="value", size=value.size) for value in manifest.values
    ]
    cells = len(manifest.program.cells)
    program = BundleRow.about(
        [],
        what=f"the program of experiment {experiment_id}",
        how="1 cell runs again" if cells == 1 else f"{cells} cells run again",
        size=0,
    )
    return Bundle(manifest=manifest, contents=contents, report=[program, *rows])


def _describe(moved: Experiment, detail: rest.ExperimentDetail) -> None:
    """Write of the new experiment what people have written of the kernel's run."""
    written = {"description": detail.description, "notes": detail.notes, "project": detail.project}
    change: dict[str, Any] = {name: text for name, text in written.items() if text}
    if detail.labels:
        change["labels"] = detail.labels
    if change:
        moved.source.change(moved.id, rest.ExperimentChange.model_validate(change))
