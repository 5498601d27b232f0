"""What ``fit()`` of a Keras model returns on the cluster: an experiment that is used as Keras's ``History`` is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_native.client.handles import Experiment
from det_native.client.source import Source
from det_native.past_history import recorded_history, with_stand_ins
from det_native.runtime import active_host
from det_native.schema import rest


class KerasExperiment(Experiment):
    """An experiment, and the ``History`` of the training: ``history``, ``epoch``, ``params``, ``model``.

    The first three wait for the end of the experiment; in a search they are of the best trial. A pickle of it is a
    plain ``History``, as that of a run in the kernel is; a copy is the same handle.

    Parameters
    ----------
    source : Source
    experiment_id : int
    model : keras.Model
        What ``fit()`` was called of, in this kernel.
    kind : type
        Keras's ``History``.
    """

    def __init__(self, source: Source, experiment_id: int, *, model: Any, kind: type) -> None:
        super().__init__(source, experiment_id)
        self._model = model
        self._kind = kind
        self._epochs: list[rest.EpochRow] | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Keras's ``History``: ``isinstance()`` holds as after plain ``fit()``."""
        return self._kind

    @property
    def model(self) -> Any:
        """The model of this kernel that ``fit()`` was called of."""
        return self._model

    @property
    def history(self) -> dict[str, list[Any]]:
        """Metrics by epoch, as Keras's ``History`` has them where the model was trained; see ``Experiment.history``."""
        recorded = self._recorded()
        return recorded_history(recorded) if recorded else super().history

    @property
    def epoch(self) -> list[int]:
        """Numbers of the epochs, from ``initial_epoch``."""
        recorded = self._recorded()
        if recorded:
            return [row.epoch for row in recorded]
        return list(range(max(map(len, super().history.values()), default=0)))

    @property
    def params(self) -> dict[str, int]:
        """What Keras tells its callbacks of the whole training: ``verbose``, ``epochs``, ``steps``."""
        recorded = self._recorded()
        return dict(recorded[-1].params) if recorded else {}

    def _recorded(self) -> Sequence[rest.EpochRow]:
        """Wait for the end, and return what was recorded of the best trial."""
        if self._epochs is None:
            self.wait()
            self._epochs = self.source.epochs(self.best_trial.id)
        return self._epochs

    def plain_history(self) -> Any:
        """Return Keras's own ``History`` with the same contents, and without the model."""
        plain = self._kind()
        plain.set_params(self.params)
        plain.history, plain.epoch = self.history, self.epoch
        return plain

    def __copy__(self) -> KerasExperiment:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> KerasExperiment:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._kind, (), vars(self.plain_history())

    def _det_travels(self) -> Any:
        """Return by what a worker gets it: a ``History``, of which all else stands for the experiment's there."""
        return _arrived, (self._kind, vars(self.plain_history()), f"experiment {self.id}")


def _arrived(kind: type, state: dict[str, Any], place: str) -> Any:
    """Return the ``History`` of an experiment in a program that runs again."""
    host = active_host()
    past = kind() if host is None else with_stand_ins(kind, host.stand_in(place))()
    vars(past).update(state)
    return past


def give_history(model: Any, experiment: Experiment) -> None:
    """Give a model the history of its training: ``model.history`` is what ``fit()`` has returned, as in Keras.

    Called when the weights of the experiment are in the model.
    """
    model.history = experiment
