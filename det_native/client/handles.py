"""What a user holds: experiments, and with them their trials and checkpoints."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_native.client import ended, life, loading_into, moving, pareto, rendering, selection, waiting
from det_native.client.arguments import Show, checked_limit, checked_show, metric_names
from det_native.client.artifacts import Artifacts
from det_native.client.checkpoint import Checkpoint
from det_native.client.experiment_life import NOT_RECORDED
from det_native.client.listing import Listing
from det_native.client.logs import Logs
from det_native.client.media import Media
from det_native.client.notebook import write_notebook
from det_native.client.sdk.experiment import ExperimentOfSdk
from det_native.client.shares import change_resources
from det_native.client.source import Source
from det_native.client.state_words import shown_state
from det_native.client.trial import Trial
from det_native.errors import DetError, NotFoundError, interrupted, shown_shortly
from det_native.schema import rest
from det_native.schema.states import CheckpointState, ExperimentState

if TYPE_CHECKING:
    from det_native.client.tensorboard import TensorBoard


class Experiment(ExperimentOfSdk):
    """An experiment: its trials, their metrics, and what can be done with them.

    Facts are asked for when they are needed; once the experiment has ended, they are kept.

    Parameters
    ----------
    source : Source
        Where the facts come from.
    experiment_id : int or callable
        Number on the master; of a run in this process what returns it, or with ``ask=False`` 0 if it is not known.
    """

    #: What changes is the experiment, not the notebook: capture tells this object by its identity.
    _det_known_by_identity = True

    def __init__(self, source: Source, experiment_id: int | Callable[..., int]) -> None:
        self._source = source
        self._number = experiment_id
        self._ended: rest.ExperimentDetail | None = None
        self._metric: str | None = None
        self._last_event = 0
        self._result: ended.Result | None = None

    @property
    def source(self) -> Source:
        """Where the facts come from."""
        return self._source

    @property
    def state(self) -> ExperimentState:
        """State at this moment: Queued, Running, Paused, Completed, Stopped, Failed ...

        A string, equal to that word. Determined's name for it is ``state.name``: ``"CANCELED"`` where it is Stopped.
        """
        return shown_state(self.detail())

    @property
    def name(self) -> str:
        """Name: that of the configuration, unless it was renamed."""
        return self.detail().name

    @property
    def config(self) -> dict[str, Any]:
        """Configuration with all defaults filled in."""
        return self.detail().config

    @property
    def report(self) -> list[rest.CaptureRow]:
        """What was sent with the experiment: what, how, how large, from which cell."""
        return self.detail().report

    @property
    def trials(self) -> list[Trial]:
        """Trials, oldest first."""
        return Listing(Trial(self._source, trial, self.metric) for trial in self._source.trials(self._id))

    def trial(self, number: int) -> Trial:
        """Return one trial by its number inside the experiment, from 1: ``experiment.trial(2)`` is the 2 of ``7.2``.

        Raises
        ------
        ArgumentError
            If `number` is no whole number.
        NotFoundError
            If the experiment has no such trial (yet).
        """
        found = selection.trial_with_number(number, self._source.trials(self._id), owner=f"Experiment {self._id}")
        return Trial(self._source, found, self.metric)

    @property
    def best_trial(self) -> Trial:
        """The trial with the best validation of the searcher's metric; the first one while none has been validated.

        Where trials are compared by several metrics (``searcher.metrics``), it is by the first; see `best_trials`.

        Raises
        ------
        NotFoundError
            While the experiment has no trial yet.
        """
        smaller_is_better = self.detail().smaller_is_better
        best = selection.best_trial(self._source.trials(self._id), smaller_is_better=smaller_is_better)
        if best is None:
            raise NotFoundError(f"Experiment {self._id} has no trial yet; experiment.wait() waits for its end.")
        return Trial(self._source, best, self.metric)

    @property
    def best_trials(self) -> list[Trial]:
        """The trials of which no other is as good in every metric and better in one: the Pareto front.

        Without ``searcher.metrics`` it is those that share the best value of the one metric. What counts is the last
        validation of a trial, as for the search.
        """
        detail, trials = self.detail(), self._source.trials(self._id)
        values = pareto.last_values(self._source, detail, trials)
        best = set(pareto.front(values, [smaller for _, smaller in pareto.compared(detail)]))
        return Listing(Trial(self._source, trial, self.metric) for trial in trials if trial.id in best)

    @property
    def history(self) -> dict[str, list[float]]:
        """Metrics by epoch in the shape of Keras's ``History.history``; of the best trial in a search.

        Waits for the end of the experiment. A validation metric's name begins with ``val_``; where nothing validates,
        there are metrics of the training only, under the names that they were reported by. Where the length of an epoch
        is not known (``records_per_epoch``), there is one row for each validation.

        Raises
        ------
        ExperimentFailedError
            If the experiment fails.
        """
        self.wait()
        return self.best_trial.history

    @property
    def metric(self) -> str:
        """Name of the searcher's metric; empty where there is none."""
        return self.detail().metric if self._metric is None else self._metric

    def metrics(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of all trials as ``{"trial": id, "batch": n, "name": value, ...}``.

        Parameters
        ----------
        kind : {"validation", "training", "logged", "system"}, optional
            See ``Trial.metrics``; with ``"system"`` a row has ``time`` and ``rank`` in place of ``batch``. By default
            those of validations, and where nothing validates those of the training.
        """
        kind = self.detail().main_kind if kind is None else kind
        return [{"trial": trial.id} | row for trial in self.trials for row in trial.metrics(kind)]

    def wait(self, timeout: float | None = None, *, show: Show = "view") -> Experiment:
        """Block until the experiment has ended, and show how it goes on; return the experiment.

        What was submitted from this process has its result then: weights, names and files are put in place, once. Of an
        experiment that was stopped, those of its last checkpoint.

        An exception in the user's code is shown as soon as it is known, even if a retry follows. Ctrl-C (interrupting
        the cell) ends the waiting only; the experiment goes on.

        Parameters
        ----------
        timeout : float, optional
            Seconds; no limit by default.
        show : {"view", "bar", "none"}
            In a notebook a live view, a progress bar, or errors only. Elsewhere the first two are a progress bar.

        Raises
        ------
        UserCodeError
            If the experiment failed through the user's code, with cell and line; the message is the traceback, or one
            line if that was shown while waiting.
        ExperimentFailedError
            If it failed for another reason.
        TimeoutError
            If it has not ended after `timeout` seconds; it goes on.
        """
        shown: set[str] = set()
        outputs = rendering.current().outputs(self, checked_show(show))
        self._wait(timeout, shown, show, outputs)
        detail = waiting.patiently(self._source, self.detail)
        outputs.finish()
        result = ended.result_of(self)
        try:
            waiting.raise_failure(self._source, self._id, detail, shown)
        except DetError as failure:
            if result is not None:
                result.give_up(failure)
            raise
        if result is not None:
            waiting.patiently(self._source, result.bring)
        return self

    def bring(self) -> None:
        """Bring home what exceeded the 1,024 MB of changed objects that come by themselves: a line has named it.

        Raises
        ------
        NotFoundError
            If there is nothing, or another process has submitted the experiment.
        """
        result = ended.result_of(self.wait())
        if result is None or not result.bring_large():
            raise NotFoundError(f"Nothing of experiment {self._id} is to come: it is here, or another process has it.")

    def _wait(self, timeout: float | None, shown: set[str], show: Show, outputs: rendering.Outputs) -> None:
        try:
            if waiting.patiently(self._source, self.detail, partial(print, file=sys.stderr)).state.terminal:
                return
            view = rendering.current().follow(self, show)
            with rendering.current().waiting(self) as is_left:
                self._last_event = waiting.wait(
                    self._source,
                    self._id,
                    view,
                    timeout=timeout,
                    after=self._last_event,
                    shown=shown,
                    is_left=is_left,
                    outputs=outputs,
                )
        except waiting.WaitInterrupt:
            raise interrupted() from None
        except KeyboardInterrupt:
            waiting.tell_interrupt(self._id, print)
            raise interrupted() from None

    def logs(self, level: str | None = None, contains: str | None = None) -> Logs:
        """Return the log lines of all trials; print them, or iterate over them.

        Parameters
        ----------
        level : str, optional
            Lines of this level and above: debug, info, warning, error or critical. A traceback is an error.
        contains : str, optional
            Lines with this text, whatever the case of letters.
        """
        trials = self._source.trials(self._id)
        lines = [line for trial in trials for line in self._source.logs(trial.id)]
        numbers = {trial.id: trial.shown_number for trial in trials}
        found = Logs(sorted(lines, key=lambda line: line.id), numbers=numbers)
        return found.only(level, contains)

    def plot(self, *metrics: str | Sequence[str]) -> Any:
        """Return a matplotlib figure with a panel for each metric and a curve for each trial.

        Parameters
        ----------
        *metrics : str or sequence of str
            Names of the metrics to draw, all by default; or ``"search"`` for the search as a whole: the best value over
            time, how many trials were trained how far, and the searcher's metric over each hyperparameter.

        Raises
        ------
        ArgumentError
            If there is no such metric; the message lists those that there are.
        """
        return rendering.current().figure(self, metric_names(metrics))

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Checkpoints that exist, oldest first."""
        found = self._source.checkpoints(experiment_id=self._id)
        existing = [each for each in found if each.state is CheckpointState.COMPLETED]
        return Listing(Checkpoint(self._source, each, self.metric) for each in existing)

    @property
    def media(self) -> Media:
        """What the best or only trial has logged besides numbers; see ``Trial.media``."""
        return self.best_trial.media

    @property
    def artifacts(self) -> Artifacts:
        """Files that the training has written in its working directory; of a search, those of the best trial so far.

        See ``Trial.artifacts``; ``experiment.trials[2].artifacts`` has those of another one.
        """
        return self.best_trial.artifacts

    def top_checkpoint(self, sort_by: str | None = None, smaller_is_better: bool | None = None) -> Checkpoint:
        """Return the best checkpoint.

        Of a loop whose epochs are shorter than a second not every one has a checkpoint; a warning says so where the
        best one has none.

        Parameters
        ----------
        sort_by : str, optional
            Validation metric to compare by; the searcher's by default.
        smaller_is_better : bool, optional
            Direction; the searcher's by default.

        Raises
        ------
        CheckpointNotFoundError
            If there is none (yet).
        """
        checkpoint = self.top_n_checkpoints(1, sort_by, smaller_is_better)[0]
        if sort_by is None and (warning := selection.warning_of_better(checkpoint.metrics, self.detail())):
            warnings.warn(warning, UserWarning, stacklevel=2)
        return checkpoint

    def select_checkpoint(
        self,
        latest: bool = False,
        best: bool = False,
        uuid: str | None = None,
        sort_by: str | None = None,
        smaller_is_better: bool | None = None,
    ) -> Checkpoint:
        """Return the checkpoint that was taken last, the best one, or one by its uuid: exactly one of these.

        Parameters
        ----------
        latest, best : bool
        uuid : str, optional
            Or the beginning of it.
        sort_by : str, optional
            Validation metric by which it is the best one; the searcher's by default. Only with `best`, and together
            with `smaller_is_better`.
        smaller_is_better : bool, optional

        Raises
        ------
        ArgumentError
            If they do not go together.
        CheckpointNotFoundError
            If there is none (yet).
        """
        selection.checked_choice(
            latest=latest, best=best, uuid=uuid, sort_by=sort_by, smaller_is_better=smaller_is_better
        )
        if uuid:
            return self.checkpoint(uuid)
        if best:
            return self.top_checkpoint(sort_by, smaller_is_better)
        found = self._source.checkpoints(experiment_id=self._id)
        chosen = selection.latest_checkpoint(found, self.detail(), owner=f"Experiment {self._id}")
        return Checkpoint(self._source, chosen, self.metric)

    def top_n_checkpoints(
        self, limit: int, sort_by: str | None = None, smaller_is_better: bool | None = None
    ) -> list[Checkpoint]:
        """Return the best checkpoints of the best trials, one for each trial, best first.

        Parameters
        ----------
        limit : int
            How many at most.
        sort_by, smaller_is_better
            See ``top_checkpoint``.

        Raises
        ------
        CheckpointNotFoundError
            If there is none (yet).
        """
        top = selection.best_checkpoints(
            self._source.checkpoints(experiment_id=self._id),
            self.detail(),
            owner=f"Experiment {self._id}",
            sort_by=sort_by,
            smaller_is_better=smaller_is_better,
            limit=checked_limit(limit),
            per_trial=True,
        )
        metric = sort_by or self.metric
        return Listing(Checkpoint(self._source, checkpoint, metric) for checkpoint in top)

    def load_into(self, model: Any, optimizer: Any = None, *, checkpoint: Checkpoint | str | None = None) -> Checkpoint:
        """Put the trained weights into models of this process, which stay the same objects, on their devices.

        Waits for the end of the experiment. The weights are those that a training here would leave (``weights`` of the
        configuration says otherwise), of the best trial in a search. If anything does not fit, nothing is changed.

        Parameters
        ----------
        model : tf.keras.Model, torch.nn.Module, or list or dict of modules
            Made as it was made then; its optimizer, if a Keras model is compiled, gets its state too. Several modules
            are given in the order in which they were wrapped.
        optimizer : torch.optim.Optimizer, or list or dict of them, optional
            Of PyTorch modules; they go on as those of the experiment would.
        checkpoint : Checkpoint or str, optional
            Another checkpoint of the experiment, or the beginning of its uuid.

        Returns
        -------
        Checkpoint
            What was loaded.

        Raises
        ------
        CheckpointError
            If there is no checkpoint (any more), it is damaged, or the model has other layers or shapes.
        ArgumentError
            If `model` or `optimizer` is nothing that the experiment's framework trains.
        ExperimentFailedError
            If the experiment has failed before its first checkpoint.
        """
        loading_into.detail_of(self._source, self._id)
        self._wait(None, set(), "view", rendering.NoOutputs())
        detail = loading_into.detail_of(self._source, self._id)
        if checkpoint is None:
            weights = loading_into.weights_setting(detail)
            loaded = loading_into.checkpoint_to_load(self._source, self._id, detail, weights)
            loading_into.warn_unfinished(self._source, self._id, detail, loaded)
        else:
            loaded = self.checkpoint(checkpoint.uuid if isinstance(checkpoint, Checkpoint) else checkpoint).facts
        loading_into.into_objects(self._source, self._id, detail, loaded, model, optimizer)
        return Checkpoint(self._source, loaded, self.metric)

    def checkpoint(self, uuid: str) -> Checkpoint:
        """Return one checkpoint.

        Parameters
        ----------
        uuid : str
            Its uuid, or the beginning of it if no other one of the experiment begins so.

        Raises
        ------
        CheckpointNotFoundError
            If the experiment has no such checkpoint, or it was deleted.
        ArgumentError
            If several begin so.
        """
        found = self._source.checkpoints(experiment_id=self._id)
        named = selection.checkpoint_named(uuid, found, owner=f"Experiment {self._id}")
        return Checkpoint(self._source, named, self.metric)

    def kill(self) -> None:
        """End the experiment now; what was trained since the last checkpoint is lost. See ``stop``.

        One that has ended stays as it is, and a line says so.
        """
        if self._goes_on("kill"):
            self._source.kill(self._id)

    def stop(self) -> None:
        """End the experiment for good: its workers write a checkpoint first. Its trials become Stopped.

        One that has ended stays as it is, and a line says so.
        """
        if self._goes_on("stop"):
            self._source.stop(self._id)

    def _goes_on(self, verb: str) -> bool:
        """Return whether there is something to end; if there is not, say so."""
        detail = self.detail()
        if detail.state.terminal:
            print(f"Experiment {self._id} has ended: it is {detail.state}. There is nothing to {verb}.")
        return not detail.state.terminal

    def cancel(self) -> None:
        """As ``stop``: the name that Determined has for it."""
        self.stop()

    def pause(self) -> None:
        """Have the workers checkpoint and end, and give their slots back; ``resume`` goes on from there.

        The experiment is Paused at once; its workers take a moment to end.

        Raises
        ------
        RequestError
            If the experiment has ended, or trains in a kernel.
        """
        self._source.pause(self._id)

    def resume(self) -> None:
        """Go on with a paused experiment, from the checkpoints of its trials; see ``pause``."""
        self._source.resume(self._id)

    def set_priority(self, priority: int) -> None:
        """Have the experiment come before others, or after them: 1 to 99, lower first.

        Running trials of higher numbers make room: they write a checkpoint, wait, and go on later.

        Raises
        ------
        ArgumentError
            If it is no such number.
        RequestError
            If the experiment has ended.
        """
        change_resources(self._source, self._id, priority=priority)

    def set_weight(self, weight: float) -> None:
        """Change the experiment's share of the slots, as compared with the others; see ``set_priority``."""
        change_resources(self._source, self._id, weight=weight)

    def set_max_slots(self, max_slots: int | None) -> None:
        """Change how many slots the experiment may hold, None for no limit; see ``set_priority``.

        Trials above the limit write a checkpoint, wait, and go on once there is room below it.
        """
        change_resources(self._source, self._id, max_slots=max_slots)

    def activate(self) -> None:
        """As ``resume``: the name that Determined has for it."""
        self.resume()

    def fork(
        self,
        hyperparameters: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> Experiment:
        """Submit the same program and data with another configuration; no cell runs here.

        What is not named stays, also what came from the training call: length, metric, batch size.

        Parameters
        ----------
        hyperparameters : mapping, optional
            New values by name, or ranges for a search: ``{"lr": 0.01}``.
        config : mapping, str or path, optional
            Changes of the configuration, section by section: ``{"searcher": {"max_length": {"epochs": 20}}}``.
        name : str, optional
            ``"Fork of ..."`` by default.

        Returns
        -------
        Experiment
            The new one, at once.

        Raises
        ------
        ArgumentError
            If the program has no hyperparameter of that name; the message lists those that it has.
        ConfigurationError
            Listing everything that is wrong with the configuration.
        RequestError
            If its program could not be kept.
        """
        return self._new(life.fork(self._source, self._id, hyperparameters, config, name))

    def continue_(
        self,
        epochs: int | None = None,
        *,
        batches: int | None = None,
        records: int | None = None,
        checkpoint: Checkpoint | str | None = None,
        trial: Trial | int | None = None,
        name: str | None = None,
    ) -> Experiment:
        """Submit an experiment that goes on where a training has ended, and trains so much longer.

        It begins with the weights, and the states of optimizers and learning rate schedules, of a checkpoint; epochs
        and batches are counted from 1 again. An Estimator takes the weights only.

        Parameters
        ----------
        epochs, batches, records : int
            How much longer: one of them.
        checkpoint : Checkpoint or str, optional
            Where it begins, or the beginning of its uuid; the last one of the trial by default.
        trial : Trial or int, optional
            The trial that is continued, or its number inside the experiment, the 2 of ``7.2``; the best one by
            default. A number that no trial of the experiment has may be the id of one on the master.
        name : str, optional
            ``"Continuation of ..."`` by default.

        Returns
        -------
        Experiment
            The new one, at once.

        Raises
        ------
        ArgumentError
            If not exactly one length is given.
        CheckpointError
            If there is no checkpoint (any more).
        NotFoundError
            If the experiment has no such trial.
        UnsupportedFeatureError
            If the length stands in the program's own code.
        RequestError
            If its program could not be kept.
        """
        known = self.checkpoint(checkpoint) if isinstance(checkpoint, str) else checkpoint
        uuid = None if known is None else known.uuid
        number: Any = trial
        if isinstance(trial, Trial):
            number = selection.number_inside(self._id, trial.experiment_id, trial.number)
        lengths = {"epochs": epochs, "batches": batches, "records": records}
        return self._new(life.continuation(self._source, self._id, lengths, uuid, number, name))

    def move(
        self,
        place: str = "cluster",
        *,
        config: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        master_url: str | None = None,
    ) -> Experiment:
        """Train the program of a kernel's run on the cluster, from the beginning, with the same configuration.

        Parameters
        ----------
        place : {"cluster"}
            Where to.
        config : mapping, str or path, optional
            Changes of the configuration: ``{"resources": {"slots_per_trial": 2}}``.
        master_url : str, optional
            As of ``init()``.

        Returns
        -------
        Experiment
            The one on the cluster, at once.

        Raises
        ------
        ArgumentError
            If it is on the cluster already.
        UnsupportedFeatureError
            If the program of the run could not be kept.
        """
        moved: Experiment = moving.mover()(self._source, self._id, place, config, master_url)
        return moved

    def _new(self, made: rest.Experiment) -> Experiment:
        print(life.submitted_text(made))
        return Experiment(self._source, made.id)

    def tensorboard(self) -> TensorBoard:
        """Open TensorBoard over the event files of all trials; in a notebook, the last line of a cell shows it.

        It ends with this process, or by its ``close()``.

        Raises
        ------
        NotFoundError
            If no trial has written event files.
        UnsupportedFeatureError
            If they lie on another machine.
        MissingDependencyError
            If TensorBoard is not installed.
        """
        from det_native.client.tensorboard import open_tensorboard

        return open_tensorboard(self._source, self._id)

    def notebook(self, path: str | os.PathLike[str]) -> Path:
        """Write the program back as a runnable notebook: the cells that ran, in order, and nothing else.

        Values and files that were sent along are written beside it; files that exist are never overwritten.

        Parameters
        ----------
        path : str or path
            The ``.ipynb`` file to write.

        Returns
        -------
        Path
        """
        manifest = self._source.bundle(self._id)
        return write_notebook(manifest, self._source.blob, Path(path), title=f"Experiment {self._id}: {self.name}")

    def detail(self) -> rest.ExperimentDetail:
        """Return everything that the source knows of the experiment."""
        if self._ended is not None:
            return self._ended
        detail = self._source.experiment(self._id)
        self._metric = detail.metric
        if detail.state.terminal and detail.id:  # a master that has it later knows more
            self._ended = detail
        return detail

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what to use in place of a name that people guess."""
            if name == "continue":
                raise shown_shortly(
                    AttributeError("continue is a word of Python's own: experiment.continue_(epochs=10).")
                )
            return super().__getattr__(name)

    def __repr__(self) -> str:
        number = self._number(ask=False) if callable(self._number) else self._number
        return f"Experiment({number or NOT_RECORDED})"

    def __str__(self) -> str:
        return rendering.line_of(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return rendering.current().mimebundle(self)


__all__ = ["Checkpoint", "Experiment", "Trial"]
