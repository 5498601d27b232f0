"""What workers tell and ask; a run's own token opens these routes for that run only."""

from __future__ import annotations

from det_native.master.api.answers import RunId, TheOwner, TheService
from det_native.master.api.serving import serve
from det_native.master.store import reports
from det_native.schema import routes
from det_native.schema.kernel_runs import KernelRun, KernelRunRecorded
from det_native.schema.outputs import ArtifactsReport
from det_native.schema.rest import BestMetric, ReportBatch, ReportsAccepted
from det_native.storage.paths import UnsafePathError


@serve(routes.RECORD_KERNEL_RUN)
def record_kernel_run(body: KernelRun, service: TheService, owner: TheOwner) -> KernelRunRecorded:
    return service.record_kernel_run(owner, body)


@serve(routes.POST_REPORTS)
def post_reports(run_id: RunId, body: ReportBatch, service: TheService) -> ReportsAccepted:
    for report in body.reports:
        if isinstance(report, ArtifactsReport):
            _check_paths(report)
    return service.report(run_id, body)


@serve(routes.GET_BEST)
def get_best(run_id: RunId, service: TheService) -> BestMetric:
    with service.database.read() as connection:
        return BestMetric(value=reports.best(connection, run_id))


def _check_paths(report: ArtifactsReport) -> None:
    """Refuse files outside of the working directory: whoever fetches them writes, and deletes, by these paths.

    Other odd names are told as they are: of such files the contents are not kept.
    """
    for path in (*(file.path for file in report.files), *report.removed):
        if path.startswith("/") or ".." in path.replace("\\", "/").split("/"):
            raise UnsafePathError(f"The path {path!r} leaves the working directory.")
