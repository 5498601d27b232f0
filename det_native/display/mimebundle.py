"""What a notebook gets to show and to save: text, HTML and the curves as PNG."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from det_native.client.handles import Experiment, Trial
from det_native.display.curves import curves_of
from det_native.display.figure import draw
from det_native.display.html import experiment_html, trial_html
from det_native.display.text import experiment_text, trial_text


def make_mimebundle(handle: Experiment | Trial) -> dict[str, Any]:
    """Return the display data of an experiment or a trial by MIME type.

    Front ends prefer the HTML, which holds the picture too; the PNG of its own is for those that show no HTML, and for
    a saved notebook that is not trusted.
    """
    curves = curves_of(handle)
    picture = draw(curves).png() if curves.lines else None
    if isinstance(handle, Experiment):
        text, html = experiment_text(handle), experiment_html(handle, picture)
    else:
        text, html = trial_text(handle), trial_html(handle, picture)
    bundle = {"text/plain": text, "text/html": html}
    if picture is not None:
        bundle["image/png"] = b64encode(picture).decode("ascii")
    return bundle
