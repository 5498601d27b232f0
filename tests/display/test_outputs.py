"""What trials log and write, in texts, HTML, and what a saved notebook keeps of it."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from made_experiments import MadeSource, make_experiment, source_of

from det_native.client.handles import Experiment
from det_native.display import outputs
from det_native.display.fallback import last_state
from det_native.display.feed import ViewReader
from det_native.display.mimebundle import make_mimebundle
from det_native.schema import rest
from det_native.schema.outputs import MediaKind

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100
ODD = "<script>alert(1)</script>"


def medium(store: MadeSource, number: int, batch: int, name: str, content: bytes, **more: object) -> rest.Medium:
    sha256 = hashlib.sha256(content).hexdigest()
    store.content[sha256] = content
    facts = {"kind": MediaKind.IMAGE, "format": "png", "created": "", "trial_id": 1, **more}
    return rest.Medium(id=number, batch=batch, name=name, sha256=sha256, size=len(content), **facts)


@pytest.fixture
def experiment() -> Experiment:
    made = make_experiment(name="digits")
    store = source_of(made)
    text = {"kind": MediaKind.TEXT, "format": "txt"}
    store.write_media(
        1,
        [
            medium(store, 1, 1, "samples", PNG + b"1"),
            medium(store, 2, 4, "samples", PNG + b"4", caption=ODD),
            medium(store, 3, 4, ODD, b"<b>", **text),
        ],
    )
    store.written = [
        rest.Artifact(trial_id=1, path="out/best.keras", size=1_250_000, batch=4, created="", sha256="0" * 64),
        rest.Artifact(trial_id=1, path=f"{ODD}.csv", size=310, batch=4, created="", note="too large"),
    ]
    return made


def test_text_and_html_have_a_line_for_each(experiment: Experiment) -> None:
    bundle = make_mimebundle(experiment)
    assert "  logged: samples (2 images), <script>alert(1)</script> (text)" in bundle["text/plain"]
    assert "  files: out/best.keras (1.25 MB), <script>alert(1)</script>.csv (310 B)" in bundle["text/plain"]
    assert "out/best.keras (1.25 MB)" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]
    trial = make_mimebundle(experiment.trials[0])
    assert "logged: samples (2 images)" in trial["text/plain"]
    assert "samples (2 images)" in trial["text/html"]


def test_nothing_is_said_where_there_is_nothing() -> None:
    bundle = make_mimebundle(make_experiment())
    assert not re.search("logged|files", bundle["text/plain"])


def test_a_saved_notebook_has_the_last_pictures_of_each_name(experiment: Experiment) -> None:
    html = last_state(experiment)["text/html"]
    last, first = (base64.b64encode(PNG + end).decode() for end in (b"4", b"1"))
    assert f"data:image/png;base64,{last}" in html
    assert first not in html
    assert "samples, batch 4 &lt;script&gt;" in html
    assert "<script" not in html
    assert last not in last_state(experiment, picture=False)["text/html"]
    assert last in last_state(experiment.trials[0])["text/html"]


def test_what_would_make_the_notebook_large_is_named(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "PICTURE_BYTES", 50)
    html = last_state(experiment)["text/html"]
    assert base64.b64encode(PNG + b"4").decode() not in html
    assert "109 B, too large to be saved in the notebook" in html


def test_a_front_end_that_the_kernel_feeds_is_told_of_media_and_files(experiment: Experiment) -> None:
    reader = ViewReader(experiment.source, 1)
    told = reader.changes()["outputs"]
    assert (told["trialId"], told["chosen"]) == (1, False)
    assert [(each["id"], each["kind"]) for each in told["media"]] == [(1, "image"), (2, "image"), (3, "text")]
    assert [each["path"] for each in told["files"]] == ["out/best.keras", f"{ODD}.csv"]
    assert "outputs" not in reader.changes()
    reader.outputs_of = 1
    assert reader.changes()["outputs"]["chosen"]
