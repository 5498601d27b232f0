"""The button "Leave it running" of a live view, while a cell waits for a training.

The kernel is busy then, and reads the messages of widgets only once the cell has ended; those of live views are read
here. JupyterLab sends them by a subshell where the kernel has these, which needs no help.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from det_native.display.environment import running_shell
from det_native.display.live import views_of

if TYPE_CHECKING:
    from det_native.client.handles import Experiment, Trial
    from det_native.client.rendering import IsLeft
    from det_native.display.live import LiveView


@contextmanager
def waiting(handle: Experiment | Trial) -> Iterator[IsLeft]:
    """Have the live views of a handle show the button; gives what asks whether it was pressed."""
    views = views_of(handle)
    for view in views:
        view.offer_leaving(True)

    def is_left() -> bool:
        _handle_messages(views)
        return any(view.left.is_set() for view in views)

    try:
        yield is_left
    finally:
        for view in views:
            view.offer_leaving(False)


def _handle_messages(views: list[LiveView]) -> None:
    """Handle the messages of live views that wait for the kernel; all others wait on, in their order."""
    kernel = getattr(running_shell(), "kernel", None)
    ids = {view.comm_id for view in views} - {""}
    if kernel is None or not ids or threading.current_thread() is not threading.main_thread():
        return
    stream = _stream_of(kernel)
    if stream is None:
        return
    while stream.socket.poll(0):
        frames = stream.socket.recv_multipart(copy=False)
        if _comm_of(kernel, frames) in ids:
            idents, parts = kernel.session.feed_identities(frames, copy=False)
            message = kernel.session.deserialize(parts, content=True, copy=False)
            kernel.shell_handlers["comm_msg"](stream, idents, message)
        else:  # as the stream itself would give it to the kernel, before all that comes later
            stream.io_loop.add_callback(stream._recv_callback, frames)


def _stream_of(kernel: Any) -> Any:
    """Return by what the main thread of a kernel gets its messages; None of a kernel that is built otherwise."""
    thread = getattr(kernel, "shell_channel_thread", None)
    if thread is None:
        stream = getattr(kernel, "shell_stream", None)
    else:
        pair = getattr(thread.manager, "get_shell_channel_to_subshell_pair", lambda _: None)(None)
        stream = getattr(pair, "to_stream", None)
    return stream if getattr(stream, "_recv_callback", None) is not None else None


def _comm_of(kernel: Any, frames: list[Any]) -> str:
    """Return which comm a message is of; empty where it is none of a comm."""
    try:
        _, parts = kernel.session.feed_identities(frames, copy=False)
        if json.loads(parts[1].bytes)["msg_type"] != "comm_msg":
            return ""
        return str(json.loads(parts[4].bytes)["comm_id"])
    except (ValueError, LookupError, TypeError):
        return ""
