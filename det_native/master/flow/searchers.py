"""The searchers of experiments in memory, and in the store all that it takes to have them again."""

from __future__ import annotations

from dataclasses import dataclass

from det_native.master.store import searches
from det_native.master.store.database import Database, Transaction
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.search import Action, Event, Searcher, Shutdown, make_searcher
from det_native.search.journal import event_data, event_of

# A snapshot is as long as the search has trials, an event is short. So many are told again after a restart at most.
EVENTS_PER_SNAPSHOT = 64


class BrokenSearchError(Exception):
    """A searcher has raised an exception, and cannot say how its search goes on."""


@dataclass
class _Known:
    searcher: Searcher
    smaller_is_better: bool
    told: int  # events since the last snapshot


class Searchers:
    """Makes them when they are needed. Used by the decision thread only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[int, _Known] = {}

    def of(self, experiment: rest.Experiment) -> Searcher:
        """Return the searcher of an experiment, as it is after all events."""
        return self._of(experiment).searcher

    def tell(self, transaction: Transaction, experiment: rest.Experiment, event: Event) -> list[Action]:
        """Tell the searcher of an event, and keep that; return what it wants.

        Raises
        ------
        BrokenSearchError
            If it cannot take the event.
        """
        known = self._of(experiment)
        try:
            actions = known.searcher.handle(event)
        except Exception as error:  # a sampler that others wrote may raise anything
            self.forget(experiment.id)
            raise BrokenSearchError(f"{type(error).__name__}: {error}") from error
        known.told += 1
        if known.told >= EVENTS_PER_SNAPSHOT or any(isinstance(action, Shutdown) for action in actions):
            searches.keep_snapshot(transaction, experiment.id, known.searcher.snapshot())
            known.told = 0
        else:
            searches.keep_event(transaction, experiment.id, known.told, event_data(event))
        return actions

    def forget(self, experiment_id: int) -> None:
        """Forget one that has ended, or was told of what is not stored after all."""
        self._known.pop(experiment_id, None)

    def _of(self, experiment: rest.Experiment) -> _Known:
        known = self._known.get(experiment.id)
        if known is None or known.smaller_is_better != experiment.smaller_is_better:  # told by a training's first batch
            with self._database.read() as connection:
                snapshot, events = searches.known(connection, experiment.id)
            searcher = make_searcher(ExperimentConfig.model_validate(experiment.config), snapshot)
            for event in events:
                searcher.handle(event_of(event))
            known = self._known[experiment.id] = _Known(searcher, experiment.smaller_is_better, len(events))
        return known
