"""Runs of versions in which a kernel kept its own: what lies in ``local/`` of the home becomes experiments, once.

::

    local/3/experiment.json         rest.ExperimentDetail; described.json has what people have written since
    local/3/bundle.json, no-program.txt, process.json, run.lock
    local/3/trials/1/trial.json     rest.Trial; the rest is of such models, one a line: {training,validation,logged},
                                    epochs, system, media, checkpoints, log, log.1 (the older half) .jsonl
    local/3/trials/1/marks.json, artifacts.json, tensorboard/
    local/3/trials/1/files/<uuid>/  the checkpoints
    local/3/trials/1/run/1/         what processes have reported whose own process has died: reports.jsonl, spool/
    local/blobs/                    contents of all of them
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter
from sqlalchemy import insert, update
from sqlalchemy.exc import IntegrityError

from det_native.errors import DetError
from det_native.master.flow.context import Context, tell_experiment
from det_native.master.flow.decide_kernel import STOPPED, who_ended
from det_native.master.flow.stores import absent
from det_native.master.store import artifacts, bundles, epochs, experiments, reports, runs, secrets, system, trials
from det_native.master.store import tables as table
from det_native.master.store.database import Transaction
from det_native.schema import rest
from det_native.schema.kernel_runs import KernelProcess
from det_native.schema.manifests import BundleManifest
from det_native.schema.outputs import Artifact, LoggedMedium, Medium, WrittenFile
from det_native.schema.processes import is_alive, is_near
from det_native.schema.query.moments import stored
from det_native.schema.run_ids import written
from det_native.schema.sealed import unseal
from det_native.schema.states import CheckpointState, ExperimentState, MetricKind, RunState, TrialState
from det_native.storage.blobs import BlobStore

logger = logging.getLogger(__name__)

_AT_ONCE = 5000
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_REPORT: TypeAdapter[rest.Report] = TypeAdapter(rest.Report)
_CHANGED = "It was changed or removed before its content was kept."

Model = TypeVar("Model", bound=BaseModel)


def take_over(context: Context, owner: str) -> None:
    """Make experiments of all of them; one that cannot be read stays where it is, and so does one that goes on."""
    root = context.places.home / "local"
    folders = sorted((each for each in _children(root) if each.name.isdigit()), key=lambda each: int(each.name))
    for folder in folders:
        try:
            if _goes_on(folder):
                continue
            if (folder / "experiment.json").is_file():
                _Old(context, owner, folder).take_over()
            gone = folder.rename(folder.with_name(f".removed-{folder.name}"))
        except (DetError, OSError, ValueError, KeyError, TypeError, IntegrityError) as error:
            what = " ".join(str(error).split())[:300]
            logger.error("The run local-%s cannot be taken over, and stays in %s: %s", folder.name, folder, what)
            continue
        shutil.rmtree(gone, ignore_errors=True)
    if root.is_dir() and not any(each.name.isdigit() for each in _children(root)):
        shutil.rmtree(root)


@dataclass
class _Kept:
    """What a trial has reported, as far as its process or those that it had started have written it."""

    rows: dict[MetricKind, dict[int, dict[str, Any]]] = field(default_factory=lambda: {kind: {} for kind in MetricKind})
    epochs: dict[int, rest.EpochRow] = field(default_factory=dict)
    samples: list[rest.SystemSample] = field(default_factory=list)
    media: list[tuple[LoggedMedium, str]] = field(default_factory=list)
    checkpoints: dict[str, rest.Checkpoint] = field(default_factory=dict)


class _Old:
    """One of them."""

    def __init__(self, context: Context, owner: str, folder: Path) -> None:
        self._context = context
        self._owner = owner
        self._folder = folder
        described = _json(folder / "described.json") or {}
        raw = {**(_json(folder / "experiment.json") or {}), **described}
        self._detail = rest.ExperimentDetail.model_validate(raw)
        self._trials = [
            rest.Trial.model_validate_json((each / "trial.json").read_bytes())
            for each in sorted(_children(folder / "trials"), key=lambda each: int(each.name))
            if (each / "trial.json").exists()
        ]
        heard = max(path.stat().st_mtime for path in folder.rglob("*.json*"))
        self._heard = stored(datetime.fromtimestamp(heard, UTC))
        self._process = _json(folder / "process.json")

    def take_over(self) -> None:
        """Store it all in one transaction, then move the files; once that has begun, the rest is done again."""
        run_ids = [self._run_id(trial) for trial in self._trials]
        with self._context.database.read() as connection:
            known = [run for run_id in run_ids if (run := runs.get(connection, run_id)) is not None]
        if not known:
            bundle = self._program()
            with self._context.database.write() as transaction:
                experiment_id = self._store(transaction, bundle)
                for trial, run_id in zip(self._trials, run_ids, strict=True):
                    self._store_trial(transaction, experiment_id, trial, run_id)
                self._end(transaction, experiment_id)
                tell_experiment(transaction, experiment_id)
                known = [run for run_id in run_ids if (run := runs.get(transaction.connection, run_id)) is not None]
            logger.info("local-%s is experiment %d", self._folder.name, experiment_id)
        for trial, run in zip(self._trials, known, strict=True):
            self._move(trial, run)

    def _run_id(self, trial: rest.Trial) -> str:
        """Return an id that is the same however often this is tried."""
        made = int(datetime.fromisoformat(trial.created).timestamp() * 1000)
        digest = hashlib.sha256(f"{self._folder}\0{self._detail.created}\0{trial.id}".encode()).digest()
        return written(made, int.from_bytes(digest[:10]))

    def _of_trial(self, trial: rest.Trial) -> Path:
        return self._folder / "trials" / str(trial.id)

    def _program(self) -> BundleManifest | None:
        """Return the program, if all of it can be kept."""
        path = self._folder / "bundle.json"
        if not path.is_file():
            return None
        bundle = BundleManifest.model_validate_json(path.read_bytes())
        self._bring(bundle.hashes())
        return None if absent(self._context.blobs, sorted(bundle.hashes())) else bundle

    def _bring(self, hashes: Iterable[str]) -> None:
        """Have blobs in the master's store that are there."""
        own = BlobStore(str(self._folder.parent / "blobs"))
        for sha256 in self._context.blobs.missing(sorted(hashes)):
            with suppress(DetError):
                self._context.blobs.put(sha256, own.read(sha256))

    def _store(self, transaction: Transaction, bundle: BundleManifest | None) -> int:
        detail = self._detail
        if bundle is not None:
            bundles.add(transaction, bundle)
        why = self._folder / "no-program.txt"
        no_program = why.read_text() if why.is_file() else "Files of its code are gone."
        notify = secrets.hide(transaction, self._owner, detail.config.get("notify") or [])
        new = experiments.NewExperiment(
            owner=self._owner,
            name=detail.name,
            config={**detail.config, "notify": notify},
            bundle_id=None if bundle is None else bundle.id,
            framework=detail.framework,
            metric=detail.metric,
            smaller_is_better=detail.smaller_is_better,
            report=detail.report,
            test=detail.test,
            description=detail.description,
            labels=tuple(detail.labels),
            project=detail.project,
            in_kernel=True,
            no_program="" if bundle is not None else no_program,
            created=detail.created,
        )
        return experiments.create(transaction, new)

    def _store_trial(self, transaction: Transaction, experiment_id: int, trial: rest.Trial, run_id: str) -> None:
        folder, connection = self._of_trial(trial), transaction.connection
        kept = _kept(folder, self._heard)
        self._bring(medium.sha256 for medium, _ in kept.media)
        trial_id = trials.create(
            transaction,
            experiment_id,
            request=trial.shown_number - 1,
            hparams=trial.hparams,
            seed=trial.seed,
            target_batches=trial.target_batches,
            warm_start=trial.warm_start,
            started=trial.started or trial.created,
        )
        begun = trial.started or trial.created
        runs.create(transaction, trial_id, run_id, token_hash="", slots=[], created=begun)
        for report in _reports(kept):
            reports.accept(transaction, run_id, rest.ReportBatch(reports=[report]))
        for row in kept.epochs.values():
            epochs.add(transaction, trial_id, 1, row)
        system.add(transaction, trial_id, 1, kept.samples)
        logged = [
            {"trial_id": trial_id, "run": 1, "created": created, **medium.model_dump(mode="json")}
            for medium, created in kept.media
        ]
        lines = [
            {"trial_id": trial_id, "run_id": run_id, **line.model_dump(include={"time", "stream", "text", "rank"})}
            for line in _log(folder)
        ]
        marks = _json(folder / "marks.json") or {}
        found = [
            {
                **one.model_dump(mode="json", include={"uuid", "batch", "state", "size", "created", "manifest"}),
                "trial_id": trial_id, "experiment_id": experiment_id, "run_id": run_id,
                "location": f"{self._context.places.checkpoints}/{one.uuid}",
                "metadata": {}, "pinned": False,
                **marks.get(one.uuid, {}),
            }
            for one in kept.checkpoints.values()
        ]  # fmt: skip
        for where, rows in ((table.media, logged), (table.logs, lines), (table.checkpoints, found)):
            if rows:
                connection.execute(insert(where), rows)
        written = [self._written(file) for file in _json(folder / "artifacts.json") or ()]
        artifacts.add(transaction, trial_id, 1, written)
        names = {"restarts", "best_at", "error", "notice", "warning"}
        if trial.state.terminal:
            names |= {"state", "best_validation"}
        same = {"state": TrialState.CANCELED, "stages": trial.stages or None, **trial.model_dump(include=names)}
        same["error"] = trial.error and trial.error.model_dump(mode="json")
        trials.update_row(transaction, trial_id, **same, ended=trial.ended or self._heard)
        batches = max(trial.batches, *(max(rows, default=0) for rows in kept.rows.values()))
        runs.update_row(transaction, run_id, state=RunState.ENDED, ended=trial.ended or self._heard, batches=batches)
        connection.execute(table.batch_times.delete().where(table.batch_times.c.trial_id == trial_id))

    def _written(self, file: dict[str, Any]) -> WrittenFile:
        """Return a file that lies where the code has put it; its content is kept, if it is what was written."""
        artifact, location = Artifact.model_validate(file["artifact"]), Path(file["location"])
        sha256, note = artifact.sha256, artifact.note
        if sha256 is not None and self._context.blobs.missing([sha256]):
            try:
                found = location.stat()
                if (found.st_size, found.st_mtime_ns) != (file["size"], file["time"]):
                    raise FileNotFoundError(location)
                self._context.blobs.put_file(sha256, location)
            except (OSError, DetError):
                sha256, note = None, f"{note} {_CHANGED}".strip()
        return WrittenFile(path=artifact.path, sha256=sha256, size=artifact.size, batch=artifact.batch, note=note)

    def _end(self, transaction: Transaction, experiment_id: int) -> None:
        detail, names = self._detail, {"progress", "validates", "notes", "archived"}
        error = detail.error
        if detail.state.terminal:
            names |= {"state", "best_validation"}
        else:
            last = "".join(f", after batch {one.batches} of {one.target_batches}" for one in self._trials[-1:])
            who = who_ended(KernelProcess.model_validate(self._process or {"pid": 0, "start": "", "in_kernel": True}))
            error = rest.UserErrorInfo(type=STOPPED, message=f"{who}{last}.", traceback="")
        same = {"state": ExperimentState.CANCELED, **detail.model_dump(include=names)}
        same |= {"error": error and error.model_dump(mode="json"), "ended": detail.ended or self._heard}
        same |= {"kept_at": self._context.places.checkpoints, "collected": detail.state.terminal}
        mine = table.experiments.c.id == experiment_id
        transaction.connection.execute(update(table.experiments).where(mine).values(**same))

    def _move(self, trial: rest.Trial, run: runs.Run) -> None:
        """Bring checkpoints and event files to those of all others."""
        home, folder = self._context.places.home, self._of_trial(trial)
        for each in _children(folder / "files"):
            target = Path(self._context.places.checkpoints) / each.name
            if not each.name.startswith(".") and not target.exists():
                target.parent.mkdir(mode=0o700, exist_ok=True)
                each.rename(target)
        events = home / "tensorboard" / str(run.experiment_id) / str(run.trial_id)
        if (folder / "tensorboard").is_dir() and not events.exists():
            events.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / "tensorboard").rename(events)


