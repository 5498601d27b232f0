"""TensorBoard over the event files of an experiment's trials: started here, on loopback, behind a secret path."""

from __future__ import annotations

import atexit
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from pathlib import Path

from det_native.client.source import Source
from det_native.errors import DetError, MissingDependencyError, NotFoundError, UnsupportedFeatureError
from det_native.schema.home import Home, read_runtime

#: In a home: for each TensorBoard that runs where it listens, for Jupyter's server to forward to.
PLACES = "tensorboards"
_START_SECONDS = 120.0
_ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+:(\d+)/\S*)")
_HEIGHT = 720
_LOGS = "logs"
# On loopback, at whatever port is free; its faster reader of files needs more that setuptools has dropped.
_OPTIONS = ("--host", "127.0.0.1", "--port", "0", "--reload_interval", "5", "--load_fast", "false")


@dataclass
class TensorBoard:
    """A TensorBoard that runs; in a notebook, the last line of a cell shows it.

    Attributes
    ----------
    url : str
        Its address on this machine, with a secret path: whoever has it sees the event files.
    key : str
        What Jupyter's server knows it by.
    """

    url: str
    key: str
    _process: subprocess.Popen[bytes] = field(repr=False)
    _folder: Path = field(repr=False)
    _place: Path = field(repr=False)

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        self._place.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def wait(self) -> None:
        """Block until it ends."""
        self._process.wait()

    def _repr_html_(self) -> str:
        # Jupyter's server forwards to it: a browser on another machine has no way to its port.
        name = f"det-tensorboard-{escape(self.key)}"
        return (
            f'<iframe id="{name}" style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
            f"<script>(() => {{ const config = document.getElementById('jupyter-config-data');"
            "const base = config ? JSON.parse(config.textContent).baseUrl : '/';"
            f"document.getElementById('{name}').src = base + 'det-native/api/tensorboard/{escape(self.key)}/'; "
            "})()</script>"
        )


def open_tensorboard(source: Source, experiment_id: int) -> TensorBoard:
    """Start TensorBoard over the event files of an experiment; those that come later are shown too.

    Raises
    ------
    MissingDependencyError
        If TensorBoard is not installed.
    UnsupportedFeatureError
        If the event files lie on another machine.
    NotFoundError
        If no trial has written any.
    """
    if find_spec("tensorboard") is None:
        raise MissingDependencyError(
            "TensorBoard is not installed in this Python: run  pip install tensorboard  (TensorFlow brings it)."
        )
    folders = event_folders(source, experiment_id)
    if not any(True for folder in folders.values() for _ in _event_files(folder)):
        raise NotFoundError(
            f"The trials of experiment {experiment_id} have written no event files: det.keras.callbacks.TensorBoard, "
            "det.tensorboard's TorchWriter and every estimator write some."
        )
    linked = Path(tempfile.mkdtemp(prefix="det-tensorboard-"))
    (linked / _LOGS).mkdir()
    for name, folder in folders.items():
        (linked / _LOGS / name).symlink_to(folder, target_is_directory=True)
    try:
        return _started(linked)
    except BaseException:
        shutil.rmtree(linked, ignore_errors=True)
        raise


def event_folders(source: Source, experiment_id: int) -> dict[str, Path]:
    """Return the folder of each trial's event files, by ``trial-<number>``, whether there are any yet or not.

    Raises
    ------
    UnsupportedFeatureError
        If they lie on another machine.
    """
    trials = [trial.id for trial in source.trials(experiment_id)]
    home = Home.default()
    runtime = read_runtime(home)
    if runtime is None or not runtime.is_at(source.url):
        raise UnsupportedFeatureError(
            f"The event files of experiment {experiment_id} lie with its master, {source.url}, on another machine or "
            "in another DET_HOME: run  det tensorboard  there."
        )
    return {f"trial-{trial}": home.path / "tensorboard" / str(experiment_id) / str(trial) for trial in trials}


def _event_files(folder: Path) -> list[Path]:
    # Not by rglob(), which does not follow links.
    return [
        Path(where, name)
        for where, _, names in os.walk(folder, followlinks=True)
        for name in names
        if "tfevents" in name
    ]


def _started(folder: Path) -> TensorBoard:
    key, prefix = secrets.token_hex(8), secrets.token_urlsafe(24)
    command = [sys.executable, "-m", "det_native.client.tensorboard_process", "--logdir", str(folder / _LOGS)]
    process = subprocess.Popen(
        [*command, *_OPTIONS, "--path_prefix", f"/{prefix}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder), "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
        start_new_session=True,  # Ctrl-C in a notebook is for its cell
    )
    try:
        port = _port_of(process)
    except BaseException:
        process.kill()
        process.wait()
        raise
    place = Home.default().path / PLACES / f"{key}.json"
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump({"port": port, "prefix": prefix, "pid": process.pid}, stream)
    started = TensorBoard(f"http://127.0.0.1:{port}/{prefix}/", key, process, folder, place)
    atexit.register(started.close)
    return started


def _port_of(process: subprocess.Popen[bytes]) -> int:
    """Wait until it says where it listens; what it says later is thrown away."""
    assert process.stderr is not None
    said: list[str] = []
    timer = threading.Timer(_START_SECONDS, process.kill)
    timer.start()
    try:
        for line in process.stderr:
            said.append(line.decode(errors="replace"))
            found = _ADDRESS.search(said[-1])
            if found:
                threading.Thread(target=_drain, args=(process,), name="det-tensorboard", daemon=True).start()
                return int(found[2])
    finally:
        timer.cancel()
    raise DetError(f"TensorBoard did not start: {''.join(said[-5:]).strip() or 'it said nothing'}")


def _drain(process: subprocess.Popen[bytes]) -> None:
    assert process.stderr is not None
    with process.stderr:
        for _ in process.stderr:
            pass
