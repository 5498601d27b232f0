"""Reports of workers on their way to the master: after what they name, which is brought there first."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from det_native.errors import DetError, DiskFailedError, DiskFullError
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.folders import AgentFolders, remove_folder
from det_native.master.launch.ray.agent.runs_here import RunHere
from det_native.master.launch.ray.agent.uploads import Uploads
from det_native.master.launch.ray.asks.kinds import Request, Response
from det_native.master.launch.ray.asks.master_line import refusal
from det_native.schema.reports import CheckpointReport, WarningReport

logger = logging.getLogger(__name__)

OK = 200
UNAVAILABLE = 503
_NAMING = frozenset({"checkpoint", "artifacts", "media"})
# A worker gives up after 30 seconds; it is told before that what is not done yet.
_PATIENCE = 12.0
_SHORT = 0.3
# How many of a run's own checkpoints stay here while it trains: the last one, and the one that it may still read.
_KEPT = 2
_NOTE_LENGTH = 2_000


class ReportPasser:
    """Passes reports on to the master, in their order."""

    def __init__(self, asks: AskQueue, uploads: Uploads, folders: AgentFolders) -> None:
        self._asks = asks
        self._uploads = uploads
        self._folders = folders

    async def pass_on(self, run: RunHere, request: Request) -> Response:
        """Pass reports on; 503 while what they name is on its way, for the worker to send them again.

        Until then those before them are passed on, and with them the sign that the worker lives.
        """
        async with run.reporting:
            try:
                batch = json.loads(request.body)
                reports: list[dict[str, Any]] = batch["reports"]
                naming = {int(report["seq"]): report for report in reports if report.get("type") in _NAMING}
            except (ValueError, KeyError, TypeError, AttributeError):
                return await self._request(request)  # the master says what is wrong
            if not naming:
                return await self._request(request)
            return await self._pass_naming(run, request, batch, naming)

    async def _pass_naming(
        self, run: RunHere, request: Request, batch: dict[str, Any], naming: dict[int, dict[str, Any]]
    ) -> Response:
        for seq, report in naming.items():
            if seq not in run.prepared:
                run.prepared[seq] = asyncio.create_task(self._prepared(run, report))
        tasks = [run.prepared[seq] for seq in naming]
        deadline = time.monotonic() + _PATIENCE
        await asyncio.wait(tasks, timeout=_SHORT)
        if not all(task.done() for task in tasks):
            ready = _ready(run, batch["reports"])
            response = await self._request(_with_reports(request, batch, ready))
            if response.status != OK:
                return response
            await asyncio.wait(tasks, timeout=max(0.0, deadline - time.monotonic()))
        if not all(task.done() for task in tasks):
            return refusal(UNAVAILABLE, "What the reports name is still on its way to the master.")
        failed = [task.exception() for task in tasks if task.exception() is not None]
        if failed:
            for seq in [seq for seq in naming if run.prepared[seq].exception() is not None]:
                del run.prepared[seq]
            run.untaken = "" if isinstance(failed[0], DiskFullError | DiskFailedError) else str(failed[0])
            logger.warning("What reports of run %s name is not brought to the master now: %s", run.run_id, failed[0])
            return refusal(UNAVAILABLE, f"What the reports name cannot be brought to the master now: {failed[0]}")
        run.untaken = ""
        response = await self._request(_with_reports(request, batch, _ready(run, batch["reports"])))
        if response.status == OK:
            for seq, report in naming.items():
                sent = run.prepared.pop(seq).result()
                if sent["type"] == "checkpoint":
                    await self._note_uploaded(run, str(report["manifest"]["uuid"]))
        return response

    async def _request(self, request: Request) -> Response:
        response = await self._asks.ask(request)
        assert isinstance(response, Response)
        return response

    async def _prepared(self, run: RunHere, report: dict[str, Any]) -> dict[str, Any]:
        """Bring what a report names, and return the report as the master gets it: a warning once that is given up."""
        try:
            return await self._brought(run, report)
        except (DetError, OSError) as error:
            if not run.gives_up or isinstance(error, DiskFullError | DiskFailedError):
                raise
            text = f"What was reported here is lost ({report['type']}), since the master could not take it: {error}"
            return WarningReport(seq=report["seq"], text=text[:_NOTE_LENGTH]).model_dump(mode="json")

    async def _brought(self, run: RunHere, report: dict[str, Any]) -> dict[str, Any]:
        match report["type"]:
            case "checkpoint":
                return await self._prepared_checkpoint(run, report)
            case _ if not run.places.takes_files:
                return report
            case "artifacts":
                lost = await self._uploads.blobs(_hashes(report.get("files")))
                files = [_without(file) if file.get("sha256") in lost else file for file in report["files"]]
                return {**report, "files": files} if lost else report
            case _:
                lost = await self._uploads.blobs(_hashes(report.get("items")))
                items = [item for item in report["items"] if item.get("sha256") not in lost]
                return {**report, "items": items} if lost else report

    async def _prepared_checkpoint(self, run: RunHere, report: dict[str, Any]) -> dict[str, Any]:
        here = f"{self._folders.checkpoints}/"
        if not str(report.get("location", "")).startswith(here):
            return report  # it is where the master reads it, too
        try:
            manifest = CheckpointReport.model_validate(report).manifest
        except ValidationError:
            return report  # the master says what is wrong
        lost = await self._uploads.checkpoint(manifest)
        if not lost:
            return {**report, "location": f"{run.places.checkpoints}/{manifest.uuid}"}
        logger.warning("Run %s: %s", run.run_id, lost)
        text = f"The checkpoint of batch {manifest.batch} is lost, since its files here were changed or removed: {lost}"
        return WarningReport(seq=report["seq"], text=text[:_NOTE_LENGTH]).model_dump(mode="json")

    async def _note_uploaded(self, run: RunHere, uuid: str) -> None:
        """Take note that the master has a checkpoint; older ones of the run go from here."""
        if uuid not in run.uploaded:
            run.uploaded.append(uuid)
        while len(run.uploaded) > _KEPT:
            old = run.uploaded.pop(0)
            if old not in run.needs:
                await asyncio.to_thread(remove_folder, self._folders.checkpoints / old)


def _ready(run: RunHere, reports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return reports as the master gets them, up to the first that has to wait."""
    ready: list[dict[str, Any]] = []
    for report in reports:
        task = run.prepared.get(report.get("seq", 0))
        if task is None:
            ready.append(report)
        elif task.done() and task.exception() is None:
            ready.append(task.result())
        else:
            break
    return ready


def _with_reports(request: Request, batch: dict[str, Any], reports: list[dict[str, Any]]) -> Request:
    body = json.dumps({**batch, "reports": reports}, separators=(",", ":")).encode()
    return Request(request.method, request.path, request.headers, body)


def _hashes(entries: Any) -> set[str]:
    return {entry["sha256"] for entry in entries or () if entry.get("sha256")}


def _without(file: dict[str, Any]) -> dict[str, Any]:
    return {**file, "sha256": None, "note": "Its content was lost on the machine that the trial ran on."}