def _kept(folder: Path, heard: str) -> _Kept:
    kept = _Kept()
    for kind in MetricKind:
        kept.rows[kind] = {row.batch: row.metrics for row in _lines(folder / f"{kind}.jsonl", rest.MetricRow)}
    kept.epochs = {row.batch: row for row in _lines(folder / "epochs.jsonl", rest.EpochRow)}
    kept.samples = list(_lines(folder / "system.jsonl", rest.SystemSample))
    kept.media = [(_logged(medium), medium.created) for medium in _lines(folder / "media.jsonl", Medium)]
    kept.checkpoints = {one.uuid: one for one in _lines(folder / "checkpoints.jsonl", rest.Checkpoint)}
    media: list[LoggedMedium] = []
    for report in _left(folder / "run" / "1"):
        match report:
            case rest.MetricsReport():
                kept.rows[report.kind] |= {batch: report.row(index) for index, batch in enumerate(report.batches)}
            case rest.EpochReport():
                kept.epochs[report.row.batch] = report.row
            case rest.SystemReport():
                kept.samples += report.samples
            case rest.MediaReport():
                media += report.items
            case rest.CheckpointReport(manifest=manifest) if Path(report.location).is_dir():
                one = rest.Checkpoint(
                    uuid=manifest.uuid, trial_id=0, experiment_id=0, batch=manifest.batch, metrics={},
                    state=CheckpointState.COMPLETED, size=manifest.size, location=report.location,
                    created=manifest.created, manifest=manifest,
                )  # fmt: skip
                kept.checkpoints.setdefault(one.uuid, one)
    # All of one run's are in its reports; the process that died has kept the first ones of them.
    kept.media += [(medium, heard) for medium in media[len(kept.media) :]]
    return kept


