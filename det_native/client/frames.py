"""Experiments, trials and metrics as pandas data frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from det_native.client.arguments import SYSTEM, checked_kind
from det_native.client.catalog import find_experiments
from det_native.client.comparing import Given, handles_of
from det_native.client.differences import flat
from det_native.client.handles import Experiment
from det_native.client.history import rows_of
from det_native.client.state_words import shown_state
from det_native.errors import ArgumentError, MissingDependencyError
from det_native.schema import rest
from det_native.schema.metric_names import greater_is_better
from det_native.schema.query.filters import Filters
from det_native.schema.query.matching import duration_milliseconds
from det_native.schema.states import MetricKind
from det_native.schema.summaries import MetricSummary, TrialSummary

What = Literal["experiments", "trials", "metrics"]

_TIMES = ("created", "started", "ended")
# A metric of several kinds is named by the first; the others have theirs before the name.
_KINDS = (MetricKind.VALIDATION, MetricKind.LOGGED, MetricKind.TRAINING)


def to_dataframe(
    experiments: Iterable[Given] | Given | str | None = None,
    what: What = "experiments",
    kind: str | None = None,
    master_url: str | None = None,
) -> Any:
    """Return experiments, their trials or their metrics as a pandas DataFrame.

    Parameters
    ----------
    experiments : iterable of handles or ids, an id, or str, optional
        Which; a text that is not an id is a query, as of :func:`det.experiments`. By default all that are not archived.
    what : {"experiments", "trials", "metrics"}
        A row for each experiment (with hyperparameters and metrics of its best trial), each trial, or each time that
        metrics were reported.
    kind : {"validation", "training", "logged", "system"}, optional
        Of ``"metrics"``: which; those of validations by default, and where nothing validates those of the training.
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master of this machine.

    Returns
    -------
    pandas.DataFrame
        Times are datetimes in UTC, durations are timedeltas. Hyperparameters are in columns ``hp.<name>``, metrics in
        ``metric.<name>``: of the first two the best value, and in ``metric.<name>.last`` the last one.

    Raises
    ------
    MissingDependencyError
        If pandas is not installed.
    ArgumentError
        If the query does not parse, or `what` or `kind` is not one of those above.

    Examples
    --------
    >>> det.to_dataframe("label:baseline", what="trials").sort_values("metric.val_loss")
    """
    if what not in get_args(What):
        raise ArgumentError(f'what must be "experiments", "trials" or "metrics", not {what!r}.')
    if kind is not None:
        if what != "metrics":
            raise ArgumentError(f'kind={kind!r} goes with what="metrics" only.')
        checked_kind(kind)
    pandas = _pandas()
    handles = _chosen(experiments, master_url)
    if what == "metrics":
        return _metrics_frame(pandas, handles, kind)
    rows = _experiment_rows(handles) if what == "experiments" else _trial_rows(handles)
    frame = pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=["id", "state"])
    for name in _TIMES:
        if name in frame:
            frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
    if "duration" in frame:
        frame["duration"] = pandas.to_timedelta(frame["duration"], unit="s")
    return frame.convert_dtypes(convert_string=False, convert_floating=False) if rows else frame


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "to_dataframe() needs pandas, which is not installed here: pip install 'det-native[tables]'."
        ) from error
    return pandas


def _chosen(experiments: Iterable[Given] | Given | str | None, master_url: str | None) -> list[Experiment]:
    is_query = isinstance(experiments, str) and not experiments.isdecimal()
    if experiments is not None and not is_query:
        return handles_of(experiments, master_url)
    query = experiments if isinstance(experiments, str) else None
    found = find_experiments(master_url, None, Filters(query=query))
    if found.missing is not None:
        raise found.missing
    return [Experiment(found.source, each.id) for each in found.experiments] if found.source is not None else []


def _experiment_rows(handles: Sequence[Experiment]) -> list[dict[str, Any]]:
    best = _summaries(handles, best=True)
    return [_experiment_row(handle, best.get(handle.id, [])) for handle in handles]


def _experiment_row(handle: Experiment, best: Sequence[TrialSummary]) -> dict[str, Any]:
    detail = handle.detail()
    milliseconds = duration_milliseconds(detail, datetime.now(UTC))
    row: dict[str, Any] = {
        "id": handle.id,
        "name": detail.name,
        "state": shown_state(detail).value,
        "created": detail.created,
        "started": detail.started,
        "ended": detail.ended,
        "duration": None if milliseconds is None else milliseconds / 1000,
        "progress": detail.progress,
        "framework": detail.framework,
        "searcher": (detail.config.get("searcher") or {}).get("name"),
        "trials": detail.trials,
        "metric": detail.metric,
        "best_validation": detail.best_validation,
        "project": detail.project,
        "labels": list(detail.labels),
        "archived": detail.archived,
        "description": detail.description,
        "forked_from": detail.forked_from,
    }
    return row | (_columns_of(best[0], detail) if best else {})


def _trial_rows(handles: Sequence[Experiment]) -> list[dict[str, Any]]:
    known = _summaries(handles, best=False)
    rows = []
    for handle in handles:
        detail = handle.detail()
        of_trial = {each.trial_id: each for each in known.get(handle.id, [])}
        for trial in handle.source.trials(handle.id):
            milliseconds = duration_milliseconds(detail.model_copy(update=_times_of(trial)), datetime.now(UTC))
            row: dict[str, Any] = {
                "id": trial.id,
                "experiment": handle.id,
                "number": trial.number,
                "state": trial.state.value,
                "created": trial.created,
                "started": trial.started,
                "ended": trial.ended,
                "duration": None if milliseconds is None else milliseconds / 1000,
                "batches": trial.batches,
                "target_batches": trial.target_batches,
                "restarts": trial.restarts,
                "seed": trial.seed,
                "best_validation": trial.best_validation,
            }
            summary = of_trial.get(trial.id)
            rows.append(row | ({} if summary is None else _columns_of(summary, detail)))
    return rows


def _times_of(trial: rest.Trial) -> dict[str, Any]:
    return {"started": trial.started, "ended": trial.ended}


def _summaries(handles: Sequence[Experiment], *, best: bool) -> dict[int, list[TrialSummary]]:
    """Return what is known of the trials of experiments; a master is asked once for many of them."""
    found: dict[int, list[TrialSummary]] = {}
    of_masters: dict[str, list[Experiment]] = {}
    for handle in handles:
        of_masters.setdefault(handle.source.url, []).append(handle)
    for mine in of_masters.values():
        for each in mine[0].source.summaries([handle.id for handle in mine], best=best):
            found.setdefault(each.experiment_id, []).append(each)
    return found


def _columns_of(summary: TrialSummary, detail: rest.ExperimentDetail) -> dict[str, Any]:
    row = {f"hp.{name}": value for name, value in flat(summary.hparams).items()}
    for kind in _KINDS:
        for metric in (each for each in summary.metrics if each.kind is kind):
            name = f"metric.{metric.name}"
            name = f"metric.{kind.value}.{metric.name}" if name in row else name
            row[name], row[f"{name}.last"] = _best(metric, detail), metric.last
    return row


def _best(metric: MetricSummary, detail: rest.ExperimentDetail) -> float | None:
    smaller = detail.smaller_is_better if metric.name == detail.metric else not greater_is_better(metric.name)
    return metric.minimum if smaller else metric.maximum


def _metrics_frame(pandas: Any, handles: Sequence[Experiment], kind: str | None) -> Any:
    rows = []
    for handle in handles:
        wanted = kind or handle.detail().main_kind.value
        for trial in handle.source.trials(handle.id):
            for row in rows_of(handle.source, trial.id, wanted):
                place = {"experiment": handle.id, "trial": trial.id, "kind": wanted}
                beside = {name: row.pop(name) for name in ("batch", "time", "rank") if name in row}
                rows.append(place | beside | {f"metric.{name}": value for name, value in row.items()})
    first = ["experiment", "trial", "kind", *(("time", "rank") if kind == SYSTEM else ("batch",))]
    names = dict.fromkeys([*first, *(name for row in rows for name in row)])
    frame = pandas.DataFrame(rows, columns=list(names))
    if "time" in frame:
        frame["time"] = pandas.to_datetime(frame["time"], unit="s", utc=True)
    return frame
