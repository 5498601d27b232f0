"""The extension as Jupyter Server loads it."""

from __future__ import annotations

import json
from pathlib import Path

import det_jupyter
import pytest
from det_jupyter.extension import DetJupyter
from det_jupyter.handlers import DetHandler
from jupyter_parts import Jupyter, MasterProcess
from jupyter_server.auth.authorizer import Authorizer
from traitlets import TraitError
from traitlets.config import Config

ROOT = Path(__file__).parents[2]


class Reader(Authorizer):
    """Lets everybody read, and nobody change anything of ours."""

    def is_authorized(self, handler: object, user: object, action: str, resource: str) -> bool:
        """Decide."""
        return resource != "det_native" or action == "read"


class TestUnderAnAuthorizer:
    """A server whose administrator has limited what its users may do."""

    pytestmark = pytest.mark.slow

    @pytest.fixture
    def jp_server_config(self) -> Config:
        """Load the extension with the authorizer."""
        extensions = {"det_jupyter": True, "jupyter_server_terminals": False}
        return Config({"ServerApp": {"jpserver_extensions": extensions, "authorizer_class": Reader}})

    async def test_it_is_asked(self, jupyter: Jupyter, master: MasterProcess) -> None:
        assert (await jupyter.get("status")).status_code == 200
        assert (await jupyter.get("master/experiments")).status_code == 200
        for path in ("start", "master/experiments/1/kill", "notebook-runs/1/stop"):
            assert (await jupyter.post(path, json={})).status_code == 403


@pytest.mark.parametrize("name", ["status_seconds", "answer_seconds"])
def test_a_time_limit_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(TraitError, match=f"DetJupyter.{name}"):
        DetJupyter(**{name: 0})


@pytest.mark.parametrize("address", ["ssh://-oProxyCommand=x", "ssh://me:secret@host", "http://elsewhere", "ftp://x"])
def test_an_address_of_a_master_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(TraitError, match=r"DetJupyter\.master: ") as caught:
        DetJupyter(master=address)
    assert "secret" not in str(caught.value).partition("DetJupyter.master: ")[2]


def test_jupyter_is_told_what_to_load_and_where_the_front_end_is() -> None:
    (point,) = det_jupyter._jupyter_server_extension_points()
    assert point == {"module": "det_jupyter", "app": DetJupyter}
    (paths,) = det_jupyter._jupyter_labextension_paths()
    assert (ROOT / "jupyter_ext" / "det_jupyter" / paths["src"]).resolve() == ROOT / "jupyter_ext" / "labextension"
    package = json.loads((ROOT / "jupyter_ext" / "package.json").read_text())
    assert paths["dest"] == package["name"]
    assert package["jupyterlab"]["outputDir"] == "labextension"


def test_every_route_belongs_to_the_guarded_kind() -> None:
    for _, handler in DetJupyter.handler_classes:
        assert issubclass(handler, DetHandler)
