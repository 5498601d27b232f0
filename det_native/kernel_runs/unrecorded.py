"""Facts of a run that no master has, from what it has reported: they are read, and stored nowhere again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter

from det_native.errors import NotRecordedError
from det_native.schema import rest, routes
from det_native.schema.config import ExperimentConfig
from det_native.schema.kernel_runs import KernelRun
from det_native.schema.ranking import score
from det_native.schema.states import CheckpointState, ExperimentState, MetricKind, TrialState

_REPORT: TypeAdapter[rest.Report] = TypeAdapter(rest.Report)
_ENDS = {"COMPLETED": TrialState.COMPLETED} | dict.fromkeys(("STOPPED", "INVALID_HYPERPARAMETERS"), TrialState.CANCELED)


class UnrecordedRun:
    """Answers in the place of a session with a master, as far as the reports of the run, in order, say.

    Parameters
    ----------
    ended : str or None
        When it ended.
    why_not : str
        Why no master has it, for what cannot be answered.
    """

    url = ""
    route = find = None

    def __init__(self, request: KernelRun, reports: Iterable[str], ended: str | None, why_not: str) -> None:
        self._request, self._ended, self._why_not = request, ended, why_not
        self._reports = [_REPORT.validate_json(text) for text in reports]
        self._rows: dict[str, list[rest.MetricRow]] = {kind: [] for kind in MetricKind}
        for report in self._all(rest.MetricsReport):
            columns = report.metrics | report.values
            for place, batch in enumerate(report.batches):
                found = {name: column[place] for name, column in columns.items() if column[place] is not None}
                self._rows[report.kind].append(rest.MetricRow(batch=batch, metrics=found))
        self.exit = next(iter(self._all(rest.ExitReport)), None)

    def call(self, route: Any, *_: Any, **asked: Any) -> Any:
        """Answer what a master would.

        Raises
        ------
        NotRecordedError
            If only a master could.
        """
        match route:
            case routes.GET_EXPERIMENT:
                return self._experiment()
            case routes.GET_TRIAL:
                return self._trial()
            case routes.LIST_TRIALS:
                return [self._trial()]
            case routes.GET_METRICS:
                return [row for row in self._rows[asked["kind"]] if row.batch > (asked["after_batch"] or -1)]
            case routes.GET_EPOCHS:
                return [report.row for report in self._all(rest.EpochReport)]
            case routes.LIST_CHECKPOINTS | routes.LIST_TRIAL_CHECKPOINTS:
                return [self._checkpoint(report) for report in self._all(rest.CheckpointReport)]
        raise NotRecordedError(self._why_not)

    call_with_headers = stream = call

    def _all(self, kind: type[Any]) -> list[Any]:
        return [report for report in self._reports if isinstance(report, kind)]

    def _compared(self) -> tuple[str, bool]:
        for report in self._all(rest.ComparisonReport):
            return report.name, report.smaller_is_better
        config = ExperimentConfig.model_validate(self._request.config)
        return config.metric, config.smaller_is_better

    def _checkpoint(self, saved: rest.CheckpointReport) -> rest.Checkpoint:
        manifest, own = saved.manifest, saved.manifest.own_metrics
        validated = {row.batch: row.metrics for row in self._rows[MetricKind.VALIDATION]}.get(manifest.batch, {})
        return rest.Checkpoint(
            **{name: getattr(manifest, name) for name in ("uuid", "batch", "size")},
            trial_id=0,
            experiment_id=0,
            state=CheckpointState.COMPLETED,
            metrics=validated if own is None else own,
            location=saved.location,
            created=self._request.started,
            manifest=manifest,
            trial_number=1,
        )

    def _shared(self) -> dict[str, Any]:
        """Return what an experiment and its only trial share."""
        metric, smaller = self._compared()
        found = [row.metrics[metric] for row in self._rows[MetricKind.VALIDATION] if metric in row.metrics]
        return {
            **dict.fromkeys(("created", "started"), self._request.started),
            "id": 0,
            "ended": self._ended,
            "best_validation": min(found, key=lambda value: score(value, smaller_is_better=smaller), default=None),
            "error": None if self.exit is None else self.exit.error,
        }

    def _trial(self) -> rest.Trial:
        lengths = [report.length for report in self._all(rest.StartedReport) if report.length]
        last = max((rows[-1].batch for rows in self._rows.values() if rows), default=0)
        return rest.Trial(
            **self._shared(),
            **self._request.model_dump(include={"hparams", "run_id"}),
            number=1,
            experiment_id=0,
            state=TrialState.RUNNING if self.exit is None else _ENDS.get(self.exit.reason, TrialState.ERROR),
            seed=self._request.trial_seed,
            restarts=0,
            batches=last if self.exit is None else self.exit.batch,
            target_batches=[self._request.length, *lengths][-1],
        )

    def _experiment(self) -> rest.ExperimentDetail:
        trial, (metric, smaller) = self._trial(), self._compared()
        done = trial.batches / trial.target_batches if trial.target_batches else 0.0
        return rest.ExperimentDetail(
            **self._shared(),
            **self._request.model_dump(include={"config", "framework", "test", "report", "no_program"}),
            name=ExperimentConfig.model_validate(self._request.config).title,
            state=ExperimentState[trial.state.name] if trial.state.terminal else ExperimentState.ACTIVE,
            bundle_id=None,
            metric=metric,
            smaller_is_better=smaller,
            progress=1.0 if trial.state is TrialState.COMPLETED else min(done, 1.0),
            trials=1,
            validates=not self._all(rest.NoValidationReport),
            in_kernel=True,
        )
