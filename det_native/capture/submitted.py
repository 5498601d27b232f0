"""Training calls that were submitted, and what the notebook got of them: a later program gets that, too."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from det_native.schema.manifests import CallSite, EarlierTraining, Sha256


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


def note(record: Any, experiment: Any, master: str) -> None:
    """Note that a call was submitted."""
    if record is not None:
        _submitted.append(Submitted(record, experiment, master))


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
        """Return it as it stands in the manifest."""
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
