"""What a training on the cluster makes of this process: weights, names and files, put in place once it has ended."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from det_native.capture import submitted
from det_native.capture.log import current_log
from det_native.client import ended, rendering
from det_native.client.addresses import is_loopback
from det_native.client.handles import Experiment
from det_native.client.keras_experiment import KerasExperiment, give_history
from det_native.client.loading_into import detail_of
from det_native.errors import CheckpointCorruptError, CheckpointError, DetError, MasterError, NotFoundError
from det_native.home.files import bring_files
from det_native.home.loading import load_state, mismatch
from det_native.past_history import encode
from det_native.schema import rest
from det_native.schema.states import ExperimentState

_trusted: list[str] = []


@dataclass(eq=False)
class Result:
    """The result of a training that was submitted from this process; ``Experiment.wait()`` brings it.

    Attributes
    ----------
    experiment : Experiment
    call : FitCall, TorchCall, EstimatorCall or type
        What was submitted, with the objects that are trained.
    execution : int or None
        Index of the execution of the notebook that made the call.
    created : str
        When the experiment was created: a master of an emptied home gives its number to another one.
    done : bool
        It was brought, or never comes.
    """

    experiment: Experiment
    call: Any
    execution: int | None = None
    created: str = ""
    done: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

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
                self._bring()
            except (MasterError, KeyboardInterrupt) as error:
                self.done = isinstance(error, NotFoundError)
                raise
            finally:
                self._release()

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
                bring_files(self.experiment)
            if len(failure.args) == 1 and self._objects:
                failure.args = (f"{failure.args[0]}\n{self._advice()}",)
            self._release()

    def _release(self) -> None:
        """Hold the call, and all of its data, no longer than it is needed."""
        if self.done:
            self.call = None

    @property
    def _objects(self) -> bool:
        """Whether the call has changed objects of this process; a trial class makes its own."""
        return not isinstance(self.call, type)

    def _bring(self) -> None:
        detail = detail_of(self.experiment.source, self.experiment.id)
        if self.created and detail.created != self.created:
            raise NotFoundError(
                f"Experiment {self.experiment.id} no longer exists, so its weights cannot be loaded: another "
                "experiment has its number now."
            )
        sentences: list[str] = []
        if self._objects:
            sentences = self._bring_objects(detail)
        bring_files(self.experiment)
        if sentences:
            rendering.current().line_in_place().say("\n".join(sentences))

    def _bring_objects(self, detail: rest.ExperimentDetail) -> list[str]:
        """Put weights and names in place; return what is to be said of it."""
        experiment, call = self.experiment, self.call
        title = f"Experiment {experiment.id}"
        stopped = detail.state is ExperimentState.CANCELED
        if stopped:
            title += " was stopped"
            if not experiment.checkpoints:
                return [f"{title} before its first checkpoint: everything stays as it was here."]
        log = current_log()
        if log is not None:
            log.before_loading()
        try:
            checkpoint, left_out = load_state(experiment, call, detail)
        except CheckpointCorruptError:
            raise
        except CheckpointError as error:
            if _is_search(detail):
                return [f"{title}: {mismatch(experiment, call, error)}", *getattr(error, "__notes__", ())]
            raise
        finally:
            if isinstance(experiment, KerasExperiment):
                give_history(call.model, experiment)
            if log is not None and self.execution is not None:
                log.note_loaded(self.execution)
        submitted.note_loaded(experiment, _trained(experiment, checkpoint))
        sentences = [f"{title} at batch {checkpoint.batch}: what it had trained by then is here."] if stopped else []
        if (slots := call.context.env.slots) > 1:
            of_one = "is the share of the first; reported metrics are of all."
            sentences.append(f"{title} trained on {slots} slots: what its code has counted {of_one}")
        return [*sentences, *left_out]

    def _advice(self) -> str:
        """Return what to do without the result."""
        sentence = "The model stays as it was here."
        best = None
        with suppress(DetError):
            best = self.experiment.top_checkpoint()
        if best is not None:
            call = f"det.experiment({self.experiment.id}).checkpoint({best.uuid[:8]!r}).load()"
            sentence += f" The best checkpoint is {best.uuid[:8]}: {call}."
        return sentence


def note_result(experiment: Experiment, call: Any, execution: int | None) -> None:
    """Have the result of a call come home when somebody waits for its end."""
    _tell_of_trust(experiment.source.url)
    ended.keep(experiment, Result(experiment, call, execution, experiment.detail().created))


def _tell_of_trust(url: str) -> None:
    """Say once that what workers of a master elsewhere send is loaded here."""
    if _trusted or not url.startswith("http") or is_loopback(url):
        return
    _trusted.append(url)
    print(f"This kernel loads Python objects that workers of {url} send: train only on a master that you trust.")


def _is_search(detail: rest.ExperimentDetail) -> bool:
    searcher = detail.config.get("searcher") or {}
    return searcher.get("name") != "single"


def _trained(experiment: Experiment, checkpoint: rest.Checkpoint) -> submitted.Trained:
    """Return what this process has of a training, for programs that are submitted later."""
    rows = experiment.source.epochs(checkpoint.trial_id)
    history = encode(rows, {} if rows else experiment.best_trial.history)
    return submitted.Trained(int(experiment.id), checkpoint.uuid, checkpoint.batch, history)
