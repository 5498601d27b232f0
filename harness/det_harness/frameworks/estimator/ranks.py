"""What the ranks of an estimator's trial do together: begin with the same variables, agree, put metrics together."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.wire import added_up, is_number
from det_harness.ranks.communicator import Communicator
from det_harness.trial import state_files
from det_native.errors import TrialDefinitionError

logger = logging.getLogger("det_native")

_OWN = "own_variables"


class Ranks:
    """The ranks of a trial, or the one that there is: then nothing here costs anything.

    Attributes
    ----------
    first : bool
        Whether this is the first, which reports, exports and writes checkpoints.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.several = communicator.size > 1
        self.first = communicator.rank == 0
        self.communicator = communicator

    def agree(self, flag: bool) -> bool:
        """Return whether a flag is set on any rank; a collective call."""
        return self.communicator.all_reduce_any(flag)()[0] if self.several else flag

    def firsts(self, decide: Callable[[], bool]) -> bool:
        """Return what the first rank decides; a collective call."""
        return bool(self.communicator.broadcast_object(decide() if self.first else None))

    def files_of_first(self, prefix: Path) -> Path:
        """Return where the first rank's files of this prefix lie; a collective call.

        On another machine they are copied to `prefix`, which is this rank's own.
        """
        if not self.several:
            return prefix
        found = Path(self.communicator.broadcast_object(str(prefix)))
        index = found.with_name(f"{found.name}.index")
        if not self.agree(not index.is_file()):
            return found
        content = {path.name: path.read_bytes() for path in prefix.parent.glob(f"{prefix.name}.*")} if self.first else 0
        for name, data in self.communicator.broadcast_object(content).items():
            if not self.first:
                (prefix.parent / name).write_bytes(data)
        return prefix

    def merged(self, metrics: Mapping[str, Any], batches: int) -> dict[str, Any]:
        """Return the metrics of an evaluation over all ranks; a collective call.

        Those whose variables were added up, or that a reducer has made, are the same on all; of others the mean is
        taken, over the ranks that had data.
        """
        if not self.several:
            return dict(metrics)
        parts = self.communicator.all_gather_object((dict(metrics), batches))
        counted = [part for part, seen in parts if seen] or [parts[0][0]]
        return {name: _mean([part[name] for part in counted if name in part]) for name in counted[0]}


class Variables:
    """The variables of a training's graph, over the ranks: made in the graph, before it is final.

    What is trained is the same on all. What is not (moving means, say) is each rank's own.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        variables = [each for each in tf.compat.v1.global_variables() if is_number(each)]
        trained = {each.name for each in tf.compat.v1.trainable_variables()}
        self._shapes = [(each.name, each.shape.as_list(), each.dtype.name) for each in variables]
        self._all = {each.name: each for each in variables}
        self._own = {each.name: each for each in variables if each.name not in trained}
        self._given = {each.name: tf.compat.v1.placeholder(each.dtype.base_dtype, each.shape) for each in variables}
        self._assign = {each.name: tf.compat.v1.assign(each, self._given[each.name]) for each in variables}

    def begin(self, session: Any, own: Path | None) -> None:
        """Have all begin with the first rank's values; then with what is this rank's own, from a checkpoint's folder.

        Raises
        ------
        TrialDefinitionError
            If the ranks have built different graphs.
        """
        for rank, shapes in enumerate(self._ranks.communicator.all_gather_object(self._shapes)):
            if shapes != self._shapes:
                raise TrialDefinitionError(
                    f"The slots have made different models: the one of slot {rank} has {len(shapes)} variables of "
                    f"other names or shapes than the {len(self._shapes)} here. Build the same model on each; what "
                    "differs by slot is data."
                )
        first = self._ranks.first
        self._put(session, self._ranks.communicator.broadcast_object(session.run(self._all) if first else None))
        if own is not None and (own / f"{_OWN}.json").exists():
            self._put(session, state_files.load(own, _OWN))

    def _put(self, session: Any, values: Mapping[str, Any]) -> None:
        given = {self._given[name]: value for name, value in values.items() if name in self._assign}
        session.run([self._assign[name] for name in values if name in self._assign], given)

    def save_own(self, session: Any) -> dict[str, Any]:
        """Return, on other ranks than the first, what differs from the first rank's; a collective call."""
        values = session.run(self._own)
        sums = {name: zlib.crc32(np.ascontiguousarray(value).tobytes()) for name, value in values.items()}
        of_first = self._ranks.communicator.broadcast_object(sums)
        return {name: value for name, value in values.items() if sums[name] != of_first.get(name)}


def write_own(folder: Path, values: Mapping[str, Any]) -> None:
    """Write what :meth:`Variables.save_own` has returned."""
    if values:
        state_files.dump(folder, _OWN, {name: np.asarray(value) for name, value in values.items()})


class EvaluationHook(tf.estimator.SessionRunHook):  # type: ignore[misc]  # TensorFlow has no types
    """Adds the variables of metrics up over the ranks, at the end of an evaluation, before their values are read.

    Parameters
    ----------
    gather : callable
        Called then: what reducers have is gathered.
    """

    def __init__(self, ranks: Ranks, gather: Callable[[], None]) -> None:
        self._ranks = ranks
        self._gather = gather

    def begin(self) -> None:
        if not self._ranks.several:
            return
        found = dict.fromkeys(tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.METRIC_VARIABLES))
        self._variables = [each for each in found if is_number(each)]
        self._given = [tf.compat.v1.placeholder(each.dtype.base_dtype, each.shape) for each in self._variables]
        pairs = zip(self._variables, self._given, strict=True)
        self._assign = [tf.compat.v1.assign(each, given) for each, given in pairs]

    def end(self, session: Any) -> None:
        self._gather()
        if not self._ranks.several:
            return
        values = session.run(self._variables)
        parts = self._ranks.communicator.all_gather_object(values)
        if any([np.shape(value) for value in part] != [np.shape(value) for value in values] for part in parts):
            logger.warning("The slots have different metrics: what is reported is the mean of theirs.")
            return
        columns = zip(self._variables, zip(*parts, strict=True), strict=True)
        added = [added_up(variable, column) for variable, column in columns]
        session.run(self._assign, dict(zip(self._given, added, strict=True)))


def _mean(values: Sequence[Any]) -> Any:
    first = values[0]
    if all(np.array_equal(each, first) for each in values):
        return first
    try:
        return np.mean([np.asarray(each, float) for each in values], axis=0)[()]
    except (TypeError, ValueError):
        return first
