"""What ``Trial`` has for code of Determined's SDK."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from det_native.client.checkpoint import Checkpoint
from det_native.client.listing import Listing
from det_native.client.log_filter import LogFilter
from det_native.client.sdk import metrics
from det_native.client.sdk.absent_names import AbsentNames
from det_native.client.sdk.metrics import TrialMetrics
from det_native.client.sdk.sorting import CheckpointSortBy, sorted_checkpoints
from det_native.client.source import Source
from det_native.errors import ArgumentError, UnsupportedFeatureError
from det_native.imports import load
from det_native.schema import rest
from det_native.schema.registry import OrderBy
from det_native.schema.rest import LogLine

_FOLLOW_SECONDS = 0.5


class TrialOfSdk(AbsentNames):
    """The part of ``Trial`` that has the names of Determined's SDK."""

    _sdk_class = "Trial"

    _source: Source
    _known: rest.Trial

    def get_experiment(self) -> Any:
        """Return its experiment."""
        # Its class is loaded by name: handles of experiments import those of trials.
        kind = load("det_native.client.sdk.waiting").SdkExperiment
        return kind(self._source, self._known.experiment_id)

    def reload(self) -> None:
        """Ask anew for all that is known of it."""
        self._known = self._source.trial(self._known.id)

    @property
    def summary_metrics(self) -> dict[str, Any]:
        """The last, smallest and largest value of each metric: ``summary_metrics["validation_metrics"]["loss"]``."""
        return metrics.summary(self._source, self._known.experiment_id, self._known.id)

    def list_checkpoints(
        self,
        sort_by: str | CheckpointSortBy | None = None,
        order_by: OrderBy | None = None,
        max_results: int | None = None,
    ) -> list[Checkpoint]:
        """Return the checkpoints that exist; see ``Experiment.list_checkpoints``."""
        found = self._source.checkpoints(trial_id=self._known.id)
        return listed_checkpoints(self._source, self._known.experiment_id, found, sort_by, order_by, max_results)

    def get_checkpoints(
        self, sort_by: str | CheckpointSortBy | None = None, order_by: OrderBy | None = None
    ) -> list[Checkpoint]:
        """As ``list_checkpoints``: the older name."""
        return self.list_checkpoints(sort_by, order_by)

    def iter_metrics(self, group: str) -> Iterator[TrialMetrics]:
        """Return what the trial has reported so far in a group, in order.

        Parameters
        ----------
        group : str
            ``"training"``, ``"validation"``, or a group that the code has reported metrics in.
        """
        return metrics.iter_metrics(self._source, [self._known.id], group)

    def stream_metrics(self, group: str) -> Iterator[TrialMetrics]:
        """As ``iter_metrics``: the older name."""
        return self.iter_metrics(group)

    def stream_training_metrics(self) -> Iterator[TrialMetrics]:
        """As ``iter_metrics("training")``: the older name."""
        return self.iter_metrics(metrics.TRAINING)

    def stream_validation_metrics(self) -> Iterator[TrialMetrics]:
        """As ``iter_metrics("validation")``: the older name."""
        return self.iter_metrics(metrics.VALIDATION)

    def kill(self) -> None:
        """End the trial now, with its experiment; of a search trials end by ``experiment.kill()`` only, all together.

        Raises
        ------
        UnsupportedFeatureError
            If the experiment may have other trials.
        """
        experiment = self._source.experiment(self._known.experiment_id)
        if (experiment.config.get("searcher") or {}).get("name", "single") != "single":
            raise UnsupportedFeatureError(
                f"Trial {self._known.id} is one of a search, which would go on without its result: experiment.kill() "
                "ends all trials of a search, trial.kill() the trial of an experiment that has no others."
            )
        self._source.kill(experiment.id)

    def iter_logs(
        self,
        follow: bool = False,
        *,
        head: int | None = None,
        tail: int | None = None,
        container_ids: Sequence[str] | None = None,
        rank_ids: Sequence[int] | None = None,
        stdtypes: Sequence[str] | None = None,
        min_level: Any = None,
        timestamp_before: str | int | None = None,
        timestamp_after: str | int | None = None,
        sources: Sequence[str] | None = None,
        search_text: str | None = None,
    ) -> Iterator[str]:
        r"""Return the lines of the trial's log, each with its ``\n``.

        Parameters
        ----------
        follow : bool
            Go on as more is written, until the trial has ended.
        head, tail : int, optional
            The first or last lines only.
        rank_ids : sequence of int, optional
            Lines of these processes.
        stdtypes : sequence of {"stdout", "stderr"}, optional
        min_level : str, optional
            As `level` of ``logs``.
        timestamp_before, timestamp_after : str or int, optional
            ISO 8601, or seconds since 1970.
        search_text : str, optional
            Lines with this text.
        container_ids, sources
            None: a trial has no containers, and all lines of its log are its own.

        Raises
        ------
        ArgumentError
            If they do not go together.
        """
        if container_ids or sources:
            raise ArgumentError(
                "iter_logs() takes no container_ids and sources: a trial runs as processes without containers "
                "(rank_ids names them), and all lines of its log are its own."
            )
        if head is not None and (follow or tail is not None):
            raise ArgumentError("iter_logs() takes head alone, without follow and tail.")
        level = getattr(min_level, "name", min_level)
        chosen = LogFilter("debug" if str(level).lower() == "trace" else level)
        before, after = _moment(timestamp_before, "timestamp_before"), _moment(timestamp_after, "timestamp_after")

        def wanted(lines: list[LogLine]) -> list[LogLine]:
            return [
                line
                for line in chosen.wanted(lines)
                if (rank_ids is None or (line.rank or 0) in rank_ids)
                and (stdtypes is None or line.stream in stdtypes)
                and (before is None or datetime.fromisoformat(line.time) < before)
                and (after is None or datetime.fromisoformat(line.time) > after)
                and (search_text is None or search_text in line.text)
            ]

        return _lines(self._source, self._known, wanted, follow=follow, head=head, tail=tail)


def _lines(
    source: Source,
    trial: rest.Trial,
    wanted: Callable[[list[LogLine]], list[LogLine]],
    *,
    follow: bool,
    head: int | None,
    tail: int | None,
) -> Iterator[str]:
    from det_native.client.following import LogReader

    reader = LogReader(source, trial.experiment_id, trial.id)
    lines = wanted(reader.read())
    if tail is not None:
        lines = lines[-tail:] if tail > 0 else []
    yield from (f"{line.text}\n" for line in lines[:head])
    while follow and not reader.ended:
        time.sleep(_FOLLOW_SECONDS)
        yield from (f"{line.text}\n" for line in wanted(reader.read()))


def _moment(given: str | int | None, name: str) -> datetime | None:
    if given is None:
        return None
    try:
        moment = datetime.fromtimestamp(given, UTC) if isinstance(given, int) else datetime.fromisoformat(given)
    except (TypeError, ValueError, OverflowError, OSError):
        raise ArgumentError(f"{name} must be a time such as '2026-11-30T10:00:00Z', not {given!r}.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def listed_checkpoints(
    source: Source,
    experiment_id: int,
    found: Sequence[rest.Checkpoint],
    sort_by: str | CheckpointSortBy | None,
    order_by: OrderBy | None,
    max_results: int | None,
) -> list[Checkpoint]:
    """Return the handles of checkpoints in order; see ``Experiment.list_checkpoints``."""
    experiment = source.experiment(experiment_id)
    metric = sort_by if type(sort_by) is str else experiment.metric
    ordered = sorted_checkpoints(found, sort_by, order_by, max_results, experiment)
    return Listing(Checkpoint(source, facts, metric) for facts in ordered)
