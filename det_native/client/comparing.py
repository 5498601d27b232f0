"""Experiments side by side: what differs in their configurations and programs, and how they went."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from det_native.client import comparison_view, rendering
from det_native.client.arguments import checked_number, metric_names
from det_native.client.catalog import source_of
from det_native.client.differences import (
    Key,
    Table,
    differing,
    flat,
    packages_of,
    searched_config,
    table_of,
)
from det_native.client.handles import Experiment
from det_native.client.program_parts import Code, code_of, diff_of, text_diff
from det_native.client.source import Source
from det_native.errors import ArgumentError, DetError
from det_native.schema import rest
from det_native.schema.manifests import BundleManifest
from det_native.schema.metric_names import greater_is_better
from det_native.schema.query.matching import duration_milliseconds
from det_native.schema.summaries import MetricSummary

Given = Experiment | int | str


@dataclass(frozen=True)
class Compared:
    """One of the experiments, as it was when it was asked for."""

    id: Key
    handle: Experiment
    detail: rest.ExperimentDetail
    hyperparameters: dict[str, Any]
    metrics: list[MetricSummary]
    packages: dict[str, str]
    code: Code
    seconds: float | None

    def best(self, summary: MetricSummary) -> float | None:
        """Return the best value of a metric: by the search's word for its own, else by its name."""
        smaller = not greater_is_better(summary.name)
        if summary.name == self.detail.metric:
            smaller = self.detail.smaller_is_better
        return summary.minimum if smaller else summary.maximum


