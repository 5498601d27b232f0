"""Which checkpoints stay, whatever a configuration says: registered and pinned ones, and where something begins."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Select, select

from det_native.master.store.experiments import TERMINAL
from det_native.master.store.tables import checkpoint_uses, checkpoints, experiments, trials
from det_native.master.store.user_tables import model_versions, models


def protected(connection: Connection, experiment_id: int | None = None) -> dict[str, str]:
    """Return the checkpoints that stay whatever a configuration says, each with the reason, as part of a sentence.

    Parameters
    ----------
    experiment_id : int, optional
        Only those of this experiment.
    """
    reasons: dict[str, str] = {}
    for uuid, experiment in connection.execute(_of(_uses(), experiment_id)):
        reasons[uuid] = f"the program of experiment {experiment} or its trials begin with it"
    for uuid, experiment in connection.execute(_of(_warm_starts(), experiment_id)):
        reasons[uuid] = f"a trial of experiment {experiment} begins with it"
    pinned = select(checkpoints.c.uuid).where(checkpoints.c.pinned)
    reasons |= dict.fromkeys(connection.execute(_of(pinned, experiment_id)).scalars(), "it is pinned; unpin it first")
    for uuid, name, version in connection.execute(_of(_versions(), experiment_id)):
        reasons[uuid] = f"it is version {version} of the model {name!r}; delete that version first"
    return reasons


def reason_to_keep(connection: Connection, uuid: str) -> str:
    """Return why a checkpoint stays, as part of a sentence; empty where nothing needs it."""
    return protected(connection).get(uuid, "")


def kept_of(connection: Connection, uuids: Collection[str]) -> set[str]:
    """Return those of some checkpoints that stay."""
    return set(uuids) & protected(connection).keys() if uuids else set()


def _of(query: Select[Any], experiment_id: int | None) -> Select[Any]:
    return query if experiment_id is None else query.where(checkpoints.c.experiment_id == experiment_id)


def _uses() -> Select[Any]:
    return select(checkpoint_uses.c.uuid, checkpoint_uses.c.experiment_id).join(
        checkpoints, checkpoints.c.uuid == checkpoint_uses.c.uuid
    )


def _warm_starts() -> Select[Any]:
    """Trials of an experiment that has ended do not need what they have begun with in the same one."""
    return (
        select(trials.c.warm_start, trials.c.experiment_id)
        .join(checkpoints, checkpoints.c.uuid == trials.c.warm_start)
        .join(experiments, experiments.c.id == trials.c.experiment_id)
        .where(
            (experiments.c.state.not_in(TERMINAL)) | (checkpoints.c.experiment_id != trials.c.experiment_id),
        )
        .distinct()
    )


def _versions() -> Select[Any]:
    return (
        select(model_versions.c.uuid, models.c.name, model_versions.c.version)
        .join(models, models.c.id == model_versions.c.model_id)
        .join(checkpoints, checkpoints.c.uuid == model_versions.c.uuid)
    )
