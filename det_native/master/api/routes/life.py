"""The life of an experiment: what becomes of it, and what is made of it."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel

from det_native.master.api.answers import ExperimentId, TheOwner, TheService
from det_native.master.api.serving import serve
from det_native.master.flow import life
from det_native.master.flow.creation import Idempotency
from det_native.schema import routes
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention
from det_native.schema.rest import Experiment

Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


@serve(routes.FORK_EXPERIMENT)
def fork_experiment(
    experiment_id: ExperimentId, body: ExperimentFork, service: TheService, owner: TheOwner, key: Key = None
) -> Experiment:
    made, forked = life.fork(service.context, experiment_id, owner, body)
    once = _idempotency(key, experiment_id, body)
    return service.create_experiment(owner, made, once, forked=forked)


@serve(routes.CONTINUE_EXPERIMENT)
def continue_experiment(
    experiment_id: ExperimentId, body: ExperimentContinuation, service: TheService, owner: TheOwner, key: Key = None
) -> Experiment:
    made, forked = life.continuation(service.context, experiment_id, owner, body)
    once = _idempotency(key, experiment_id, body)
    return service.create_experiment(owner, made, once, forked=forked)


@serve(routes.SET_GC_POLICY)
def set_gc_policy(experiment_id: ExperimentId, body: Retention, service: TheService, owner: TheOwner) -> Retained:
    return service.retain(owner, experiment_id, body)


@serve(routes.GET_DELETION)
def get_deletion(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Deletion:
    return service.deletions.preview(experiment_id, owner)


@serve(routes.DELETE_EXPERIMENT)
def delete_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Deletion:
    return service.delete_experiment(owner, experiment_id)


def _idempotency(key: str | None, experiment_id: int, body: BaseModel) -> Idempotency | None:
    if key is None:
        return None
    text = json.dumps([experiment_id, type(body).__name__, body.model_dump(mode="json")], sort_keys=True)
    return Idempotency(key, hashlib.sha256(text.encode()).hexdigest())
