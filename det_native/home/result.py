"""What a training on the cluster makes of this process: weights, names and files, put in place once it has ended."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from det_native.capture import submitted
from det_native.capture.log import current_log
from det_native.client import ended, loading_into, rendering
from det_native.client.addresses import is_loopback
from det_native.client.handles import Experiment
from det_native.client.keras_experiment import KerasExperiment, give_history
from det_native.errors import CheckpointCorruptError, CheckpointError, DetError, MasterError, NotFoundError
from det_native.heap.call import LARGE, CallSnapshot
from det_native.home.files import FilesOfCall
from det_native.past_history import encode
from det_native.schema import rest
from det_native.schema.proof import DIFFERS
from det_native.schema.states import ExperimentState

_SEARCHED = (
    "The trials of this search have run in processes of their own: the model is as it was here. "
    "experiment.top_checkpoint().load() gives the best one."
)
#: Differences that are named one by one.
_SHOWN = 5
_trusted: list[str] = []


@dataclass(eq=False)
class Result:
    """The result of a training that was submitted from this process; ``Experiment.wait()`` brings it.

    Attributes
    ----------
    call : FitCall, TorchCall, EstimatorCall, type or None
        What was submitted, with the objects that are trained. None of a search with ``local=True``: they stay.
    files : FilesOfCall or None
        None once they have come.
    execution : int or None
        Index of the execution of the notebook that made the call.
    created : str
        When the experiment was created: a master of an emptied home gives its number to another one.
    done : bool
        It was brought, or never comes.
    outputs : rendering.Outputs or None
        Shows in cells that wait what the training prints and shows, each line once.
    """

    experiment: Experiment
    call: Any
    files: FilesOfCall | None
    execution: int | None = None
    created: str = ""
    done: bool = False
    outputs: rendering.Outputs | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _large: tuple[rest.Checkpoint, CallSnapshot] | None = None

    def bring(self) -> None:
        """Put the result in place; does nothing the second time.

        Raises
        ------
        MasterError
            If the master does not answer: it can be brought later.
        CheckpointError
            If the checkpoint is damaged, or does not fit.
        """
        with self._lock:
            if self.done:
                return
            self.done = True  # what is asked below may wait for the experiment, too
            try:
                try:
                    sentences = self._bring_objects()
                except CheckpointError:
                    self.bring_files()
                    raise
                self.bring_files()
            except (MasterError, KeyboardInterrupt) as error:
                self.done = isinstance(error, NotFoundError)
                raise
            finally:
                self._release()
        if sentences:
            rendering.current().line_in_place().say("\n".join(sentences))

    def bring_large(self) -> bool:
        """Put in place what exceeded the size that comes by itself; return whether there was anything."""
        from det_harness.trial.heap_file import bring_home

        if self._large is None:
            return False
        checkpoint, snapshot = self._large
        with loading_into.files_of(self.experiment.source, self.experiment.id, checkpoint, large=True) as folder:
            sentences = bring_home(folder, snapshot, LARGE)
        self._large = None
        if sentences:
            rendering.current().line_in_place().say("\n".join(sentences))
        return True

    def bring_files(self) -> None:
        """Put its files in place, as soon as somebody has seen its end."""
        with self._lock:
            if self.files is not None:
                self.files.bring(self.experiment)
                self.files = None

    def is_to_come_for(self, models: Sequence[Any]) -> bool:
        """Whether one of these models is to get it."""
        own = () if self.done else getattr(self.call, "models", ())
        return any(model is other for model in own for other in models)

    def give_up(self, failure: DetError) -> None:
        """Bring the files of a training that has failed, and say in its error what there is of it."""
        with self._lock:
            if self.done:
                return
            self.done = True
            with suppress(DetError):
                self.bring_files()
            if len(failure.args) == 1 and self._trains_objects:
                failure.args = (f"{failure.args[0]}\n{self._advice()}",)
            self._release()

    def _release(self) -> None:
        """Hold the call, and all of its data, no longer than it is needed."""
        if self.done:
            self.call = None

    @property
    def _trains_objects(self) -> bool:
        """Whether the call has changed objects of this process; a trial class makes its own."""
        return self.call is not None and not isinstance(self.call, type)

    def _bring_objects(self) -> list[str]:
        """Put what a call has trained and changed in place; return what is to be said of it."""
        experiment, call = self.experiment, self.call
        detail = loading_into.detail_of(experiment.source, experiment.id)
        if self.created and detail.created != self.created:
            raise NotFoundError(
                f"Experiment {experiment.id} no longer exists, so its weights cannot be loaded: another experiment has "
                "its number now."
            )
        if not self._trains_objects:
            return [_SEARCHED] if self.call is None else []
        stopped, title = detail.state is ExperimentState.CANCELED, f"Experiment {experiment.id}"
        if stopped and not experiment.checkpoints:
            return [f"{title} was stopped before its first checkpoint: everything stays as it was here."]
        log = current_log()
        if log is not None:
            log.before_loading()
        snapshot = getattr(call, "snapshot", None) or getattr(call.context, "snapshot", None)
        try:
            checkpoint, left_out = load_state(experiment, call, detail)
        except CheckpointCorruptError:
            raise
        except CheckpointError as error:
            if (detail.config.get("searcher") or {}).get("name") == "single":
                raise
            return [f"{title}: {self._mismatch(error)}", *getattr(error, "__notes__", ())]
        finally:
            if isinstance(experiment, KerasExperiment):
                give_history(call.model, experiment)
            if log is not None and self.execution is not None:
                log.note_loaded(self.execution)
        self._large = (checkpoint, snapshot) if snapshot and loading_into.files_apart(checkpoint) else None
        rows = experiment.source.epochs(checkpoint.trial_id)
        history = encode(rows, {} if rows else experiment.best_trial.history)
        submitted.note_loaded(
            experiment, submitted.Trained(int(experiment.id), checkpoint.uuid, checkpoint.batch, history)
        )
        sentences = [*_differing(detail.report)]
        if stopped:
            sentences.append(f"{title} was stopped at batch {checkpoint.batch}: what it had trained by then is here.")
        if (slots := call.context.env.slots) > 1:
            sentences.append(
                f"{title} trained on {slots} slots: what its code has counted is the share of the first; reported "
                "metrics are of all."
            )
        return [*sentences, *left_out]

    def _mismatch(self, error: CheckpointError) -> str:
        """Return why the weights of a search do not come: its best trial may have other layers than the notebook."""
        remedy = "its weights stay on the cluster; experiment.top_checkpoint().load() makes the model."
        here, there = self.call.context.env.hparams, self.experiment.best_trial.hparams
        names = sorted(name for name in here if name in there and here[name] != there[name])
        if not names:
            return f"The weights of the best trial do not fit ({error}): {remedy}"
        best, own = (", ".join(f"{name} = {given[name]!r}" for name in names) for given in (there, here))
        return f"The best trial has {best}, this notebook has {own}: {remedy}"

    def _advice(self) -> str:
        """Return what to do without the result."""
        sentence = "The model stays as it was here."
        with suppress(DetError):
            if best := self.experiment.top_checkpoint():
                call = f"det.experiment({self.experiment.id}).checkpoint({best.uuid[:8]!r}).load()"
                sentence += f" The best checkpoint is {best.uuid[:8]}: {call}."
        return sentence


def load_state(experiment: Experiment, call: Any, detail: rest.ExperimentDetail) -> tuple[rest.Checkpoint, list[str]]:
    """Put the state that local training would have left into the objects of a call; of what was stopped, the last one.

    Returns
    -------
    rest.Checkpoint, list of str
        What was loaded, and a sentence for each object that stays as it was.

    Raises
    ------
    ExperimentFailedError
        If the experiment has failed.
    CheckpointError
        If there is no such checkpoint any more, it is damaged, or it does not fit; nothing is changed then.
    """
    source, number = experiment.source, experiment.id
    weights = loading_into.weights_setting(detail)
    if detail.state is ExperimentState.CANCELED:
        weights = "last"
    else:
        loading_into.refuse_unfinished(source, number, detail)
    checkpoint = loading_into.checkpoint_to_load(source, number, detail, weights)
    return checkpoint, loading_into.into_call(source, number, checkpoint, call)


def _differing(report: Sequence[rest.CaptureRow]) -> list[str]:
    """Return a sentence for each input that differed on the worker, and that the training took as it was there."""
    rows = [row for row in report if row.how == DIFFERS]
    sentences = [f"An input of the training differed: {row.what}: {row.note}." for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        sentences.append(f"So did {len(rows) - _SHOWN} more: experiment.report lists them.")
    return sentences


def note_result(experiment: Experiment, call: Any, files: FilesOfCall | None, execution: int | None = None) -> None:
    """Have the result of a call come home when somebody waits for its end."""
    _tell_of_trust(experiment.source.url)
    ended.keep(experiment, Result(experiment, call, files, execution, experiment.detail().created))


def _tell_of_trust(url: str) -> None:
    """Say once that what workers of a master elsewhere send is loaded here."""
    if _trusted or not url.startswith("http") or is_loopback(url):
        return
    _trusted.append(url)
    print(f"This kernel loads Python objects that workers of {url} send: train only on a master that you trust.")
