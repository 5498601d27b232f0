"""What a program's training calls give that were made before the recorded one: the weights that they have trained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from det_harness.frameworks.base import harness_for
from det_harness.program.calls import CallMatcher, EarlierCall
from det_harness.program.made_up import MadeUpValues
from det_harness.program.null_handle import NullHandle
from det_harness.trial.warm_start import WarmStart
from det_native.errors import CheckpointError, TrialDefinitionError
from det_native.heap.compare import Table
from det_native.heap.kinds.functions import is_read
from det_native.heap.roots import roots_of_call
from det_native.past_history import PastHistory, decode
from det_native.runtime import replayed_experiment
from det_native.schema.job import WarmStartSource
from det_native.schema.manifests import EarlierAnswers

logger = logging.getLogger("det_harness")

Files = Callable[[str], AbstractContextManager[Path]]


class PastExperiment(NullHandle):
    """Has the id and the history of an experiment that has ended; all else of it is a null handle's.

    Parameters
    ----------
    place : str
        Where the call was made.
    parts : int
        Into how many values it is unpacked.
    facts : Experiment, optional
        Answers what the program has asked of the experiment.
    """

    def __init__(
        self,
        id: int,
        history: PastHistory,
        place: str,
        made_up: MadeUpValues,
        parts: int = 1,
        facts: Any = None,
    ) -> None:
        super().__init__(place, made_up, parts=parts)
        object.__setattr__(self, "_facts", facts)
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "history", dict(history.metrics))
        object.__setattr__(self, "epoch", list(history.epoch))
        object.__setattr__(self, "params", dict(history.params))

    def __getattr__(self, name: str) -> Any:
        facts = vars(self).get("_facts")
        return super().__getattr__(name) if facts is None or name.startswith("__") else getattr(facts, name)

    def __repr__(self) -> str:
        return f"<experiment {self.id}, which has ended>"

    def wait(self, *arguments: Any, **keywords: Any) -> PastExperiment:
        """Return it: it has ended."""
        return self


class OtherCalls:
    """Takes the training calls that are not the recorded one.

    Where the notebook had the weights of a call when it submitted the recorded one, they are put into what the call is
    given, and it returns the training's history. Where it is known what the program has asked of a call's experiment,
    the call returns an experiment that answers the same. Any other call trains nothing and gives a null handle.

    Parameters
    ----------
    made_up : MadeUpValues
        Is told of what is made of a null handle.
    files : callable
        Gives a folder with the files of the checkpoint of an earlier training, by its uuid, for a block.
    """

    def __init__(
        self, calls: CallMatcher, made_up: MadeUpValues, read_blob: Callable[[str], bytes], files: Files
    ) -> None:
        self._calls = calls
        self._made_up = made_up
        self._read_blob = read_blob
        self._files = files
        self._were_made = False

    def stand_in(self, place: str) -> NullHandle:
        """Return a null handle of the training that `place` names."""
        return NullHandle(place, self._made_up)

    def result(self, payload: Any, earlier: EarlierCall) -> Any:
        """Return what a call gives, with what it was given trained as it was in the notebook.

        Parameters
        ----------
        earlier : EarlierCall
            What is known of the call.

        Raises
        ------
        CheckpointError
            If its checkpoint is damaged, or does not fit.
        """
        self._were_made = True
        place = self._calls.last_place
        parts = getattr(payload, "returned_parts", 1)
        handle = NullHandle(place, self._made_up, parts=parts)
        harness = None if isinstance(payload, type) else harness_for(payload)
        if harness is not None:
            harness.build(payload)
        facts = self._facts(earlier.answers)
        training = earlier.training
        if training is None or harness is None:
            result = handle if facts is None else facts
            return _noted(payload, result, result)
        history = decode(self._read_blob(training.history))
        try:
            with self._files(training.checkpoint) as folder:
                harness.load_into(payload, folder)
        except CheckpointError as error:
            raise type(error)(
                f"The call in {place} was experiment {training.experiment_id} in the notebook, whose weights cannot be "
                f"loaded here: {error}"
            ) from error
        logger.info(
            "The call in %s was experiment %d: its weights of batch %d are loaded.",
            place,
            training.experiment_id,
            training.batch,
        )
        past = PastExperiment(training.experiment_id, history, place, self._made_up, parts, facts)
        return _noted(payload, past, harness.past_result(payload, history, past))

    def _facts(self, answers: EarlierAnswers | None) -> Any:
        """Return an experiment that answers what it has answered where the program was submitted."""
        if answers is None:
            return None
        content, place = self._read_blob(answers.answers), self._calls.last_place
        assert self._calls.bundle is not None
        program = self._calls.bundle.program.model_copy(update={"call": answers.site, "init": answers.init})
        bundle = self._calls.bundle.model_copy(update={"program": program})
        return replayed_experiment(answers.experiment_id, content, place, self._files, bundle, self._read_blob)

    def check_class(self, trained: type) -> None:
        """Refuse to train a class that leads to a null handle: nothing compares what such a class is.

        Raises
        ------
        TrialDefinitionError
            Naming it.
        """
        found = _first_null_handle(trained) if self._were_made else None
        if found is not None:
            path, place = found
            remedy = self._made_up.remedy(path)
            raise TrialDefinitionError(
                f"{trained.__qualname__} uses `{path}`, which comes of the training call in {place}: that one does not "
                f"train in this run. {remedy[0].upper()}{remedy[1:]}"
            )


class HostOfCalls:
    """What the hosts of a program that runs again have in common: calls before the recorded one do not train."""

    _calls: CallMatcher
    _others: OtherCalls

    @property
    def takes_any_call(self) -> bool:
        """Whether the program's first training call is the trial's, whichever it is."""
        return self._calls.any_call

    def stand_in(self, place: str) -> NullHandle:
        """Return a null handle; `place` says which training it is of."""
        return self._others.stand_in(place)

    def owns_init(self) -> bool:
        """Whether the ``init()`` being called is the one that the recorded call belongs to."""
        return self._calls.is_recorded_init()

    def set_streams_of_init(self) -> None:
        """Have a trial with the notebook's seed draw from here on what the notebook drew after its ``init()``."""
        self._calls.at_init()


def files_on_worker(sources: Mapping[str, WarmStartSource]) -> Files:
    """Return what gives the files of checkpoints that lie where the master says."""

    def files(uuid: str) -> AbstractContextManager[Path]:
        if uuid not in sources:
            raise CheckpointError(f"checkpoint {uuid} is not known to the master")
        return WarmStart(sources[uuid]).folder()

    return files


def _first_null_handle(trained: type) -> tuple[str, str] | None:
    """Return the way to a null handle that a class leads to, and where its call was made; None if there is none."""
    snapshot = Table({trained.__qualname__: trained}, roots_of_call()[0], most_bytes=0).snapshot  # arrays are not read
    for number in range(snapshot.first, len(snapshot.objects)):
        for place, child in enumerate(snapshot.children[number]):
            if type(child) is NullHandle:
                label = snapshot.labels_of(number)[place]
                return label[-1] if is_read(label) else snapshot.path_of_part(number, label), child._place
    return None


def _noted(payload: Any, handle: Any, result: Any) -> Any:
    """Let the context of a call have its experiment, as in the notebook."""
    context = getattr(payload, "context", None)
    if context is not None and hasattr(context, "experiment"):
        context.experiment = handle
    return result
