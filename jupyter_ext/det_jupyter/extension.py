"""The extension as Jupyter loads it: its settings, its routes, and what is closed with the server.

Below ``<base url>det-native/api/``, for the server's user only, with Jupyter's XSRF check:

* ``GET status`` -> ``statuses.Status``, always 200.
* ``POST start`` -> ``Status``; begins to start the master of this machine, or of the one that ``DET_MASTER`` names as ``ssh://``.
  409 where it names another one.
* ``GET|POST master/<path>`` -> the master's ``/api/v1/<path>``, for the paths that ``routes`` lists (404 for others),
  with the master's own status and body, streams included; 503 with a ``Status`` where there is no master to answer.
* ``GET notebook-runs[?path=]`` -> the runs of notebooks on this machine (``NotebookRun``), newest first;
  ``POST notebook-runs`` (``notebook_handlers.StartBody``) begins one, ``POST notebook-runs/<n>/stop`` ends it;
  ``POST notebook-runs/describe`` (``notebook_handlers.DescribeBody``) -> ``{"parameters", "running"}``;
  ``POST notebook-runs/<n>/open`` and ``POST experiments/<n>/notebook/open`` write the executed notebook where it can be
  opened -> ``{"path"}``. What cannot be done is 400, 404, 500 or 507 with ``{"error", "problems"}``.
* ``GET saved/experiments|trials/<number>`` -> what a notebook keeps of it (``det_native.experimental.saved``), where no
  kernel says so any more; 503 ``{"error"}`` if the master cannot be asked, 504 after ``DetJupyter.answer_seconds``.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

from jupyter_server.extension.application import ExtensionApp
from traitlets import Float, TraitError, Unicode, validate

from det_jupyter.forward_handlers import ForwardHandler
from det_jupyter.handlers import MASTER_SETTING, OPTIONS_SETTING, Options
from det_jupyter.master import Master
from det_jupyter.master_handlers import StartHandler, StatusHandler
from det_jupyter.notebook_handlers import (
    DescribeHandler,
    ExperimentNotebookHandler,
    NotebookRunHandler,
    NotebookRunsHandler,
)
from det_jupyter.saved_handlers import SavedHandler
from det_jupyter.tensorboard_handlers import KEY, TensorBoardHandler
from det_native.client.addresses import normal_url
from det_native.client.remote.target import is_ssh, parse_target
from det_native.errors import ArgumentError

BASE = r"/det-native/api"
_VARIABLE = "DET_MASTER"
NUMBER = r"[0-9]{1,18}"


class DetJupyter(ExtensionApp):
    """Forwards JupyterLab's questions to the det_native master, and runs notebooks in the background."""

    name = "det_jupyter"
    handler_classes: ClassVar[list[tuple[str, type[Any]]]] = [
        (rf"{BASE}/status", StatusHandler),
        (rf"{BASE}/start", StartHandler),
        (rf"{BASE}/master/(.*)", ForwardHandler),
        (rf"{BASE}/tensorboard/({KEY})/(.*)", TensorBoardHandler),
        (rf"{BASE}/notebook-runs", NotebookRunsHandler),
        (rf"{BASE}/notebook-runs/describe", DescribeHandler),
        (rf"{BASE}/notebook-runs/({NUMBER})/(stop|open)", NotebookRunHandler),
        (rf"{BASE}/experiments/({NUMBER})/notebook/open", ExperimentNotebookHandler),
        (rf"{BASE}/saved/(experiments|trials)/([0-9]{{1,18}})", SavedHandler),
    ]

    master = Unicode(
        "",
        help="The master of this server and its kernels, as DET_MASTER names it: https://host:port or "
        "ssh://user@host:port. Empty: what DET_MASTER says, else the one of this machine.",
    ).tag(config=True)
    status_seconds = Float(5.0, help="Seconds after which a master that does not answer counts as unreachable.").tag(
        config=True
    )
    answer_seconds = Float(60.0, help="Seconds of silence after which a forwarded request is given up.").tag(
        config=True
    )

    @validate("master")
    def _address(self, proposal: dict[str, Any]) -> str:
        address = str(proposal["value"]).strip()
        try:
            if address:
                parse_target(address) if is_ssh(address) else normal_url(address)
        except ArgumentError as error:
            raise TraitError(f"DetJupyter.master: {error}") from error
        return address

    @validate("status_seconds", "answer_seconds")
    def _positive(self, proposal: dict[str, Any]) -> float:
        seconds = float(proposal["value"])
        if not seconds > 0:
            raise TraitError(f"DetJupyter.{proposal['trait'].name} is a number of seconds above 0, not {seconds}.")
        return seconds

    def initialize_settings(self) -> None:
        """Make what the handlers share."""
        self._before = os.environ.get(_VARIABLE)
        if self.master:
            os.environ[_VARIABLE] = self.master  # kernels have the environment of this server
        self._master = Master(status_seconds=self.status_seconds, answer_seconds=self.answer_seconds)
        self.settings[MASTER_SETTING] = self._master
        self.settings[OPTIONS_SETTING] = Options(answer_seconds=self.answer_seconds)

    def initialize_handlers(self) -> None:
        """Add the routes."""
        self.handlers.extend(self.handler_classes)

    async def stop_extension(self) -> None:
        """Close the connections to the master; it runs on."""
        if self.master and self._before is None:
            os.environ.pop(_VARIABLE, None)
        elif self.master and self._before is not None:
            os.environ[_VARIABLE] = self._before
        await self._master.close()
