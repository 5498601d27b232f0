"""``local/...``: the runs that kernels and scripts of this machine train by themselves, without a master."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

from jupyter_server.auth.decorator import authorized
from jupyter_server.utils import ensure_async
from tornado import web
from tornado.iostream import StreamClosedError

from det_jupyter import local_runs
from det_jupyter.handlers import LOCAL_SETTING, DetHandler
from det_jupyter.local_events import LocalWatch
from det_native.errors import ArgumentError, NotFoundError, UnsupportedFeatureError
from det_native.local.interrupting import interrupt, not_on_a_master
from det_native.schema.downloads import attachment
from det_native.schema.states import MetricKind
from det_native.schema.system_samples import MOST_SAMPLES

_LARGEST = 2**53
_PIECE = 1 << 20
_PING_SECONDS = 15.0

Answer = TypeVar("Answer")


class LocalHandler(DetHandler):
    """Reads what a run has written; files are read in a thread, so that the server goes on meanwhile."""

    # A page that only looks does not keep an idle server alive.
    _track_activity = False

    @property
    def curves(self) -> local_runs.Curves:
        """The curves that were read before."""
        found: local_runs.Curves = self.settings[LOCAL_SETTING]
        return found

    async def tell(self, read: Callable[[], dict[str, Any] | list[Any]]) -> None:
        """Answer with what `read` returns; 404 where there is no such thing, 400 for a wrong parameter."""
        try:
            body = await asyncio.to_thread(read)
        except (NotFoundError, FileNotFoundError) as error:  # it may be removed at this moment
            self.answer({"error": str(error)}, HTTPStatus.NOT_FOUND)
        except ArgumentError as error:
            self.answer({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except ValueError as error:
            message = f"What is kept of this run cannot be read: {error}"
            self.answer({"error": message}, HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            self.set_header("Cache-Control", "no-store")
            self.answer(body)

    def number(self, name: str, default: int, *, least: int = 0, most: int = _LARGEST) -> int:
        """Return a parameter of the query that is a whole number.

        Raises
        ------
        ArgumentError
            If it is none, or out of bounds.
        """
        text = self.get_query_argument(name, None)
        if text is None:
            return default
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if not least <= found <= most:
            raise ArgumentError(f"{name} is a number from {least} to {most}, not {text!r}.")
        return found

    def kinds(self) -> list[MetricKind]:
        """Return which kinds of metrics are meant: both by default.

        Raises
        ------
        ArgumentError
            If there is no such kind.
        """
        text = self.get_query_argument("kind", None)
        if text is None:
            return list(MetricKind)
        if text not in list(MetricKind):
            raise ArgumentError(f"kind is one of {', '.join(MetricKind)}, not {text!r}.")
        return [MetricKind(text)]


class LocalListHandler(LocalHandler):
    """``local/experiments``."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the runs that are kept, newest first."""
        await self.tell(local_runs.experiments)


class LocalExperimentHandler(LocalHandler):
    """``local/experiments/<n>`` and what is below it."""

    @web.authenticated
    @authorized
    async def get(self, number: str, part: str | None) -> None:
        """Answer with the experiment, or with its ``trials``, ``checkpoints`` or ``curves``."""

        def read() -> dict[str, Any] | list[Any]:
            store = local_runs.store_of(number)
            if part == "trials":
                return local_runs.trials(store)
            if part == "checkpoints":
                return local_runs.checkpoints(store)
            if part == "curves":
                newest = self.number("trials", 50, least=1, most=1000)
                buckets = self.number("buckets", 500, least=1, most=10_000)
                return self.curves.of_experiment(store, self.kinds(), newest, buckets)
            return local_runs.experiment(store, report=True)

        await self.tell(read)


class LocalTrialHandler(LocalHandler):
    """``local/experiments/<n>/trials/<m>`` and what is below it."""

    @web.authenticated
    @authorized
    async def get(self, number: str, trial_number: str, part: str | None) -> None:
        """Answer with the trial, or with a part of it."""

        def read() -> dict[str, Any] | list[Any]:
            store = local_runs.store_of(number)
            trial_id = int(trial_number)
            trial = local_runs.trial(store, trial_id)
            if part == "checkpoints":
                return local_runs.checkpoints(store, trial_id)
            if part == "curves":
                buckets = self.number("buckets", 1000, least=1, most=10_000)
                return self.curves.of_trials(store, [trial_id], self.kinds(), buckets)
            if part == "metrics":
                kind = self.kinds()[0]
                after = self.number("after_batch", -1, least=-1)
                return local_runs.rows(
                    store, trial_id, kind, after, self.number("limit", 10_000, least=1, most=100_000)
                )
            if part == "system":
                points = self.number("points", MOST_SAMPLES, least=1, most=MOST_SAMPLES)
                return local_runs.samples(store, trial_id, points)
            if part == "media":
                after, limit = self.number("after", 0), self.number("limit", 1000, least=1, most=10_000)
                return local_runs.media(store, trial_id, after, limit)
            if part == "artifacts":
                return local_runs.artifacts(store, trial_id)
            if part == "logs":
                return local_runs.log_lines(
                    store,
                    trial_id,
                    after=self.number("after", 0),
                    limit=self.number("limit", 1000, least=1, most=10_000),
                    last=self.number("last", 0, least=1, most=10_000) or None,
                    before=self.number("before", 0, least=1) or None,
                )
            return trial

        await self.tell(read)


