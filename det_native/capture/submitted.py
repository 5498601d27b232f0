"""Training calls that were submitted, and what the notebook got of them: a later program gets that, too."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from det_native.schema.manifests import CallSite, EarlierAnswers, EarlierTraining, Sha256


@dataclass(frozen=True)
class Trained:
    """The weights that the notebook has of a training: of which checkpoint, and its metrics by epoch, encoded."""

    experiment_id: int
    checkpoint: str
    batch: int
    history: bytes


@dataclass
class Submitted:
    """A training call that was submitted.

    Attributes
    ----------
    record : CallRecord
        Of the call.
    experiment : Experiment
        What came of it.
    master : str
        Where it was submitted.
    trained : Trained or None
        None as long as the notebook has none of its weights.
    """

    record: Any
    experiment: Any
    master: str
    trained: Trained | None = None


_submitted: list[Submitted] = []
#: Calls whose experiments record what they are asked, with their masters.
_recorded: list[tuple[Any, Any, str, CallSite | None]] = []


def note(record: Any, experiment: Any, master: str) -> None:
    """Note that a call was submitted."""
    if record is not None:
        _submitted.append(Submitted(record, experiment, master))


def note_recorded(record: Any, experiment: Any, master: str, init: CallSite | None) -> None:
    """Note that the experiment of a call, with that ``init()``, records what it is asked."""
    if record is not None:
        _recorded.append((record, experiment, master, init))


def note_loaded(experiment: Any, trained: Trained) -> None:
    """Note that the weights of an experiment were put into what its call was given."""
    for call in _submitted:
        if call.experiment is experiment:
            call.trained = trained


def was_submitted(record: Any) -> bool:
    """Whether a call was submitted: nothing was trained by it in this process."""
    return any(call.record is record for call in _submitted)


def has_come_home(record: Any) -> bool:
    """Whether the notebook has the weights of a call."""
    return any(call.record is record and call.trained is not None for call in _submitted)


@dataclass(frozen=True)
class CapturedTraining:
    """A training call of a program besides the recorded one, and what the notebook got of it."""

    site: CallSite
    trained: Trained
    master: str

    def entry(self) -> EarlierTraining:
        """Return the entry of the manifest."""
        from det_native.schema.manifests import EarlierTraining

        return EarlierTraining(
            site=self.site,
            experiment_id=self.trained.experiment_id,
            checkpoint=self.trained.checkpoint,
            batch=self.trained.batch,
            history=self.hash,
            size=len(self.trained.history),
        )

    @property
    def hash(self) -> Sha256:
        """Hash of the metrics."""
        return hashlib.sha256(self.trained.history).hexdigest()


@dataclass(frozen=True)
class CapturedAnswers:
    """What the program has asked of the experiment of a training call, with the answers, encoded."""

    site: CallSite
    experiment_id: int
    content: bytes
    checkpoints: tuple[str, ...]
    master: str
    init: CallSite | None

    def entry(self) -> EarlierAnswers:
        """Return the entry of the manifest."""
        from det_native.schema.manifests import EarlierAnswers

        return EarlierAnswers(
            site=self.site,
            experiment_id=self.experiment_id,
            answers=self.hash,
            size=len(self.content),
            checkpoints=self.checkpoints,
            init=self.init,
        )

    @property
    def hash(self) -> Sha256:
        """Hash of the answers."""
        return hashlib.sha256(self.content).hexdigest()


def earlier_answers(calls: Collection[Any], site_of: Callable[[Any], CallSite | None]) -> Iterator[CapturedAnswers]:
    """Yield what was asked of the experiments of these calls, where their places are sent; see `earlier_trainings`."""
    of_program = {id(call) for call in calls}
    for record, experiment, master, init in _recorded:
        site = site_of(record) if id(record) in of_program else None
        if site is not None:
            source = experiment.source
            yield CapturedAnswers(site, int(experiment.id), source.encoded(), tuple(source.read), master, init)


def earlier_trainings(calls: Collection[Any], site_of: Callable[[Any], CallSite | None]) -> Iterator[CapturedTraining]:
    """Yield what the notebook got of these calls, where their places are sent.

    Parameters
    ----------
    calls : collection of CallRecord
        Those of the log, or of the script.
    site_of : callable
        Gives the place of a call in what is sent; None where that has not what makes it.
    """
    of_program = {id(call) for call in calls}
    for call in _submitted:
        site = site_of(call.record) if call.trained is not None and id(call.record) in of_program else None
        if site is not None and call.trained is not None:
            yield CapturedTraining(site, call.trained, call.master)
