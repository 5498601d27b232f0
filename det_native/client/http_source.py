"""Facts about experiments from a master."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import requests

from det_native.client.events import EventStream
from det_native.client.loading import ArrivingContent, ArrivingFile, load_from
from det_native.client.persistence import over_cuts
from det_native.client.session import Session
from det_native.client.source import PATIENCE, Source
from det_native.client.transfer_bar import counted
from det_native.errors import (
    ArgumentError,
    CheckpointCorruptError,
    CheckpointError,
    NotFoundError,
    RequestError,
    StorageError,
    UnsupportedFeatureError,
)
from det_native.schema import rest, routes
from det_native.schema.clocks import TrialClock
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention
from det_native.schema.manifests import BundleManifest
from det_native.schema.outputs import MediaKind
from det_native.schema.query.filters import Filters
from det_native.schema.query.ordering import Order
from det_native.schema.registry import CheckpointChange, CheckpointVerified, ModelVersion
from det_native.schema.states import ExperimentState
from det_native.schema.summaries import TrialSummary

_PAGE = 10_000  # what the master gives at most for logs
_EXPERIMENTS = 1000  # for lists of experiments
_SUMMARIES = 200  # ids in one address
_STREAM_CHUNK = 4096
_FILE_CHUNK = 1 << 20
_VERIFY_SECONDS = 3600.0


class FoundExperiments(NamedTuple):
    """Experiments, how many there are in all, and what else is to be known."""

    experiments: list[rest.Experiment]
    total: int
    notice: str


class HttpSource(Source):
    """Implements ``Source``, which says what the methods do, over the master's REST interface."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __repr__(self) -> str:
        return f"HttpSource({self._session.url!r})"

    @property
    def session(self) -> Session:
        """The connection to the master."""
        return self._session

    @property
    def url(self) -> str:
        """Address of the master."""
        return self._session.url

    @property
    def patience(self) -> float:
        return PATIENCE if self._session.route is None else self._session.route.patience

    def revive(self) -> bool:
        from det_native.client.connect import revive

        return revive(self._session)

    def experiment(self, experiment_id: int) -> rest.ExperimentDetail:
        return self._session.call(routes.GET_EXPERIMENT, experiment_id=experiment_id)

    def experiments(self, limit: int, state: ExperimentState | None = None) -> list[rest.Experiment]:
        """Return the newest experiments, newest first; only those in a state, if one is given."""
        found: list[rest.Experiment] = []
        name, before = None if state is None else state.name, None
        while len(found) < limit:
            wanted = min(limit - len(found), _EXPERIMENTS)
            page = self._session.call(routes.LIST_EXPERIMENTS, limit=wanted, before=before, state=name)
            found += page
            if len(page) < wanted:
                break
            before = found[-1].id
        return found

    def find(self, filters: Filters, order: Order | None, limit: int | None) -> FoundExperiments:
        """Return experiments that filters let through, in an order: so many, or all of them.

        Raises
        ------
        ArgumentError
            If something in the filters cannot be understood.
        """
        wanted = {**filters.parameters(), "order_by": None if order is None else order.written}
        found, total, notice, after = list[rest.Experiment](), 0, "", None
        while limit is None or len(found) < limit:
            size = _EXPERIMENTS if limit is None else min(limit - len(found), _EXPERIMENTS)
            try:
                page, headers = self._session.call_with_headers(
                    routes.LIST_EXPERIMENTS, **wanted, limit=size, after=after
                )
            except RequestError as error:
                if error.status != requests.codes.bad_request:
                    raise
                raise ArgumentError(str(error)) from None
            found += page
            total, notice, after = int(headers[routes.TOTAL]), headers.get(routes.NOTICE, ""), headers.get(routes.NEXT)
            if after is None:
                break
        return FoundExperiments(found, total, notice)

    def summaries(self, experiment_ids: Sequence[int], *, best: bool = False) -> list[TrialSummary]:
        found: list[TrialSummary] = []
        for start in range(0, len(experiment_ids), _SUMMARIES):
            ids = list(experiment_ids[start : start + _SUMMARIES])
            page = self._session.call(routes.LIST_TRIAL_SUMMARIES, experiment_id=ids, best=best)
            found += page
        return found

    def trials(self, experiment_id: int) -> list[rest.Trial]:
        return self._session.call(routes.LIST_TRIALS, experiment_id=experiment_id)

    def trial(self, trial_id: int) -> rest.Trial:
        return self._session.call(routes.GET_TRIAL, trial_id=trial_id)

    def metrics(self, trial_id: int, kind: str, after_batch: int = 0) -> list[rest.MetricRow]:
        rows: list[rest.MetricRow] = []
        after: int | None = after_batch or None
        while True:
            page = self._session.call(routes.GET_METRICS, trial_id=trial_id, kind=kind, after_batch=after, limit=_PAGE)
            rows += page
            if not page:  # one with fewer rows than asked for may have had very long ones
                return rows
            after = rows[-1].batch

    def epochs(self, trial_id: int) -> list[rest.EpochRow]:
        return self._session.call(routes.GET_EPOCHS, trial_id=trial_id)

    def system(self, trial_id: int, points: int | None = None) -> list[rest.SystemSample]:
        return self._session.call(routes.GET_SYSTEM, trial_id=trial_id, points=points)

    def media(self, trial_id: int, kind: MediaKind | None = None, after: int = 0) -> list[rest.Medium]:
        found: list[rest.Medium] = []
        while True:
            page = self._session.call(routes.GET_MEDIA, trial_id=trial_id, kind=kind, after=after, limit=_PAGE)
            found += page
            after = found[-1].id if found else after
            if len(page) < _PAGE:
                return found

    def medium_content(self, medium: rest.Medium) -> bytes:
        return self._session.call(routes.GET_MEDIUM_CONTENT, trial_id=medium.trial_id, medium_id=medium.id)

    def clock(self, trial_id: int) -> TrialClock:
        return self._session.call(routes.GET_CLOCK, trial_id=trial_id)

    def curves(self, experiment_id: int, trial_id: int | None = None) -> list[rest.MetricCurve]:
        if trial_id is None:
            return self._session.call(routes.GET_EXPERIMENT_CURVES, experiment_id=experiment_id)
        return self._session.call(routes.GET_CURVES, trial_id=trial_id)

    def checkpoints(self, *, experiment_id: int | None = None, trial_id: int | None = None) -> list[rest.Checkpoint]:
        if trial_id is None:
            return self._session.call(routes.LIST_CHECKPOINTS, experiment_id=experiment_id)
        return self._session.call(routes.LIST_TRIAL_CHECKPOINTS, trial_id=trial_id)

    def checkpoint(self, uuid: str) -> rest.Checkpoint:
        return self._session.call(routes.GET_CHECKPOINT, uuid=uuid)

    def change_checkpoint(self, uuid: str, change: CheckpointChange) -> rest.Checkpoint:
        return self._session.call(routes.CHANGE_CHECKPOINT, change, uuid=uuid)

    def verify_checkpoint(self, checkpoint: rest.Checkpoint) -> CheckpointVerified:
        return self._session.call(routes.VERIFY_CHECKPOINT, uuid=checkpoint.uuid, timeout=_VERIFY_SECONDS)

    def delete_checkpoint(self, uuid: str) -> rest.Checkpoint:
        return self._session.call(routes.DELETE_CHECKPOINT, uuid=uuid)

    def versions_of(self, uuid: str) -> list[ModelVersion]:
        return self._session.call(routes.GET_VERSIONS_OF_CHECKPOINT, uuid=uuid)

    def artifacts(self, trial_id: int) -> list[rest.Artifact]:
        return self._session.call(routes.LIST_TRIAL_ARTIFACTS, trial_id=trial_id)

    def artifact_content(self, artifact: rest.Artifact, target: Path) -> None:
        if artifact.sha256 is None:
            raise StorageError(f"The content of {artifact.path!r} was not kept. {artifact.note}".strip())
        damaged = StorageError(f"The content of {artifact.path!r} has arrived damaged; try again.")
        arriving = ArrivingContent(target, sha256=artifact.sha256, size=artifact.size, damaged=damaged)
        try:
            over_cuts(self._session, partial(self._download_artifact, artifact, arriving))
        except RequestError as error:
            if error.status != requests.codes.conflict:
                raise
            raise StorageError(str(error)) from None
        finally:
            arriving.forget()

    def _download_artifact(self, artifact: rest.Artifact, arriving: ArrivingContent) -> None:
        with self._session.stream(
            routes.GET_ARTIFACT_CONTENT,
            trial_id=artifact.trial_id,
            path=artifact.path,
            sha256=artifact.sha256,
            offset=arriving.offset or None,
        ) as response:
            arriving.take(counted(response.iter_content(_FILE_CHUNK)))
        arriving.finish()

    def logs(self, trial_id: int, after: int = 0) -> list[rest.LogLine]:
        lines: list[rest.LogLine] = []
        while True:
            page = self._session.call(routes.GET_LOGS, trial_id=trial_id, after=after, limit=_PAGE)
            lines += page
            if len(page) < _PAGE:
                return lines
            after = lines[-1].id

    def events(self, experiment_id: int, after: int = 0) -> EventStream:
        return EventStream(
            connect=lambda last: _EventConnection(self._session, experiment_id, last),
            has_ended=lambda: self.experiment(experiment_id).state.terminal,
            after=after,
            patience=self.patience,
            goes_on=lambda: not self.experiment(experiment_id).state.terminal,
        )

    def kill(self, experiment_id: int) -> None:
        self._session.call(routes.KILL_EXPERIMENT, experiment_id=experiment_id)

    def stop(self, experiment_id: int) -> None:
        self._session.call(routes.STOP_EXPERIMENT, experiment_id=experiment_id)

    def pause(self, experiment_id: int) -> None:
        self._session.call(routes.PAUSE_EXPERIMENT, experiment_id=experiment_id)

    def change_resources(self, experiment_id: int, change: rest.ResourcesChange) -> None:
        self.change(experiment_id, rest.ExperimentChange(resources=change))

    def resume(self, experiment_id: int) -> None:
        self._session.call(routes.RESUME_EXPERIMENT, experiment_id=experiment_id)

    def change(self, experiment_id: int, change: rest.ExperimentChange) -> None:
        self._session.call(routes.CHANGE_EXPERIMENT, change, experiment_id=experiment_id)

    def deletion(self, experiment_id: int) -> Deletion:
        return self._session.call(routes.GET_DELETION, experiment_id=experiment_id)

    def delete(self, experiment_id: int) -> Deletion:
        return self._session.call(routes.DELETE_EXPERIMENT, experiment_id=experiment_id)

    def fork(self, experiment_id: int, wanted: ExperimentFork) -> rest.Experiment:
        return self._session.call(routes.FORK_EXPERIMENT, wanted, experiment_id=experiment_id, key=uuid4().hex)

    def continuation(self, experiment_id: int, wanted: ExperimentContinuation) -> rest.Experiment:
        return self._session.call(routes.CONTINUE_EXPERIMENT, wanted, experiment_id=experiment_id, key=uuid4().hex)

    def retain(self, experiment_id: int, wanted: Retention) -> Retained:
        return self._session.call(routes.SET_GC_POLICY, wanted, experiment_id=experiment_id)

    def download(self, checkpoint: rest.Checkpoint, directory: Path) -> None:
        try:
            for file in checkpoint.manifest.files:
                arriving = ArrivingFile(checkpoint.uuid, file, directory)
                try:
                    over_cuts(self._session, partial(self._download_file, arriving))
                finally:
                    arriving.forget()
        except (CheckpointCorruptError, RequestError) as error:
            if isinstance(error, RequestError) and error.status != requests.codes.conflict:
                raise
            for child in directory.iterdir():
                shutil.rmtree(child) if child.is_dir() else child.unlink()
            raise CheckpointCorruptError(str(error)) from None
        (directory / "manifest.json").write_text(checkpoint.manifest.model_dump_json(indent=1))

    def _download_file(self, arriving: ArrivingFile) -> None:
        """Have a file arrive, from where an earlier attempt was cut off."""
        file, offset = arriving.file.path, arriving.offset or None
        with self._session.stream(routes.GET_CHECKPOINT_FILE, uuid=arriving.uuid, path=file, offset=offset) as response:
            arriving.take(counted(response.iter_content(_FILE_CHUNK)))
        arriving.finish()

    def instead(self, checkpoint: rest.Checkpoint) -> rest.Checkpoint | None:
        try:
            return self._session.call(routes.GET_CHECKPOINT_INSTEAD, uuid=checkpoint.uuid)
        except NotFoundError:
            return None

    def load(self, checkpoint: rest.Checkpoint, directory: Path) -> Any:
        try:
            bundle = self.bundle(checkpoint.experiment_id)
        except UnsupportedFeatureError as error:
            raise CheckpointError(f"{error} checkpoint.download() has the weights.") from None
        return load_from(self, checkpoint, directory, files=self._files_of_earlier, bundle=bundle, read_blob=self.blob)

    @contextmanager
    def _files_of_earlier(self, uuid: str) -> Iterator[Path]:
        checkpoint = self.checkpoint(uuid)
        with tempfile.TemporaryDirectory(prefix="det-checkpoint-") as folder:
            self.download(checkpoint, Path(folder))
            yield Path(folder)

    def bundle(self, experiment_id: int) -> BundleManifest:
        """Return the experiment's bundle.

        Raises
        ------
        UnsupportedFeatureError
            If it could not be captured in the process that trained.
        """
        detail = self.experiment(experiment_id)
        if detail.bundle_id is None:
            lines = [line.strip(" -") for line in detail.no_program.splitlines() if line.strip()]
            why = " ".join(lines[:2]).rstrip(".") or "an earlier version ran it"
            raise UnsupportedFeatureError(f"The code of experiment {detail.id} could not be kept ({why}).")
        return self._session.call(routes.GET_BUNDLE, bundle_id=detail.bundle_id)

    def blob(self, sha256: str) -> bytes:
        return self._session.call(routes.GET_BLOB, sha256=sha256)


class _EventConnection:
    """One stream of server-sent events."""

    def __init__(self, session: Session, experiment_id: int, after: int) -> None:
        self._stack = ExitStack()
        self._response: requests.Response = self._stack.enter_context(
            session.stream(
                routes.STREAM_EVENTS,
                headers={"Accept": "text/event-stream", "Last-Event-ID": str(after)},
                experiment_id=experiment_id,
                after=after,
            )
        )

    def lines(self) -> Iterator[str]:
        """Yield lines as they arrive; a break raises MasterUnreachableError."""
        with self._stack:
            rest_of_line = b""
            # Where a proxy has taken the chunks away, a read waits until as many bytes as it asks for have come.
            size = _STREAM_CHUNK if self._response.raw.chunked else 1
            for chunk in self._response.iter_content(size):
                *complete, rest_of_line = (rest_of_line + chunk).split(b"\n")
                for line in complete:
                    yield line.removesuffix(b"\r").decode()

    def close(self) -> None:
        """Break the stream, from any thread: a read that waits for the master returns."""
        try:
            self._response.raw.shutdown()
        except (AttributeError, RuntimeError, ValueError, OSError):  # an older urllib3, or the stream has ended already
            self._response.close()
