"""What a user holds of a trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from det_native.client import rendering, selection
from det_native.client.arguments import checked_kind, metric_names
from det_native.client.artifacts import Artifacts
from det_native.client.checkpoint import Checkpoint
from det_native.client.history import history_of, rows_of
from det_native.client.listing import Listing
from det_native.client.logs import Logs
from det_native.client.media import Media, media_of
from det_native.client.sdk.trial import TrialOfSdk
from det_native.client.short_forms import trial_short
from det_native.client.source import Source
from det_native.past_history import recorded_history
from det_native.schema import rest
from det_native.schema.outputs import DELETED
from det_native.schema.states import CheckpointState, MetricKind, TrialState
from det_native.schema.trial_names import trial_name


class Trial(TrialOfSdk):
    """One trial of an experiment.

    Parameters
    ----------
    source : Source
    trial : rest.Trial
        What is known of it.
    metric : str, optional
        Name of the searcher's metric; asked for when it is needed by default.
    """

    #: What changes is the experiment, not the notebook: capture tells this object by its identity.
    _det_known_by_identity = True

    def __init__(self, source: Source, trial: rest.Trial, metric: str | None = None) -> None:
        self._source = source
        self._known = trial
        self._metric = metric

    @property
    def source(self) -> Source:
        """Where the facts come from."""
        return self._source

    @property
    def id(self) -> int:
        """Number of the trial on its master, by which programs know it; see `number`."""
        return self._known.id

    @property
    def number(self) -> int:
        """Number of the trial inside its experiment, from 1: the 2 of ``7.2``, as it is shown everywhere."""
        return self._known.shown_number

    @property
    def experiment_id(self) -> int:
        """Number of its experiment."""
        return self._known.experiment_id

    @property
    def hparams(self) -> dict[str, Any]:
        """Value of every hyperparameter of this trial."""
        return dict(self._known.hparams)

    @property
    def state(self) -> TrialState:
        """State at this moment: Queued, Running, Completed, Stopped or Failed; see ``Experiment.state``."""
        return self.detail().state

    @property
    def slots(self) -> list[str]:
        """Slots that it holds at this moment, such as ``cuda:0``: it runs as one process on each."""
        return list(self.detail().slots)

    @property
    def best_validation(self) -> float | None:
        """Best value of the searcher's metric so far."""
        return self.detail().best_validation

    @property
    def metric(self) -> str:
        """Name of the searcher's metric; empty where there is none."""
        if self._metric is None:
            self._metric = self._source.experiment(self.experiment_id).metric
        return self._metric

    def metrics(self, kind: str = "training") -> list[dict[str, Any]]:
        """Return the rows of metrics in order, as ``{"batch": n, "name": value, ...}``.

        Parameters
        ----------
        kind : {"training", "validation", "logged", "system"}
            With ``"logged"``: what the code has logged by ``det.log()`` or ``context.log()``. With
            ``"system"``: what the processes of the trial used of their machine, as
            ``{"time": t, "rank": n, "cpu_percent": ..., "memory_bytes": ..., ...}``.

        Returns
        -------
        list of dict
            ``batch`` is the number of batches done, counted from 1; ``time`` is in seconds since 1970.

        Notes
        -----
        ``"system"`` rows cover the time since the row before of the same rank. A value that could not be measured is
        not in its row. ``cpu_percent`` is 100 for one processor that is busy all the time, so it may be more;
        ``memory_bytes`` is the resident memory of the process and of all that it has started; ``gpu0_percent`` and
        ``gpu0_memory_bytes`` are of the first GPU that the process sees; then there are ``disk_read``, ``disk_write``,
        ``network_received`` and ``network_sent``, each with ``_bytes_per_second``, the network's for the whole machine.

        Training metrics of Keras are Keras's own: means over the epoch so far, which begin anew with each epoch. Those
        of a ``PyTorchTrial`` are each batch's own.
        """
        return rows_of(self._source, self.id, checked_kind(kind))

    @property
    def history(self) -> dict[str, list[float]]:
        """Metrics by epoch so far, in the shape of Keras's ``History.history``; of Keras, what that has."""
        recorded = self._source.epochs(self.id)
        if recorded:
            return recorded_history(recorded)
        return history_of(
            self._source.experiment(self.experiment_id),
            self._known.hparams,
            self._rows(MetricKind.TRAINING),
            self._rows(MetricKind.VALIDATION),
            completed=self.state is TrialState.COMPLETED,
        )

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Checkpoints that exist, oldest first."""
        found = self._source.checkpoints(trial_id=self.id)
        existing = [each for each in found if each.state is CheckpointState.COMPLETED]
        return Listing(Checkpoint(self._source, each, self.metric) for each in existing)

    @property
    def media(self) -> Media:
        """Pictures, tables, texts and histograms that the trial has logged, in that order; see ``det.log_image``."""
        return media_of(self._source, self.id)

    @property
    def artifacts(self) -> Artifacts:
        """Files that the training has written in its working directory, by path, as they were written last.

        ``trial.artifacts["log.csv"].load()`` reads one, ``trial.artifacts.download()`` copies all.
        """
        written = [artifact for artifact in self._source.artifacts(self.id) if artifact.note != DELETED]
        return Artifacts(self._source, f"trial {self._name}", written)

    def top_checkpoint(self, sort_by: str | None = None, smaller_is_better: bool | None = None) -> Checkpoint:
        """Return the trial's best checkpoint.

        Parameters
        ----------
        sort_by, smaller_is_better
            See ``Experiment.top_checkpoint``.

        Raises
        ------
        CheckpointNotFoundError
            If there is none (yet).
        """
        (top,) = selection.best_checkpoints(
            self._source.checkpoints(trial_id=self.id),
            self._source.experiment(self.experiment_id),
            owner=f"Trial {self._name}",
            sort_by=sort_by,
            smaller_is_better=smaller_is_better,
            limit=1,
            per_trial=False,
        )
        return Checkpoint(self._source, top, sort_by or self.metric)

    def select_checkpoint(
        self,
        latest: bool = False,
        best: bool = False,
        uuid: str | None = None,
        sort_by: str | None = None,
        smaller_is_better: bool | None = None,
    ) -> Checkpoint:
        """Return the trial's last checkpoint, its best, or one by its uuid; see ``Experiment.select_checkpoint``.

        Raises
        ------
        ArgumentError
            If the arguments do not go together.
        CheckpointNotFoundError
            If there is none (yet).
        """
        selection.checked_choice(
            latest=latest, best=best, uuid=uuid, sort_by=sort_by, smaller_is_better=smaller_is_better
        )
        if best:
            return self.top_checkpoint(sort_by, smaller_is_better)
        found, owner = self._source.checkpoints(trial_id=self.id), f"Trial {self._name}"
        if uuid:
            chosen = selection.checkpoint_named(uuid, found, owner=owner)
        else:
            experiment = self._source.experiment(self.experiment_id)
            chosen = selection.latest_checkpoint(found, experiment, owner=owner)
        return Checkpoint(self._source, chosen, self.metric)

    def plot(self, *metrics: str | Sequence[str]) -> Any:
        """Return a matplotlib figure with a panel for each metric; see ``Experiment.plot``."""
        return rendering.current().figure(self, metric_names(metrics))

    @overload
    def logs(self, level: str | None = None, contains: str | None = None) -> Logs: ...

    @overload
    def logs(self, level: bool | None = None, contains: None = None, **of_sdk: Any) -> Iterator[str]: ...

    def logs(self, level: str | bool | None = None, contains: str | None = None, **of_sdk: Any) -> Logs | Iterator[str]:
        """Return the trial's log lines; print them, or iterate over them. See ``Experiment.logs``.

        With an argument of ``iter_logs`` (``follow=True``) it is that.
        """
        if of_sdk or isinstance(level, bool):
            return self.iter_logs(**({} if level is None else {"follow": level}) | of_sdk)
        return Logs(self._source.logs(self.id)).only(level, contains)

    def detail(self) -> rest.Trial:
        """Return everything that the source knows of the trial."""
        if not self._known.state.terminal:
            self._known = self._source.trial(self.id)
        return self._known

    def __repr__(self) -> str:
        return trial_short(self._known, self._metric or "")

    def __str__(self) -> str:
        return rendering.line_of(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return rendering.current().mimebundle(self)

    @property
    def _name(self) -> str:
        return trial_name(self.experiment_id, self.number)

    def _rows(self, kind: str) -> list[rest.MetricRow]:
        return self._source.metrics(self.id, kind)
