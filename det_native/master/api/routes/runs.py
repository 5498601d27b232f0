"""What workers tell and ask; a run's own token opens these routes for that run only."""

from __future__ import annotations

from det_native.master.api.answers import RunId, TheService
from det_native.master.api.serving import serve
from det_native.master.store import reports
from det_native.schema import routes
from det_native.schema.rest import BestMetric, ReportBatch, ReportsAccepted


@serve(routes.POST_REPORTS)
def post_reports(run_id: RunId, body: ReportBatch, service: TheService) -> ReportsAccepted:
    return service.report(run_id, body)


@serve(routes.GET_BEST)
def get_best(run_id: RunId, service: TheService) -> BestMetric:
    with service.database.read() as connection:
        return BestMetric(value=reports.best(connection, run_id))
