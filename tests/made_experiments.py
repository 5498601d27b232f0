"""Makes experiments that a test needs no master for: their facts are in memory, and it may change them."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import det_native.display  # noqa: F401 (makes handles show themselves)
from det_native.client.handles import Experiment
from det_native.client.source import Source
from det_native.errors import MasterUnreachableError, NotFoundError, RequestError
from det_native.schema import rest
from det_native.schema.drawn import drawn
from det_native.schema.numbers import number as measured
from det_native.schema.outputs import MediaKind
from det_native.schema.states import ExperimentState, MetricKind, TrialState
from det_native.schema.summaries import MetricSummary, TrialSummary

CREATED = "2026-01-02T03:04:05.000Z"


class MadeSource(Source):
    """Facts of one experiment, as a master would tell them."""

    def __init__(self, detail: rest.ExperimentDetail) -> None:
        self.detail = detail
        #: Why nothing is told; empty while it is.
        self.away = ""
        self.content: dict[str, bytes] = {}
        self.written: list[rest.Artifact] = []
        self.lines: list[rest.LogLine] = []
        self.manifest: Any = None
        self._trials: dict[int, rest.Trial] = {}
        self._rows: dict[tuple[int, str], list[rest.MetricRow]] = {}
        self._samples: dict[int, list[rest.SystemSample]] = {}
        self._media: dict[int, list[rest.Medium]] = {}
        self._checkpoints: dict[int, list[rest.Checkpoint]] = {}
        self._changed = threading.Condition()

    @property
    def url(self) -> str:
        return "unix:/made"

    def write(self, **changes: object) -> None:
        """Change facts of the experiment."""
        with self._changed:
            self.detail = self.detail.model_copy(update=changes)
            self._changed.notify_all()

    def write_trial(self, trial: rest.Trial) -> None:
        """Change a trial, or add it."""
        self._trials[trial.id] = trial

    def write_rows(self, trial_id: int, kind: str, rows: list[rest.MetricRow]) -> None:
        """Have these be the rows of a trial."""
        self._rows[trial_id, kind] = rows

    def write_samples(self, trial_id: int, samples: list[rest.SystemSample]) -> None:
        """Have this be what a trial uses."""
        self._samples[trial_id] = samples

    def write_media(self, trial_id: int, media: list[rest.Medium]) -> None:
        """Have this be what a trial has logged; `content` has it by its hash."""
        self._media[trial_id] = media

    def write_checkpoints(self, trial_id: int, checkpoints: list[rest.Checkpoint]) -> None:
        """Have these be the checkpoints of a trial."""
        self._checkpoints[trial_id] = checkpoints

    def experiment(self, experiment_id: int = 0) -> rest.ExperimentDetail:
        if self.away:
            raise MasterUnreachableError(self.away)
        return self.detail

    def trials(self, experiment_id: int = 0) -> list[rest.Trial]:
        return [self._trials[trial_id] for trial_id in sorted(self._trials)]

    def trial(self, trial_id: int) -> rest.Trial:
        if trial_id not in self._trials:
            raise NotFoundError(f"There is no trial {trial_id}.")
        return self._trials[trial_id]

    def summaries(self, experiment_ids: Sequence[int], *, best: bool = False) -> list[TrialSummary]:
        found = self.trials()
        if best:
            found = sorted(
                found, key=lambda trial: math.inf if trial.best_validation is None else trial.best_validation
            )
        return [
            TrialSummary(
                trial_id=trial.id,
                experiment_id=self.detail.id,
                hparams=trial.hparams,
                metrics=[each for kind in MetricKind for each in _summarised(kind, self.metrics(trial.id, kind))],
            )
            for trial in (found[:1] if best else found)
        ]

    def metrics(self, trial_id: int, kind: str, after_batch: int = 0) -> list[rest.MetricRow]:
        return [row for row in self._rows.get((trial_id, kind), []) if row.batch > after_batch or not after_batch]

    def epochs(self, trial_id: int) -> list[rest.EpochRow]:
        return []

    def system(self, trial_id: int, points: int | None = None) -> list[rest.SystemSample]:
        return self._samples.get(trial_id, [])

    def curves(self, experiment_id: int, trial_id: int | None = None) -> list[rest.MetricCurve]:
        trials = [trial.id for trial in self.trials()] if trial_id is None else [trial_id]
        found = [
            rest.MetricCurve(
                trial_id=trial, kind=kind, name=name, batch=batches, minimum=means, maximum=means, mean=means
            )
            for trial in trials
            for kind in MetricKind
            for name, (batches, values) in _columns(self.metrics(trial, kind)).items()
            for means in [[value if math.isfinite(value) else None for value in values]]
        ]
        return drawn(found, self.detail.framework, validates=self.detail.validates)

    def checkpoints(self, *, experiment_id: int | None = None, trial_id: int | None = None) -> list[rest.Checkpoint]:
        trials = [trial.id for trial in self.trials()] if trial_id is None else [trial_id]
        return [checkpoint for trial in trials for checkpoint in self._checkpoints.get(trial, [])]

    def artifacts(self, trial_id: int) -> list[rest.Artifact]:
        return [file for file in self.written if file.trial_id == trial_id]

    def logs(self, trial_id: int, after: int = 0) -> list[rest.LogLine]:
        return [line for line in self.lines if line.trial_id == trial_id and line.id > after]

    def media(self, trial_id: int, kind: MediaKind | None = None, after: int = 0) -> list[rest.Medium]:
        return [each for each in self._media.get(trial_id, []) if kind in (None, each.kind) and each.id > after]

    def medium_content(self, medium: rest.Medium) -> bytes:
        return self.content[medium.sha256]

    def bundle(self, experiment_id: int) -> Any:
        if self.manifest is None:
            raise NotFoundError("No program was kept.")
        return self.manifest

    def blob(self, sha256: str) -> bytes:
        return self.content[sha256]

    def pause(self, experiment_id: int) -> None:
        raise RequestError(409, "It cannot be paused.")

    def events(self, experiment_id: int, after: int = 0) -> Iterator[rest.Event]:
        """Yield one event, at the end."""
        return _End(self, after)

    def wait_for_end(self, closed: threading.Event) -> bool:
        """Wait until the experiment has ended; False if that is closed before."""
        with self._changed:
            while not closed.is_set() and not self.detail.state.terminal:
                self._changed.wait(0.05)
        return not closed.is_set()


class _End(Iterator[rest.Event]):
    def __init__(self, source: MadeSource, after: int) -> None:
        self._source, self._after = source, after
        self._closed = threading.Event()

    def __next__(self) -> rest.Event:
        if not self._source.wait_for_end(self._closed):
            raise StopIteration
        self._closed.set()
        detail = self._source.detail
        data = rest.Experiment.model_validate(detail.model_dump()).model_dump(mode="json")
        return rest.Event(id=self._after + 1, type="experiment", experiment_id=detail.id, trial_id=None, data=data)

    def close(self) -> None:
        self._closed.set()


def trial_row(number: int, hparams: dict[str, Any], length: int, experiment_id: int = 1) -> rest.Trial:
    """Return a trial that has just begun."""
    return rest.Trial(
        id=number,
        number=number,
        experiment_id=experiment_id,
        run_id=None,
        state=TrialState.RUNNING,
        hparams=hparams,
        seed=7,
        restarts=0,
        batches=0,
        target_batches=length,
        best_validation=None,
        error=None,
        created=CREATED,
        started=CREATED,
        ended=None,
    )


def make_experiment(
    *,
    number: int = 1,
    name: str = "digits",
    trials: int = 1,
    hparams: dict[str, Any] | None = None,
    metric: str = "val_loss",
    error: rest.UserErrorInfo | None = None,
    rows: int = 4,
) -> Experiment:
    """Make an experiment that has ended, and return its handle; :func:`source_of` has its facts."""
    source = MadeSource(
        rest.ExperimentDetail(
            id=number,
            name=name,
            state=ExperimentState.ERROR if error else ExperimentState.COMPLETED,
            config={"searcher": {"name": "random" if trials > 1 else "single"}, "records_per_epoch": 0},
            bundle_id=None,
            framework="keras",
            metric=metric,
            smaller_is_better=True,
            progress=1.0,
            trials=trials,
            best_validation=1.0 / trials,
            error=error,
            created=CREATED,
            started=CREATED,
            ended=CREATED,
        )
    )
    for each in range(1, trials + 1):
        trial = trial_row(each, {"lr": 0.1 * each} | (hparams or {}), rows, number)
        ended = {"state": TrialState.COMPLETED, "batches": rows, "best_validation": 1.0 / each, "error": error}
        source.write_trial(trial.model_copy(update=ended))
        losses = [rest.MetricRow(batch=batch, metrics={"loss": 2.0 / batch}) for batch in range(1, rows + 1)]
        source.write_rows(each, "training", losses)
        source.write_rows(each, "validation", [rest.MetricRow(batch=rows, metrics={metric: 1.0 / each})])
    return Experiment(source, number)


def source_of(experiment: Experiment) -> MadeSource:
    """Return the facts of an experiment that was made."""
    assert isinstance(experiment.source, MadeSource)
    return experiment.source


def _columns(rows: list[rest.MetricRow]) -> dict[str, tuple[list[int], list[float]]]:
    columns: dict[str, tuple[list[int], list[float]]] = {}
    for row in rows:
        for name, given in row.metrics.items():
            if (value := measured(given)) is not None:
                batches, values = columns.setdefault(name, ([], []))
                batches.append(row.batch)
                values.append(value)
    return columns


def _summarised(kind: MetricKind, rows: list[rest.MetricRow]) -> Iterator[MetricSummary]:
    for name, (batches, values) in sorted(_columns(rows).items()):
        yield MetricSummary(
            kind=kind, name=name, last_batch=batches[-1], last=values[-1], minimum=min(values), maximum=max(values)
        )
