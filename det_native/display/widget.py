"""The widget of a live view, where the notebook can show one."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from det_native.display.environment import in_notebook, running_shell

STATIC = Path(__file__).parent / "static"
# What changes while it trains. It is in the widget's state, so that a front end that comes late has it all.
PARTS = ("experiment", "trials", "checkpoints", "curves", "logs", "system", "outputs")
WIDGET_TYPE = "application/vnd.jupyter.widget-view+json"
# What JupyterLab's extension of ours takes before the widget: where that lives no more, it shows what was saved, which
# JupyterLab's widget manager never does. Elsewhere nobody looks at it.
VIEW_TYPE = "application/vnd.det-native.view+json"


def can_show_widgets() -> bool:
    """Return whether somebody looks at this kernel's notebook who can show widgets.

    A notebook that is only executed (nbclient, nbconvert, papermill) is told apart: a widget in it would be saved with
    its state, and readers of the result would see nothing but the attempt to load it.
    """
    if not in_notebook():
        return False
    in_editor = "__vsc_ipynb_file__" in running_shell().user_ns or "google.colab" in sys.modules
    watched = in_editor or "JPY_SESSION_NAME" in os.environ
    return watched and find_spec("anywidget") is not None and (STATIC / "live.js").is_file()


def make_widget(
    experiment_id: int, trial_id: int, master_url: str, on_message: Callable[[dict[str, Any]], None]
) -> Any:
    """Make the widget of one display.

    Parameters
    ----------
    trial_id : int
        0 for the whole experiment.
    master_url : str
        The token is not among what is sent.
    on_message : callable
        Takes what the front end says.
    """
    widget = _widget_class()(
        view_id=uuid.uuid4().hex,
        experiment_id=experiment_id,
        trial_id=trial_id,
        master_url=master_url,
    )
    widget.on_msg(lambda _, content, buffers: on_message(content))
    return widget


def tell(widget: Any, parts: dict[str, Any], lost: str = "") -> None:
    """Tell the front end what has changed, in one message; any thread may, and while a cell runs.

    Parameters
    ----------
    widget
        From :func:`make_widget`.
    parts : dict
        Values of some of `PARTS`.
    lost : str
        Why nothing can be read; empty where it can.
    """
    with widget.hold_sync():
        for name, part in parts.items():
            setattr(widget, name, part)
        widget.lost = lost


def view_of(widget: Any, created: str, state: str) -> dict[str, Any]:
    """Return the display data of a widget, without any text.

    Parameters
    ----------
    widget
        From :func:`make_widget`.
    created : str
        When what it shows was made, as the master has it: JupyterLab shows it without the widget too, where the kernel
        is busy or gone, and has to know that it is the same.
    state : str
        The state that is saved with it, for the same reason: what has ended needs no other view.
    """
    named: dict[str, Any] = {"view_id": widget.view_id}
    named |= {"experiment_id": widget.experiment_id, "trial_id": widget.trial_id}
    named |= {"created": created, "state": state}
    return {
        VIEW_TYPE: named,
        WIDGET_TYPE: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id},
    }


@cache
def _widget_class() -> Any:
    anywidget, traitlets = import_module("anywidget"), import_module("traitlets")

    class LiveWidget(anywidget.AnyWidget):  # type: ignore[name-defined, misc]
        """What the front end is told of a display; everything else it reads for itself."""

        _esm = STATIC / "live.js"
        _css = STATIC / "live.css"
        view_id = traitlets.Unicode().tag(sync=True)
        experiment_id = traitlets.Int().tag(sync=True)
        trial_id = traitlets.Int().tag(sync=True)
        master_url = traitlets.Unicode().tag(sync=True)
        lost = traitlets.Unicode().tag(sync=True)
        waiting = traitlets.Bool(False).tag(sync=True)
        experiment, trials, checkpoints, curves, logs, system, outputs = (
            traitlets.Any(None).tag(sync=True) for _ in PARTS
        )

    return LiveWidget
