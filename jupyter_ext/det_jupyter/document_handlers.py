"""``document/inspect`` and ``document/submit``: the notebook as the front end has it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

from jupyter_server.auth.decorator import authorized
from jupyter_server.utils import ApiPath, to_os_path
from pydantic import ValidationError
from tornado import web

from det_jupyter.documents import Command, DocumentRequest, DocumentTimeoutError, run_document
from det_jupyter.handlers import OPTIONS_SETTING, DetHandler, Options
from det_jupyter.kernels import HEADLINE, find_interpreter
from det_native.errors import Problem, ProblemsError


class DocumentHandler(DetHandler):
    """Runs the notebook's own interpreter over the notebook."""

    @web.authenticated
    @authorized
    async def post(self, command: Command) -> None:
        """Answer with what the program says: 200, or 400 with all that is wrong; 504 if it takes too long."""
        await self.while_connected(lambda: self._run(command))

    async def _run(self, command: Command) -> None:
        options: Options = self.settings[OPTIONS_SETTING]
        try:
            request = _read(self.request.body)
            notebook = self._notebook(request.path)
            interpreter = await find_interpreter(self.kernel_spec_manager, request.kernelspec)
            answer = await run_document(command, request, interpreter, notebook, seconds=options.document_seconds)
        except ProblemsError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, error.headline, error.problems)
        except DocumentTimeoutError as error:
            self._refuse(HTTPStatus.GATEWAY_TIMEOUT, str(error))
        else:
            self.answer(answer)

    def _refuse(self, status: HTTPStatus, error: str, problems: Sequence[Problem] = ()) -> None:
        listed = [{"where": found.where, "what": found.what, "remedy": found.remedy} for found in problems]
        self.answer({"error": error, "problems": listed}, status)

    def _notebook(self, path: str) -> Path:
        """Return where a notebook of this server lies; the front end's name of a drive is left out.

        Names of folders and files may have a colon too.
        """
        server = self.serverapp
        assert server is not None, "a handler has a server"
        root = os.path.abspath(getattr(self.contents_manager, "root_dir", None) or server.root_dir)
        found = Path(os.path.abspath(to_os_path(ApiPath(path), root)))
        if ":" in path.split("/")[0] and not found.exists():
            found = Path(os.path.abspath(to_os_path(ApiPath(path.partition(":")[2]), root)))
        if not found.is_relative_to(root) or not found.parent.is_dir():
            raise ProblemsError(
                HEADLINE,
                [Problem(path, "lies in no folder of this Jupyter server.", "Save the notebook there first.")],
            )
        return found


def _read(body: bytes) -> DocumentRequest:
    try:
        return DocumentRequest.model_validate_json(body)
    except ValidationError as error:
        problems = [Problem(".".join(map(str, found["loc"])), found["msg"]) for found in error.errors()]
        raise ProblemsError("The request is not of the form that this version understands.", problems) from error