def _logged(medium: Medium) -> LoggedMedium:
    return LoggedMedium.model_validate(medium.model_dump(include=set(LoggedMedium.model_fields)))


def _reports(kept: _Kept) -> Iterator[rest.AnyReport]:
    """Yield all metrics as they are reported."""
    seq = 1
    yield rest.StartedReport(seq=seq, batch=0)
    for kind, rows in kept.rows.items():
        batches = sorted(rows)
        for some in (batches[start : start + _AT_ONCE] for start in range(0, len(batches), _AT_ONCE)):
            seq += 1
            names = dict.fromkeys(name for batch in some for name in rows[batch])
            cells = {name: [rows[batch].get(name) for batch in some] for name in names}
            numbers = {name: [cell if _is_number(cell) else None for cell in column] for name, column in cells.items()}
            others = {name: [None if _is_number(cell) else cell for cell in column] for name, column in cells.items()}
            yield rest.MetricsReport(
                seq=seq,
                kind=kind,
                batches=some,
                metrics={name: column for name, column in numbers.items() if any(cell is not None for cell in column)},
                values={name: column for name, column in others.items() if any(cell is not None for cell in column)},
            )


def _is_number(cell: Any) -> bool:
    return (isinstance(cell, int | float) and not isinstance(cell, bool)) or cell in _NOT_FINITE


def _left(run: Path) -> Iterator[rest.AnyReport]:
    found: dict[int, rest.AnyReport] = {}
    for path in (run / "reports.jsonl", *run.glob("spool/*.jsonl")):
        with suppress(ValueError, FileNotFoundError):  # what was written last may be there in part
            for line in path.read_bytes().split(b"\n")[:-1]:
                report = _REPORT.validate_json(unseal(line))
                found[report.seq] = report
    yield from (found[seq] for seq in sorted(found))


def _log(folder: Path) -> Iterator[rest.LogLine]:
    for name in ("log.1.jsonl", "log.jsonl"):
        yield from _lines(folder / name, rest.LogLine)


def _lines(path: Path, model: type[Model]) -> Iterator[Model]:
    if path.is_file():
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            yield model.model_validate_json(line)


def _json(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.is_file() else None


def _children(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []


def _goes_on(folder: Path) -> bool:
    """Return whether the kernel of an older version trains still: it holds a lock, unless what it has forked does."""
    import fcntl

    try:
        with (folder / "run.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        known = _json(folder / "process.json")
        process = None if known is None else KernelProcess.model_validate(known)
        near = process is not None and is_near(process.start, process.namespace)
        return process is None or not near or is_alive(process.pid, process.start)
