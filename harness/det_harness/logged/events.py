"""What is logged as TensorBoard's event files, where TensorBoard is installed."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from det_native.schema.outputs import LoggedMedium, MediaKind

logger = logging.getLogger("det_harness")

# In the folder of a trial: those of the framework and of the user lie beside it.
FOLDER = "logged"
# Events that wait to be written, while the training goes on.
_QUEUE = 1_000
_STUB = "tensorboard.compat.notf"


class EventFiles:
    """One event file of a trial, opened when there is something for it.

    Parameters
    ----------
    folder : Path or None
        Where the event files of the trial go; None to write none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._writer: Any = None
        self._path = Path()

    def scalars(self, batch: int, metrics: Mapping[str, float]) -> None:
        """Write numbers."""
        if self._ready():
            from tensorboard.compat.proto.summary_pb2 import Summary

            self._add(batch, Summary(value=[Summary.Value(tag=tag, simple_value=one) for tag, one in metrics.items()]))

    def medium(self, item: LoggedMedium, content: bytes) -> None:
        """Write a picture, text, table or histogram."""
        if self._ready():
            summary = _summary(item, content)
            if summary is not None:
                self._add(item.batch, summary)

    def flush(self) -> None:
        """Write out what is buffered."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Write out what is buffered, and write no more."""
        if self._writer is not None:
            self._writer.close()
        self._folder = self._writer = None

    def _ready(self) -> bool:
        if self._folder is None:
            return False
        if self._writer is not None and not self._path.exists():
            # A checkpoint was restored since, and with it what the folder had then.
            self._writer.close()
            self._writer = None
        if self._writer is None:
            folder = self._folder / FOLDER
            try:
                before = set(folder.iterdir()) if folder.is_dir() else set()
                self._writer = _event_file_writer()(str(folder), max_queue_size=_QUEUE)
                self._path = next(path for path in folder.iterdir() if path not in before)
            except Exception as error:  # noqa: BLE001 (not installed, of another version, no room)
                logger.info("What is logged is not written as TensorBoard's event files: %s", error)
                self._folder = self._writer = None
        return self._writer is not None

    def _add(self, batch: int, summary: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        try:
            self._writer.add_event(Event(wall_time=time.time(), step=batch, summary=summary))
        except Exception as error:  # noqa: BLE001 (no room, say: the training goes on)
            logger.warning("No more is written as TensorBoard's event files: %s", error)
            self._folder = self._writer = None


def _event_file_writer() -> Any:
    if "tensorflow" not in sys.modules and _STUB not in sys.modules:
        # With this module there, tensorboard writes files by itself, and does not import TensorFlow for it (seconds).
        sys.modules[_STUB] = ModuleType(_STUB)
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    return EventFileWriter


def _summary(item: LoggedMedium, content: bytes) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary

    tag = item.name if not item.number else f"{item.name}/{item.number}"
    if item.kind is MediaKind.IMAGE:
        if item.format not in ("png", "jpeg", "gif"):
            return None
        size = {"width": item.width or 0, "height": item.height or 0}
        image = Summary.Image(encoded_image_string=content, colorspace=3, **size)
        return Summary(value=[Summary.Value(tag=tag, image=image)])
    if item.kind is MediaKind.HISTOGRAM:
        return Summary(value=[Summary.Value(tag=tag, histo=_histogram(json.loads(content)))])
    text = content.decode() if item.kind is MediaKind.TEXT else _markdown(json.loads(content))
    return Summary(value=[_text(tag, text)])


def _histogram(found: Mapping[str, Any]) -> Any:
    from tensorboard.compat.proto.summary_pb2 import HistogramProto

    counts, edges = found["counts"], found["edges"]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    weighed = [count * middle for count, middle in zip(counts, middles, strict=True)]
    return HistogramProto(
        min=edges[0],
        max=edges[-1],
        num=sum(counts),
        sum=sum(weighed),
        sum_squares=sum(one * middle for one, middle in zip(weighed, middles, strict=True)),
        bucket_limit=edges[1:],
        bucket=counts,
    )


def _text(tag: str, text: str) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=shape)
    return Summary.Value(tag=tag, metadata=metadata, tensor=tensor)


def _markdown(table: Mapping[str, Any], most: int = 100) -> str:
    """Return a table as TensorBoard's texts have them."""

    def line(cells: Any) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    columns = table["columns"]
    lines = [line(columns), line(["---"] * len(columns)), *(line(row) for row in table["rows"][:most])]
    return "\n".join(lines)
