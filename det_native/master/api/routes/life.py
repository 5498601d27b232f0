"""The life of an experiment: what becomes of it, and what is made of it."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from fastapi import APIRouter, Header
from pydantic import BaseModel
from starlette.responses import Response

from det_native.master.api.answers import ExperimentId, TheOwner, TheService, refusals, reply
from det_native.master.api.bodies import Route
from det_native.master.flow import life
from det_native.master.flow.creation import Idempotency
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention
from det_native.schema.rest import Experiment

router = APIRouter(route_class=Route, prefix="/experiments/{experiment_id}", tags=["experiments"])

Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


@router.post("/fork", response_model=Experiment, status_code=201, responses=refusals(400, 404, 409))
def fork_experiment(
    experiment_id: ExperimentId, body: ExperimentFork, service: TheService, owner: TheOwner, key: Key = None
) -> Response:
    """Submit the program of an experiment with another configuration."""
    made, forked = life.fork(service.context, experiment_id, owner, body)
    once = _idempotency(key, experiment_id, body)
    return reply(service.create_experiment(owner, made, once, forked=forked), 201)


@router.post("/continue", response_model=Experiment, status_code=201, responses=refusals(400, 404, 409))
def continue_experiment(
    experiment_id: ExperimentId, body: ExperimentContinuation, service: TheService, owner: TheOwner, key: Key = None
) -> Response:
    """Submit an experiment that goes on from a checkpoint of this one, and trains so much longer."""
    made, forked = life.continuation(service.context, experiment_id, owner, body)
    once = _idempotency(key, experiment_id, body)
    return reply(service.create_experiment(owner, made, once, forked=forked), 201)


@router.put("/gc-policy", response_model=Retained, responses=refusals(400, 404))
def set_gc_policy(experiment_id: ExperimentId, body: Retention, service: TheService, owner: TheOwner) -> Response:
    """Change how many checkpoints of an experiment stay; what is superfluous then goes."""
    return reply(service.retain(owner, experiment_id, body))


@router.get("/deletion", response_model=Deletion, responses=refusals(404))
def get_deletion(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """Tell what the deletion of an experiment would free, and what stands in its way; nothing is deleted."""
    return reply(service.deletions.preview(experiment_id, owner))


@router.delete("", response_model=Deletion, responses=refusals(404, 409))
def delete_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """Delete an experiment that has ended, with its checkpoints, files, output and metrics; tell what that frees."""
    return reply(service.delete_experiment(owner, experiment_id))


def _idempotency(key: str | None, experiment_id: int, body: BaseModel) -> Idempotency | None:
    if key is None:
        return None
    text = json.dumps([experiment_id, type(body).__name__, body.model_dump(mode="json")], sort_keys=True)
    return Idempotency(key, hashlib.sha256(text.encode()).hexdigest())
