"""What a program's training calls give that were made before the recorded one: the weights that they have trained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from det_harness.frameworks.base import harness_for
from det_harness.program.calls import CallMatcher
from det_harness.program.made_up import MadeUpValues
from det_harness.program.null_handle import NullHandle
from det_harness.trial.warm_start import WarmStart
from det_native.errors import CheckpointError
from det_native.past_history import PastHistory, decode
from det_native.schema.job import WarmStartSource
from det_native.schema.manifests import EarlierTraining

logger = logging.getLogger("det_harness")

Files = Callable[[EarlierTraining], AbstractContextManager[Path]]


class PastExperiment(NullHandle):
    """Has the id and the history of an experiment that has ended; all else of it is a null handle's.

    Parameters
    ----------
    id : int
    history : PastHistory
    place : str
        Where the call was made.
    made_up : MadeUpValues
    parts : int
        Into how many values it is unpacked.
    """

    def __init__(self, id: int, history: PastHistory, place: str, made_up: MadeUpValues, parts: int = 1) -> None:
        super().__init__(place, made_up, parts=parts)
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "history", dict(history.metrics))
        object.__setattr__(self, "epoch", list(history.epoch))
        object.__setattr__(self, "params", dict(history.params))

    def __repr__(self) -> str:
        return f"<experiment {self.id}, which has ended>"

    def wait(self, *arguments: Any, **keywords: Any) -> PastExperiment:
        """Return it: it has ended."""
        return self


class OtherCalls:
    """Takes the training calls that are not the recorded one.

    Where the notebook had the weights of a call when it submitted the recorded one, they are put into what the call is
    given, and it returns the training's history. Any other call trains nothing and gives a null handle.

    Parameters
    ----------
    calls : CallMatcher
    made_up : MadeUpValues
        Is told of what is made of a null handle.
    read_blob : callable
        Gives the raw content of a blob by its hash.
    files : callable
        Gives a folder with the files of the checkpoint of an earlier training, for a block.
    """

    def __init__(
        self, calls: CallMatcher, made_up: MadeUpValues, read_blob: Callable[[str], bytes], files: Files
    ) -> None:
        self._calls = calls
        self._made_up = made_up
        self._read_blob = read_blob
        self._files = files

    def stand_in(self, place: str) -> NullHandle:
        """Return a null handle of the training that `place` names."""
        return NullHandle(place, self._made_up)

    def result(self, payload: Any, earlier: EarlierTraining | None) -> Any:
        """Return what a call gives, with what it was given trained as it was in the notebook.

        Parameters
        ----------
        payload : type, FitCall, TorchCall or EstimatorCall
        earlier : EarlierTraining or None
            What is known of the call.

        Raises
        ------
        CheckpointError
            If its checkpoint is damaged, or does not fit.
        """
        place = self._calls.last_place
        parts = getattr(payload, "returned_parts", 1)
        handle = NullHandle(place, self._made_up, parts=parts)
        harness = None if isinstance(payload, type) else harness_for(payload)
        if harness is not None:
            harness.build(payload)
        if earlier is None or harness is None:
            return _noted(payload, handle, handle)
        history = decode(self._read_blob(earlier.history))
        try:
            with self._files(earlier) as folder:
                harness.load_into(payload, folder)
        except CheckpointError as error:
            raise type(error)(
                f"The call in {place} was experiment {earlier.experiment_id} in the notebook, whose weights cannot be "
                f"loaded here: {error}"
            ) from error
        logger.info(
            "The call in %s was experiment %d: its weights of batch %d are loaded.",
            place,
            earlier.experiment_id,
            earlier.batch,
        )
        past = PastExperiment(earlier.experiment_id, history, place, self._made_up, parts)
        return _noted(payload, past, harness.past_result(payload, history, past))


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

    def files(earlier: EarlierTraining) -> AbstractContextManager[Path]:
        if earlier.checkpoint not in sources:
            raise CheckpointError(f"checkpoint {earlier.checkpoint} is not known to the master")
        return WarmStart(sources[earlier.checkpoint]).folder()

    return files


def _noted(payload: Any, handle: Any, result: Any) -> Any:
    """Let the context of a call have its experiment, as in the notebook."""
    context = getattr(payload, "context", None)
    if context is not None and hasattr(context, "experiment"):
        context.experiment = handle
    return result
