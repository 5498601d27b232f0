"""A real TensorBoard over an experiment's event files: by its secret address, and through Jupyter's server."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_parts import Jupyter
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from det_native.client.tensorboard import TensorBoard, open_tensorboard
from det_native.errors import NotFoundError, UnsupportedFeatureError
from det_native.schema.home import Home

pytestmark = pytest.mark.slow


class Source:
    """A master's, as far as TensorBoard asks it."""

    url = "http://127.0.0.1:1"

    def trials(self, experiment_id: int) -> list[Any]:
        return [type("Trial", (), {"id": 4}), type("Trial", (), {"id": 5})]


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    runtime = type("Runtime", (), {"is_at": lambda _, url: url == Source.url})()
    monkeypatch.setattr("det_native.client.tensorboard.read_runtime", lambda home: runtime)
    return Source()


@pytest.fixture
def opened(source: Source) -> Iterator[TensorBoard]:
    folder = Home.default().path / "tensorboard" / "3" / "4"
    folder.mkdir(parents=True)
    event = Event(wall_time=1.0, step=7, summary=Summary(value=[Summary.Value(tag="loss", simple_value=0.5)]))
    with (folder / "events.out.tfevents.1.here").open("wb") as file:
        RecordWriter(file).write(event.SerializeToString())
    board = open_tensorboard(source, 3)  # type: ignore[arg-type]
    yield board
    board.close()


def read(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.loads(answer.read())


async def test_it_shows_the_trials_to_whoever_has_its_address_and_jupyters_server_forwards_to_it_behind_its_login(
    opened: TensorBoard, jupyter: Jupyter
) -> None:
    assert read(f"{opened.url}data/runs") == ["trial-4"]
    assert [row[1:] for row in read(f"{opened.url}data/plugin/scalars/scalars?run=trial-4&tag=loss")] == [[7, 0.5]]
    root = opened.url.split("/", 3)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        read("/".join([*root[:3], "data/runs"]))

    answer = await jupyter.get(f"tensorboard/{opened.key}/data/runs")
    assert answer.json() == ["trial-4"]
    page = await jupyter.get(f"tensorboard/{opened.key}/")
    assert page.headers["Content-Type"].startswith("text/html")
    assert f"tensorboard/{opened.key}/" in opened._repr_html_()
    async with httpx.AsyncClient() as stranger:
        denied = await stranger.get(f"{jupyter.base}det-native/api/tensorboard/{opened.key}/data/runs")
    assert denied.status_code == 403
    assert (await jupyter.get(f"tensorboard/{'0' * 16}/")).status_code == 404
    opened.close()
    assert (await jupyter.get(f"tensorboard/{opened.key}/data/runs")).status_code == 404


def test_without_event_files_and_far_from_them_it_is_refused(source: Source, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="have written no event files"):
        open_tensorboard(source, 8)  # type: ignore[arg-type]
    source.url = "https://elsewhere:8443"
    with pytest.raises(UnsupportedFeatureError, match="on another machine"):
        open_tensorboard(source, 3)  # type: ignore[arg-type]
