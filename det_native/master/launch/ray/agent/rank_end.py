"""The end of a process: what it has left comes to the master before its end is told."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from det_native.errors import DetError, DiskFailedError, DiskFullError, StorageError
from det_native.master.flow.spool import DamagedSpoolError, left_batches
from det_native.master.launch.base import Exit
from det_native.master.launch.local_run import append_output
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.master.launch.ray.agent.mirror import Mirror
from det_native.master.launch.ray.agent.reports import OK, UNAVAILABLE, ReportPasser
from det_native.master.launch.ray.agent.runs_here import RankHere, RunHere
from det_native.master.launch.ray.agent.uploads import Uploads
from det_native.master.launch.ray.asks.kinds import RankEnded, Request, Response
from det_native.schema.job import TrialJob
from det_native.schema.rest import ErrorBody, ReportBatch
from det_native.schema.routes import POST_REPORTS
from det_native.storage.file_states import BASELINE_NAME, Baseline, written_in
from det_native.storage.written_files import select

logger = logging.getLogger(__name__)

_LEFT_FILES = ("exit.json", "system.json", "result.json")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
# A full disk of the master is waited for so long, where it is only about files.
_PATIENCE = 60.0
# What the master refuses, though it has room, is tried again for so long after the end of the process.
_REFUSED_SECONDS = 600.0
# A request of reports has about so many; the master takes a few times as much.
_BODY_BYTES = 1 << 20
_AGAIN = frozenset({429, 500, 502, UNAVAILABLE, 504, 507})


class RankEnds:
    """Brings to the master what processes leave."""

    def __init__(
        self, asks: AskQueue, passer: ReportPasser, mirror: Mirror, uploads: Uploads, folders: AgentFolders
    ) -> None:
        self._asks = asks
        self._passer = passer
        self._mirror = mirror
        self._uploads = uploads
        self._folders = folders

    async def bring(self, run: RunHere, rank: RankHere, ended: Exit) -> None:
        """Bring all that a process has left, and tell its end; returns once the master knows."""
        folder = self._folders.rank(run.run_id, rank.rank)
        steps: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("its last reports", lambda: self._reports(run, rank, folder)),
            ("what its processes share", lambda: self._mirror.rest_of_shares(run)),
            ("its files", lambda: self._files(folder)),
            ("its event files", lambda: self._mirror.rest_of_events(run)),
            ("its output", lambda: self._mirror.rest_of_output(run, rank)),
        ]
        for name, step in steps:
            try:
                await _patiently(step)
            except (DetError, OSError) as error:
                self._say(folder, f"Not all of {name} could be brought to the master: {error}")
            except Exception:  # whatever it is, the end has to be told
                logger.exception("Run %s, rank %d: %s could not be brought.", run.run_id, rank.rank, name)
        await self._asks.ask(RankEnded(run.run_id, rank.rank, ended.code, ended.detail, ended.memory, ended.begun))

    async def _reports(self, run: RunHere, rank: RankHere, folder: Path) -> None:
        if not isinstance(rank.job, TrialJob):
            return
        batches = _bodies(left_batches(folder))
        headers = {"authorization": f"Bearer {run.token}", "content-type": "application/json"}
        path = POST_REPORTS.address(run_id=run.run_id)
        try:
            while body := await asyncio.to_thread(next, batches, b""):
                request = Request("POST", path, headers, body)
                response = await self._persistently(run, rank, request, folder)
                if response.status != OK:
                    self._say(folder, f"The master does not take what was left to report: {_sentence(response)}")
                    return
        except DamagedSpoolError as error:
            self._say(folder, str(error))
        finally:
            run.gives_up = False

    async def _persistently(self, run: RunHere, rank: RankHere, request: Request, folder: Path) -> Response:
        """Pass reports on again and again until the master has decided about them.

        What they name and the master does not take, though it has room, is left out in the end: the run would hold
        its slots for ever.

        Raises
        ------
        StorageError
            If it has not for a while after the run was to be ended: its end is not to wait for ever.
        """
        pause, refused_at = _FIRST_PAUSE, 0.0
        until = None
        while True:
            if rank.killed:
                until = until or time.monotonic() + _PATIENCE
                if time.monotonic() > until:
                    raise StorageError("it cannot take them, and the run was to be ended.")
            try:
                response = await self._passer.pass_on(run, request)
            except DetError as error:
                logger.warning("Reports that run %s has left wait: %s", run.run_id, error)
            else:
                if response.status not in _AGAIN:
                    return response
            if not run.untaken:
                refused_at = 0.0
            elif not refused_at:
                refused_at = time.monotonic()
                self._say(
                    folder,
                    f"The master cannot take what was reported last: {run.untaken} It is tried again for "
                    f"{_REFUSED_SECONDS / 60:.0f} minutes; until then the trial is not over, and holds its slots.",
                )
            elif time.monotonic() - refused_at > _REFUSED_SECONDS:
                run.gives_up = True
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _files(self, folder: Path) -> None:
        """Bring reports of the end, and of what the code has written that it had not reported yet."""
        name = folder.relative_to(self._folders.runs).as_posix()
        for file in _LEFT_FILES:
            await self._uploads.whole_file("runs", f"{name}/{file}", folder / file)
        baseline = await asyncio.to_thread(Baseline.read, folder)
        if baseline is None:
            return
        for path, place in await asyncio.to_thread(_written, folder, baseline):
            await self._uploads.whole_file("runs", f"{name}/work/{path}", place)
        # There all files lie in the working directory, those of other folders too.
        note = await asyncio.to_thread(_note_of, dataclasses.replace(baseline, elsewhere={}), folder)
        await self._uploads.content("runs", f"{name}/{BASELINE_NAME}", note)

    def _say(self, folder: Path, sentence: str) -> None:
        logger.warning("%s: %s", folder.name, sentence)
        append_output(folder, f"WARNING: {sentence}\n")


def _bodies(batches: Iterator[ReportBatch]) -> Iterator[bytes]:
    """Yield the bodies of the requests by which a worker would have sent these reports."""
    for batch in batches:
        texts: list[str] = []
        for report in batch.reports:
            texts.append(report.model_dump_json())
            if sum(map(len, texts)) > _BODY_BYTES:
                yield _body(texts)
                texts = []
        if texts:
            yield _body(texts)


def _body(texts: list[str]) -> bytes:
    return f'{{"reports":[{",".join(texts)}]}}'.encode()


def _written(folder: Path, baseline: Baseline) -> list[tuple[str, Path]]:
    """Return the files that the code has written and that are kept: where they belong, and where they lie."""
    written = written_in(baseline.folders(folder))
    selection = select({name: state for name, (_, state) in written.items()}, baseline.limits, 0)
    return [(name, written[name][0]) for name in selection.kept]


def _note_of(baseline: Baseline, folder: Path) -> bytes:
    baseline.write(folder)
    return (folder / BASELINE_NAME).read_bytes()


async def _patiently(step: Callable[[], Awaitable[Any]]) -> None:
    """Take a step, and again while the disk of the master is full."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            await step()
            return
        except (DiskFullError, DiskFailedError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_LONGEST_PAUSE)


def _sentence(response: Response) -> str:
    try:
        return ErrorBody.model_validate_json(response.body).error
    except ValueError:
        return f"HTTP {response.status}"