class Comparison:
    """Experiments side by side; a notebook shows it as a table. ``det.compare()`` makes one.

    Parameters
    ----------
    compared : sequence of Compared
    """

    def __init__(self, compared: Sequence[Compared]) -> None:
        self._compared = list(compared)
        first = self._compared[0]
        # Made at once: what was compared may be deleted before it is shown.
        self._cells = {
            each.id: diff_of(first.code, each.code, (f"experiment {first.id}", f"experiment {each.id}"))
            for each in self._compared[1:]
        }

    @property
    def ids(self) -> list[Key]:
        """Ids of the experiments, in the order in which they were given."""
        return [each.id for each in self._compared]

    @property
    def config(self) -> Table:
        """What differs in the configurations: by path and id. Hyperparameters of one value are not among it."""
        return differing(
            table_of({each.id: flat(searched_config(each.detail.config)) for each in self._compared}), self.ids
        )

    @property
    def hyperparameters(self) -> Table:
        """Hyperparameters of the best trials, by name and id; those that are the same everywhere, too."""
        return table_of({each.id: flat(each.hyperparameters) for each in self._compared})

    @property
    def cells(self) -> dict[Key, str]:
        """How the program of each further experiment differs from the first's, by id; empty where it is the same.

        A unified diff of the cells and of the files that are text; then a line for each file that is none, and for
        each value that was sent along and differs.
        """
        return dict(self._cells)

    def config_diff(self) -> str:
        """Return how the configuration of the last experiment differs from the first's, as a unified diff of YAML."""
        first, last = self._compared[0], self._compared[-1]
        before, after = (yaml_of(each.detail.config) for each in (first, last))
        return text_diff(before, after, (f"experiment {first.id}: config", f"experiment {last.id}: config"))

    @property
    def packages(self) -> Table:
        """Packages, and the Python, of which the experiments have different versions: by name and id."""
        return differing(table_of({each.id: each.packages for each in self._compared}), self.ids)

    @property
    def metrics(self) -> Any:
        """Metrics of the best trials: a row for each, with ``best``, ``last`` and the batch of that.

        A pandas DataFrame; without pandas a list of dict.
        """
        rows = self._metric_rows()
        if find_spec("pandas") is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=["experiment", "metric", "kind", "best", "last", "last_batch"])

    @property
    def durations(self) -> dict[Key, float | None]:
        """Seconds from start to end, or until now; None for one that has not started."""
        return {each.id: each.seconds for each in self._compared}

    def plot(self, *metrics: str | Sequence[str]) -> Any:
        """Return a matplotlib figure with a panel for each metric, in which the curves of all experiments lie.

        Parameters
        ----------
        *metrics : str or sequence of str
            Names of the metrics to draw, all by default.

        Raises
        ------
        ArgumentError
            If none of the experiments has such a metric.
        """
        return rendering.current().overlaid([each.handle for each in self._compared], metric_names(metrics))

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain data; ids are texts there."""
        tables = {"config": self.config, "hyperparameters": self.hyperparameters, "packages": self.packages}
        plain = {name: {row: _by_text(values) for row, values in table.items()} for name, table in tables.items()}
        facts = [
            {"id": each.id, "name": each.detail.name, "state": each.detail.state.name, "seconds": each.seconds}
            for each in self._compared
        ]
        return {"experiments": facts, **plain, "metrics": self._metric_rows(), "cells": _by_text(self.cells)}

    def _metric_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "experiment": each.id,
                "metric": summary.name,
                "kind": summary.kind.value,
                "best": each.best(summary),
                "last": summary.last,
                "last_batch": summary.last_batch,
            }
            for each in self._compared
            for summary in each.metrics
        ]

    def __repr__(self) -> str:
        return comparison_view.as_text(self._sections(), self.ids, self.cells)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        return comparison_view.as_html(self._sections(), self.ids, self.cells)

    def _sections(self) -> list[comparison_view.Section]:
        details = {each.id: each.detail for each in self._compared}
        facts: Table = {
            "name": {key: detail.name for key, detail in details.items()},
            "state": {key: detail.state.value for key, detail in details.items()},
            "created": {key: detail.created for key, detail in details.items()},
            "duration": {key: comparison_view.duration(value) for key, value in self.durations.items()},
            "trials": {key: detail.trials for key, detail in details.items()},
        }
        metrics: Table = {}
        for row in self._metric_rows():
            kind = "" if row["kind"] == "validation" else f" ({row['kind']})"
            for what in ("best", "last"):
                metrics.setdefault(f"{row['metric']}{kind}, {what}", {})[row["experiment"]] = row[what]
        return [
            ("", facts),
            ("metrics", metrics),
            ("hyperparameters", differing(self.hyperparameters, self.ids)),
            ("configuration", self.config),
            ("packages", self.packages),
        ]


def compare(experiments: Iterable[Given], master_url: str | None = None) -> Comparison:
    """Put experiments side by side: configuration, hyperparameters, cells, packages, metrics, durations.

    Parameters
    ----------
    experiments : iterable
        At least two: ids or handles.
    master_url : str, optional
        Default: ``DET_MASTER``; without it the master that runs on this machine.

    Returns
    -------
    Comparison
        Shown as a table; its attributes have the parts, ``plot()`` overlays the curves.

    Raises
    ------
    ArgumentError
        If fewer than two are given.
    NotFoundError
        If there is no such experiment.

    Examples
    --------
    >>> det.compare([7, 9]).plot("val_loss")
    """
    handles = handles_of(experiments, master_url)
    if len({handle.id for handle in handles}) < 2:
        raise ArgumentError("compare() takes at least two experiments, such as det.compare([7, 9]).")
    unique = {(handle.source.url, handle.id): handle for handle in handles}
    return Comparison([_compared(handle) for handle in unique.values()])


def handles_of(experiments: Iterable[Given] | Given, master_url: str | None = None) -> list[Experiment]:
    """Return handles of experiments that are given as ids or handles.

    Raises
    ------
    ArgumentError
        If something else is among them.
    """
    given = [experiments] if isinstance(experiments, Experiment | int | str) else list(experiments)
    master: Source | None = None
    found = []
    for each in given:
        if isinstance(each, Experiment):
            found.append(each)
        else:
            number = checked_number(each, "an experiment")
            master = source_of(master_url) if master is None else master
            found.append(Experiment(master, number))
    return found


def _compared(handle: Experiment) -> Compared:
    detail = handle.detail()
    best = handle.source.summaries([handle.id], best=True)
    bundle, problem = _bundle(handle)
    milliseconds = duration_milliseconds(detail, datetime.now(UTC))
    return Compared(
        id=handle.id,
        handle=handle,
        detail=detail,
        hyperparameters=best[0].hparams if best else {},
        metrics=best[0].metrics if best else [],
        packages=packages_of(bundle),
        code=Code(problem=problem) if bundle is None else code_of(bundle, handle.source.blob),
        seconds=None if milliseconds is None else milliseconds / 1000,
    )


def _bundle(handle: Experiment) -> tuple[BundleManifest | None, str]:
    """Return the program of an experiment; where it was not kept, None and the reason."""
    try:
        bundle: BundleManifest = handle.source.bundle(handle.id)
    except DetError as error:
        return None, str(error)
    return bundle, ""


def yaml_of(config: dict[str, Any]) -> str:
    """Return a configuration as YAML, as ``det experiment config`` prints it."""
    import yaml

    text: str = yaml.safe_dump(config, sort_keys=True, allow_unicode=True)
    return text


def _by_text(values: dict[Key, Any]) -> dict[str, Any]:
    return {str(key): json.loads(json.dumps(value, default=str)) for key, value in values.items()}
