"""A real Jupyter server with the extension, and a real master process."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_parts import PATIENCE, Jupyter, MasterProcess
from jupyter_server.serverapp import ServerApp
from pytest_jupyter.jupyter_core import (  # noqa: F401 (fixtures and hooks that pytest finds here)
    echo_kernel_spec,
    jp_asyncio_loop,
    jp_config_dir,
    jp_data_dir,
    jp_env_config_path,
    jp_env_jupyter_path,
    jp_environ,
    jp_home_dir,
    jp_kernel_dir,
    jp_runtime_dir,
    jp_system_config_path,
    jp_system_jupyter_path,
    pytest_pycollect_makeitem,
    pytest_pyfunc_call,
)
from pytest_jupyter.jupyter_server import (  # noqa: F401
    jp_argv,
    jp_base_url,
    jp_configurable_serverapp,
    jp_http_port,
    jp_logging_stream,
    jp_nbconvert_templates,
    jp_root_dir,
    jp_serverapp,
    jp_web_app,
)
from pytest_jupyter.pytest_tornasync import http_server, http_server_port  # noqa: F401
from traitlets.config import Config

from det_native.schema.home import Home, read_runtime
from det_native.schema.processes import wait_until_gone


@pytest.fixture
def jp_server_config(extension_settings: dict[str, Any]) -> Config:
    """Load the extension, and nothing that takes time."""
    return Config(
        {
            "ServerApp": {"jpserver_extensions": {"det_jupyter": True, "jupyter_server_terminals": False}},
            "DetJupyter": extension_settings,
        }
    )


@pytest.fixture
def extension_settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of the extension; a test gives its own by ``@pytest.mark.parametrize(..., indirect=True)``."""
    given: dict[str, Any] = getattr(request, "param", {})
    return given


@pytest.fixture
def jupyter(
    http_server: Any,  # noqa: F811
    jp_serverapp: ServerApp,  # noqa: F811
    jp_root_dir: Path,  # noqa: F811
    jp_asyncio_loop: Any,  # noqa: F811
) -> Iterator[Jupyter]:
    """A running Jupyter server, spoken to as its user."""
    (socket,) = http_server._sockets.values()
    base = f"http://127.0.0.1:{socket.getsockname()[1]}{jp_serverapp.base_url}"
    token = jp_serverapp.identity_provider.token

    async def client() -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=f"{base}det-native/api/", headers={"Authorization": f"token {token}"}, timeout=PATIENCE
        )

    made = jp_asyncio_loop.run_until_complete(client())
    yield Jupyter(made, base, token, jp_root_dir)
    jp_asyncio_loop.run_until_complete(made.aclose())
    jp_asyncio_loop.run_until_complete(http_server.close_all_connections())
    with contextlib.suppress(SystemExit):
        jp_asyncio_loop.run_until_complete(jp_serverapp._cleanup())
    jp_serverapp.kernel_manager.context.destroy()
    ServerApp.clear_instance()


@pytest.fixture(scope="session")
def shared_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MasterProcess]:
    """A master for all modules."""
    running = MasterProcess.start(Home(tmp_path_factory.mktemp("jupyter-master")))
    yield running
    running.stop()


@pytest.fixture
def master(shared_master: MasterProcess, monkeypatch: pytest.MonkeyPatch) -> MasterProcess:
    """The shared master, which is the one that Jupyter finds; where a test has ended it, it is started again."""
    if read_runtime(shared_master.home) is None:
        shared_master.restart()
    monkeypatch.setenv("DET_HOME", str(shared_master.home.path))
    return shared_master


@pytest.fixture
def empty_home() -> Iterator[Home]:
    """The test's home, in which no master runs; one that the test has had started is stopped."""
    home = Home.default()
    yield home
    runtime = read_runtime(home)
    if runtime is not None:
        os.kill(runtime.pid, signal.SIGTERM)
        assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)
