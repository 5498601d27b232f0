"""What workers tell and ask; a run's own token opens these routes for that run only."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from det_native.master.api.answers import BundleHash, RunId, TheService, refusals, reply
from det_native.master.api.bodies import Route
from det_native.master.store import proofs, reports
from det_native.schema.rest import BestMetric, ProofState, ReportBatch, ReportsAccepted

router = APIRouter(route_class=Route, prefix="/runs", tags=["runs"])


@router.post("/{run_id}/reports", response_model=ReportsAccepted, responses=refusals(400, 404, 409))
def post_reports(run_id: RunId, body: ReportBatch, service: TheService) -> Response:
    """Store reports. A repeat changes nothing; a gap is refused, and so is a run that is not current any more."""
    return reply(service.report(run_id, body))


@router.get("/{run_id}/best", response_model=BestMetric, responses=refusals(404, 409))
def get_best(run_id: RunId, service: TheService) -> Response:
    """Return the best value of the searcher's metric over the whole experiment so far."""
    with service.database.read() as connection:
        return reply(BestMetric(value=reports.best(connection, run_id)))


@router.get("/{run_id}/proof", response_model=ProofState, responses=refusals(404, 409))
def get_proof(run_id: RunId, bundle_id: BundleHash, service: TheService) -> Response:
    """Return whether a run of this bundle has to wait with its training for what the first trial finds."""
    with service.database.read() as connection:
        return reply(ProofState(pending=proofs.is_pending(connection, run_id, bundle_id)))