class LocalMediumHandler(LocalHandler):
    """``local/experiments/<n>/trials/<m>/media/<id>/content``."""

    @web.authenticated
    @authorized
    async def get(self, number: str, trial_number: str, medium_id: str) -> None:
        """Answer with what was logged; nothing in it runs as a page, by the policy of every answer."""
        try:
            content, mime = await asyncio.to_thread(
                lambda: local_runs.content_of_medium(local_runs.store_of(number), int(trial_number), int(medium_id))
            )
        except (NotFoundError, OSError, ValueError) as error:
            self.answer({"error": str(error)}, HTTPStatus.NOT_FOUND)
            return
        self.set_header("Cache-Control", "no-store")
        self.write(content)
        await self.finish(set_content_type=mime)


class LocalFileHandler(LocalHandler):
    """``local/experiments/<n>/checkpoints/<uuid>/files/<path>``."""

    @web.authenticated
    @authorized
    async def get(self, number: str, uuid: str, path: str) -> None:
        """Answer with a file that the checkpoint lists, to be saved."""
        try:
            found = await asyncio.to_thread(
                lambda: local_runs.file_of_checkpoint(local_runs.store_of(number), uuid, path)
            )
            file = found.open("rb")
        except (NotFoundError, OSError, ValueError) as error:
            self.answer({"error": str(error)}, HTTPStatus.NOT_FOUND)
            return
        with file:
            self.set_header("Content-Disposition", attachment(path))
            self.set_header("Cache-Control", "no-store")
            try:
                while piece := await asyncio.to_thread(file.read, _PIECE):
                    self.write(piece)
                    await self.flush()
            except StreamClosedError:
                return  # the browser has gone
        await self.finish(set_content_type="application/octet-stream")


class LocalActionHandler(LocalHandler):
    """``local/experiments/<n>/stop``, ``.../kill``, ``.../pause`` and ``.../resume``."""

    @web.authenticated
    @authorized
    async def post(self, number: str, action: str) -> None:
        """Interrupt a run, which then ends with a checkpoint; 409 for what a local run cannot do."""
        try:
            store = await asyncio.to_thread(local_runs.store_of, number)
            if action not in ("stop", "kill"):
                asked = "paused" if action == "pause" else "resumed"
                raise UnsupportedFeatureError(not_on_a_master(store.id, asked))
            runner = store.runner()
            kernel_id = runner.kernel_id if runner is not None and store.running() else None
            if kernel_id is not None and kernel_id in self.kernel_manager:
                manager: Any = self.kernel_manager  # asynchronous or not
                await ensure_async(manager.interrupt_kernel(kernel_id))
            else:
                await asyncio.to_thread(interrupt, store)
        except NotFoundError as error:
            self.answer({"error": str(error)}, HTTPStatus.NOT_FOUND)
        except UnsupportedFeatureError as error:
            self.answer({"error": str(error)}, HTTPStatus.CONFLICT)
        else:
            await self.tell(lambda: local_runs.experiment(store))


class LocalEventsHandler(LocalHandler):
    """``local/events``: server-sent events of the shape of the master's, about local runs."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Tell what changes from now on, of all runs or of that which ``experiment_id`` names."""
        await self.while_connected(self._follow)

    async def _follow(self) -> None:
        watch = LocalWatch(self.get_query_argument("experiment_id", None))
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-store")
        # Proxies in front of Jupyter must not collect events.
        self.set_header("X-Accel-Buffering", "no")
        await asyncio.to_thread(watch.changes)  # as it is now: the page asks for that by itself
        self.write(": open\n\n")
        try:
            await self.flush()
            silent = 0.0
            while True:
                await asyncio.sleep(watch.interval)
                events = await asyncio.to_thread(watch.changes)
                silent = 0.0 if events else silent + watch.interval
                for event in events:
                    self.write(event)
                if silent >= _PING_SECONDS:
                    self.write(": ping\n\n")
                    silent = 0.0
                await self.flush()
        except StreamClosedError:
            return
