"""The life of an experiment: what becomes of it, and what is made of it."""

from __future__ import annotations

from pydantic import BaseModel

from det_native.errors import RequestError
from det_native.master.api.answers import ExperimentId, Key, OfPage, TheOwner, TheService
from det_native.master.api.serving import serve
from det_native.master.flow import life
from det_native.master.flow.creation import Idempotency
from det_native.schema import routes
from det_native.schema.forks import closed_to_pages
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention
from det_native.schema.rest import Experiment


@serve(routes.FORK_EXPERIMENT)
def fork_experiment(
    experiment_id: ExperimentId,
    body: ExperimentFork,
    service: TheService,
    owner: TheOwner,
    of_page: OfPage,
    key: Key = None,
) -> Experiment:
    if of_page and (closed := closed_to_pages(body.config)):
        raise RequestError(
            403,
            f"Not for pages: {', '.join(closed)}. What could run code or reach other machines is changed by "
            f"`det experiment fork {experiment_id}` or det.experiment({experiment_id}).fork().",
        )
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
    return Idempotency.of(key, [experiment_id, type(body).__name__, body.model_dump(mode="json")])
