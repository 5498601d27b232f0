"""The Jupyter server extension: forwards to the master and adds the token on the server side."""

from __future__ import annotations

from typing import Any

from det_native._version import __version__

LABEXTENSION = "@det-native/labext"

__all__ = ["LABEXTENSION", "__version__"]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Tell Jupyter which application to load."""
    from det_jupyter.extension import DetJupyter

    return [{"module": "det_jupyter", "app": DetJupyter}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Tell JupyterLab's developer commands where the built front end of a checkout lies."""
    return [{"src": "../labextension", "dest": LABEXTENSION}]
