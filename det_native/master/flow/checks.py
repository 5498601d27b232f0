"""Checks of bundles: loaded in a fresh process, without running their cells."""

from __future__ import annotations

import logging
import shutil
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from det_native.errors import NotFoundError, StorageError
from det_native.master.flow.context import Context
from det_native.master.flow.jobs import check_job, worker_kind
from det_native.master.launch.base import Exit
from det_native.master.store import bundles
from det_native.schema.rest import BundleChecked, ProblemInfo
from det_native.schema.run_ids import new_id

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 120.0
OUTPUT_LINES = 20


@dataclass
class Check:
    """A check that goes on, and who waits for it."""

    run_id: str
    bundle_id: str
    check_key: str
    directory: Path
    deadline: float
    waiting: list[Future[BundleChecked]]
    timed_out: bool = False


class Checks:
    """All checks that go on. Used by the decision thread only."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.active: dict[str, Check] = {}

    def begin(self, bundle_id: str, waiting: Future[BundleChecked]) -> None:
        """Check a bundle, or wait for the check of it that goes on; a pass is remembered."""
        with self._context.database.read() as connection:
            bundle = bundles.get(connection, bundle_id)
            passed = bundles.is_checked(connection, bundle_id)
        if passed:
            waiting.set_result(BundleChecked(ok=True))
            return
        for check in self.active.values():
            if check.check_key == bundle.check_key:
                check.waiting.append(waiting)
                return
        run_id = new_id()
        directory = self._context.places.run(run_id)
        directory.mkdir(parents=True, mode=0o700)
        job = check_job(bundle, directory, self._context.places)
        check = Check(run_id, bundle_id, bundle.check_key, directory, time.monotonic() + DEADLINE_SECONDS, [waiting])
        self.active[run_id] = check
        try:
            self._context.launcher.start(run_id, job, worker_kind(bundle))
        except OSError as error:
            self.ended(Exit(run_id, None, f"it could not be started: {error}"))

    def ended(self, exit: Exit) -> bool:
        """A worker is gone; whether it was one of a check."""
        check = self.active.pop(exit.run_id, None)
        if check is None:
            return False
        result = self._result(check, exit)
        if result.ok:
            with self._context.database.write() as transaction:
                bundles.set_checked(transaction, check.bundle_id)
        else:
            what = "; ".join(f"{problem.where}: {problem.what}" for problem in result.problems)
            logger.info("check of bundle %s failed: %s", check.bundle_id, what)
        shutil.rmtree(check.directory, ignore_errors=True)
        lost = None if result.ok else self._lost(check.bundle_id)
        for future in check.waiting:
            if lost is None:
                future.set_result(result)
            else:
                future.set_exception(lost)
        return True

    def tick(self) -> None:
        """End checks that take too long."""
        for check in self.active.values():
            if not check.timed_out and time.monotonic() > check.deadline:
                check.timed_out = True
                self._context.launcher.kill(check.run_id, grace=0.0)

    def abandon(self) -> None:
        """The master ends: nobody gets an answer any more."""
        for check in self.active.values():
            self._context.launcher.kill(check.run_id, grace=0.0)
            shutil.rmtree(check.directory, ignore_errors=True)
            for future in check.waiting:
                future.set_result(_failed("The master was stopped during the check.", ""))
        self.active = {}

    def _lost(self, bundle_id: str) -> NotFoundError | None:
        """Return that blobs are gone, if that is why a check failed: a damaged one is removed by who reads it."""
        with self._context.database.read() as connection:
            hashes = bundles.get(connection, bundle_id).hashes()
        try:
            lost = self._context.blobs.lost(hashes)
        except (OSError, StorageError):  # which is why the check failed, and what it says
            return None
        return NotFoundError(f"{len(lost)} blobs of bundle {bundle_id} are gone; send it again.") if lost else None

    def _result(self, check: Check, exit: Exit) -> BundleChecked:
        try:
            return BundleChecked.model_validate_json((check.directory / "result.json").read_bytes())
        except (OSError, ValidationError) as error:
            logger.info("The check of bundle %s gave no result: %s", check.bundle_id, error)
        if check.timed_out:
            return _failed(f"Loading the bundle in a fresh process took over {DEADLINE_SECONDS:.0f} s.", "")
        output = self._context.launcher.logs(check.run_id, 0).text.strip().splitlines()[-OUTPUT_LINES:]
        detail = f"The fresh process ended without a result ({exit.detail or exit.code})."
        return _failed(detail, "\n".join(output))


def _failed(what: str, output: str) -> BundleChecked:
    text = f"{what} Its last output:\n{output}" if output else what
    return BundleChecked(ok=False, problems=[ProblemInfo(where="bundle", what=text)])
