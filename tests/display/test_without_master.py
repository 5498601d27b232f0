"""What a cell shows of a handle while no master answers."""

from __future__ import annotations

from pathlib import Path

from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.display.renderer import DisplayRenderer
from det_native.schema.sockets import url_of


def test_a_handle_is_a_sentence_and_no_error_of_the_cell(tmp_path: Path) -> None:
    session = Session(url_of(tmp_path / "master.sock"), "token")
    shown = DisplayRenderer().mimebundle(Experiment(HttpSource(session), 7))
    session.close()
    assert set(shown) == {"text/plain"}
    assert shown["text/plain"].startswith("Experiment(7): No master answers at unix:")
