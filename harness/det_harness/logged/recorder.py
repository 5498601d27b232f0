"""Takes what a training logs, and reports it: numbers at once, the contents of media from a thread of their own.

Nothing here raises, and nothing waits for a master: a training ends by its own errors only.
"""

from __future__ import annotations

import hashlib
import logging
import os
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from det_harness.logged.cell_output import SEND_SECONDS, CellOutput, mime_data
from det_harness.logged.events import EventFiles
from det_harness.logged.limits import (
    MEDIA,
    MEDIA_BYTES,
    NAMES,
    TEXT_CHARACTERS,
    WAITING,
    WAITING_SECONDS,
    NotKeptError,
    checked_name,
    megabytes,
    series_name,
)
from det_harness.logged.numbers import number_of
from det_native.errors import StorageError
from det_native.logged.place import only_logged
from det_native.schema.outputs import CellItem, CellPart, LoggedMedium, MediaKind

if TYPE_CHECKING:
    from det_native.storage.blobs import BlobStore

logger = logging.getLogger("det_harness")

_CAPTION = 2_000
# So many characters of NAMES names fit into one report.
_METRIC_NAME = 250
_NAMES_TOLD = 20


class LogReporter(Protocol):
    """Where it goes."""

    def logged(self, batch: int, metrics: Mapping[str, float]) -> None:
        """Report numbers that were logged after so many batches; several times after the same ones is one row."""

    def media(self, items: list[LoggedMedium]) -> None:
        """Report media, whose contents are stored."""

    def warning(self, text: str) -> None:
        """Report what has happened in the training and is no failure."""


@dataclass(frozen=True)
class _Waiting:
    """A medium whose content is to be stored."""

    item: LoggedMedium
    content: bytes


class Recorder:
    """Takes what one trial logs in this process; implements ``det_native.logged.place.Taker``.

    Parameters
    ----------
    contents : callable
        Returns where contents are stored; called when there is the first.
    tensorboard : Path, optional
        Where event files of the trial go.
    output : CellOutput, optional
        Takes what the training prints and shows, for the cell that waits for it.
    """

    def __init__(
        self,
        reporter: LogReporter,
        contents: Callable[[], BlobStore],
        batch: Callable[[], int],
        tensorboard: Path | None = None,
        output: CellOutput | None = None,
    ) -> None:
        self._reporter = reporter
        self._contents = contents
        self._batch = batch
        self._events = EventFiles(tensorboard)
        self._output = output
        self._sending = threading.Lock()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._left_out: dict[str, set[str]] = {}
        self._said: set[object] = set()
        self._names: dict[Any, str] = {}
        self._metrics: set[str] = set()
        self._numbers: dict[tuple[str, str], tuple[int, int]] = {}
        self._shown: tuple[int, dict[str, int]] = (-1, {})
        self._count = self._bytes = 0
        self._queue: queue.Queue[_Waiting | None] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._opened: BlobStore | None = None

    # -- what the user's code calls

    def log(self, metrics: Mapping[Any, Any]) -> None:
        """Take scalars by name."""
        if os.getpid() != self._process:
            self._tell_foreign()
            return
        found: dict[str, float] = {}
        for name, value in metrics.items():
            number = value if type(value) is float else number_of(value)
            kept = self._names.get(name) if type(name) is str else None
            if kept is None:
                kept = self._metric_name(name, value, number)
            if number is not None and kept:
                found[kept] = number
        if found:
            batch = self._batch()
            self._reporter.logged(batch, found)
            self._events.scalars(batch, found)

    def log_image(self, name: Any, image: Any, caption: Any = None) -> None:
        """Take a picture."""
        from det_harness.logged.pictures import picture_of

        name, image = _in_order(name, image)
        with self._kept(f"log_image({_named(name)})", "picture"):
            picture = picture_of(image)
            self._add_picture(name, picture, caption)

    def log_table(self, name: Any, table: Any, caption: Any = None) -> None:
        """Take a table."""
        from det_harness.logged.tables import table_of

        name, table = _in_order(name, table)
        with self._kept(f"log_table({_named(name)})", "table"):
            self._add_table(name, table_of(table), caption)

    def log_text(self, name: Any, text: Any) -> None:
        """Take a text."""
        with self._kept(f"log_text({_named(name)})", "text"):
            try:
                whole = str(text)
            except Exception as error:
                raise NotKeptError(f"it has no text ({type(error).__name__}: {error})") from error
            kept = whole[:TEXT_CHARACTERS].encode("utf-8", "replace")
            if len(whole) > TEXT_CHARACTERS:
                self._tell(
                    "long text",
                    f"log_text({name!r:.60}): of {len(whole):,} characters the first {TEXT_CHARACTERS:,} are kept.",
                )
            self._add(MediaKind.TEXT, name, kept, "txt")

    def log_histogram(self, name: Any, values: Any, bins: Any = 64) -> None:
        """Take values, of which a histogram is kept."""
        from det_harness.logged.tables import histogram_of

        name, values = _in_order(name, values)
        with self._kept(f"log_histogram({_named(name)})", "histogram"):
            self._add(MediaKind.HISTOGRAM, name, histogram_of(values, bins), "json")

    def show(self, shown: Any, display_id: str = "", *, update: bool = False) -> bool:
        """Take what a notebook would show: as a picture or a table; else False, unless a cell waits for it."""
        from det_harness.logged.pictures import as_shown, figure_of
        from det_harness.logged.tables import is_frame, table_of

        if os.getpid() != self._process:
            return False
        try:
            table = table_of(shown) if is_frame(shown) else None
            picture = None if table is not None else as_shown(shown)
        except NotKeptError:
            return False
        except Exception:  # noqa: BLE001 (a class of the user's; it is printed, as it would be without us)
            return False
        with self._kept("display()", "shown"):
            if table is not None:
                self._add_table(self._unnamed("table"), table, None)
            elif picture is not None:
                figure = figure_of(shown)
                title = _title(figure) if figure is not None else ""
                name = checked_name(series_name(title)) or self._unnamed("image" if figure is None else "figure")
                self._add_picture(name, picture, title)
            if self._output is not None:
                self._show_in_cell(self._output, shown, picture, CellItem(display_id=display_id, update=update))
                return True
        return table is not None or picture is not None

    def printed(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Take what the code prints, for the cell that waits."""
        if self._output is not None and os.getpid() == self._process:
            self._output.printed(stream, text)
            self._start_thread()

    def clear_output(self) -> None:
        """Take note that the output of the cell is cleared."""
        if self._output is not None and os.getpid() == self._process:
            self._output.clear()

    def end_output(self) -> None:
        """Take nothing more for the cell that waits: the training has ended, and the program may go on."""
        if self._output is not None and os.getpid() == self._process:
            self._output.end()
            self.settle()
            self._output = None

    # -- for those who run the trial

    def settle(self) -> None:
        """Wait until what was logged so far is stored and reported."""
        if self._thread is not None and os.getpid() == self._process:
            self._queue.join()
            self._send_output()
        self._events.flush()

    def close(self) -> None:
        """Take nothing more, and wait until all is stored and reported."""
        self.end_output()
        thread = self._thread
        if thread is not None and os.getpid() == self._process:
            self._queue.put(None)
            thread.join()
            self._thread = None
        self._events.close()

    # -- media

    def _add_picture(self, name: Any, picture: Any, caption: Any) -> None:
        if picture.smaller:
            self._tell(
                "large picture",
                f"The picture {name!r:.60} ({picture.smaller}) is too large, and is kept with {picture.width} x "
                f"{picture.height} pixels.",
            )
        size = {"width": picture.width, "height": picture.height}
        self._add(MediaKind.IMAGE, name, picture.content, picture.format, caption=caption, **size)

    def _add_table(self, name: Any, table: Any, caption: Any) -> None:
        if table.rows < table.total or table.columns < table.total_columns:
            self._tell(
                "long table",
                f"The table {name!r:.60} has {table.total:,} rows and {table.total_columns:,} columns; the first "
                f"{table.rows:,} and {table.columns:,} are kept.",
            )
        size = {"width": table.columns, "height": table.total}
        self._add(MediaKind.TABLE, name, table.content, "json", caption=caption, **size)

    def _add(self, kind: MediaKind, given: Any, content: bytes, format: str, caption: Any = None, **size: Any) -> None:
        name = self._medium_name(given)
        if self._count >= MEDIA:
            raise NotKeptError(f"the trial has logged {MEDIA:,} pictures, tables and texts, which is the limit")
        if self._bytes + len(content) > MEDIA_BYTES:
            raise NotKeptError(f"what the trial has logged is more than {megabytes(MEDIA_BYTES)}, which is the limit")
        batch = self._batch()
        with self._lock:
            before, number = self._numbers.get((kind, name), (-1, -1))
            number = number + 1 if before == batch else 0
            self._numbers[kind, name] = batch, number
            self._count += 1
            self._bytes += len(content)
        text = "" if caption is None else str(caption)[:_CAPTION].encode("utf-8", "replace").decode()
        item = LoggedMedium(
            batch=batch,
            kind=kind,
            name=name,
            number=number,
            sha256=_sha256(content),
            size=len(content),
            format=format,
            caption=text,
            **size,
        )
        self._start_thread()
        try:
            self._queue.put(_Waiting(item, content), timeout=WAITING_SECONDS)
        except queue.Full:
            raise NotKeptError("the disk does not keep up with what is logged") from None
        self._events.medium(item, content)

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._store_all, name="det-media", daemon=True)
            self._thread.start()

    def _store_all(self) -> None:
        """The body of the thread."""
        while True:
            try:
                waiting = self._queue.get(timeout=SEND_SECONDS)
            except queue.Empty:
                self._send_due()
                continue
            try:
                if waiting is None:
                    return
                self._store(waiting)
            finally:
                self._queue.task_done()
            self._send_due()

    def _store(self, waiting: _Waiting) -> None:
        try:
            if self._opened is None:
                self._opened = self._contents()
            self._opened.put(waiting.item.sha256, waiting.content)
            self._reporter.media([waiting.item])
        except (StorageError, OSError) as error:
            self._tell("unstored", f"What was logged cannot be kept, and the training goes on: {error}")
        except Exception:
            logger.exception("What was logged cannot be reported.")

    # -- for the cell that waits

    def _show_in_cell(self, output: CellOutput, shown: Any, picture: Any, item: CellItem) -> None:
        if picture is not None:
            item.data, item.picture = {"text/plain": repr(shown)[:_CAPTION]}, _sha256(picture.content)
            output.show(item, len(picture.content))
        else:
            from det_harness.logged.tables import is_frame

            item.data = mime_data(shown)
            output.show(item, len(item.model_dump_json()))
            if not is_frame(shown):  # the log has it as a line
                with only_logged():
                    print(repr(shown))

    def _send_due(self) -> None:
        output = self._output
        # Pictures go before the part that shows them.
        if output is not None and output.is_due and self._queue.empty():
            self._send_output()

    def _send_output(self) -> None:
        output = self._output
        if output is None:
            return
        with self._sending:
            first, items = output.take()
            if not items:
                return
            content = CellPart(items=items).model_dump_json(exclude_defaults=True).encode()
            item = LoggedMedium(
                batch=self._batch(),
                kind=MediaKind.OUTPUT,
                name=str(first),
                sha256=_sha256(content),
                size=len(content),
                format="json",
            )
            self._store(_Waiting(item, content))

    # -- names and sentences

    def _metric_name(self, given: Any, value: Any, number: float | None) -> str:
        """Return the name of a metric that is new, or whose value is no number; empty where it is left out."""
        if number is None:
            what = f"{value!r:.60}" if isinstance(value, str | bytes | type(None)) else f"a {type(value).__name__}"
            self._tell(
                "no number",
                f"det.log({given!s:.60}=...) was given {what}, which is no number, and is left out: log a number, or "
                "several values by det.log_histogram() or det.log_table().",
            )
            return ""
        name = self._known_name(given, "det.log()")[:_METRIC_NAME]
        if not name:
            return ""
        if name not in self._metrics and len(self._metrics) >= NAMES:
            self._tell(
                "many names", f"det.log() was given more than {NAMES:,} names; {name!r:.60} and others are left out."
            )
            return ""
        self._metrics.add(name)
        if type(given) is str:
            self._names[given] = name
        return name

    def _medium_name(self, given: Any) -> str:
        name = self._known_name(given, "What is logged")
        if not name:
            raise NotKeptError("it has no name that can be kept")
        return name

    def _known_name(self, given: Any, what: str) -> str:
        name = "" if getattr(given, "ndim", 0) else checked_name(given)
        if not name:
            self._tell("no name", f"{what} has the name {_named(given)}, which is none, and is left out.")
        elif name != given:
            self._tell("odd name", f"{what} has the name {given!r:.60}; it is kept as {name!r:.60}.")
        return name

    def _unnamed(self, what: str) -> str:
        """Return the name of what is shown without one: by its place among those after the same batch."""
        batch = self._batch()
        if self._shown[0] != batch:
            self._shown = batch, {}
        number = self._shown[1].get(what, 0) + 1
        self._shown[1][what] = number
        return f"{what} {number}"

    def _kept(self, call: str, kind: str) -> _Kept:
        return _Kept(self, call, kind)

    def _tell_foreign(self) -> None:
        self._tell(
            "foreign",
            "Something is logged in a process that the training has started, such as a worker of a DataLoader; it is "
            "not kept. Log it where the training itself goes on.",
        )

    def _tell_left_out(self, kind: str, call: str, text: str) -> None:
        """Say once of each name that it is left out; of very many names, of the first ones."""
        names = self._left_out.setdefault(kind, set())
        if call in names or len(names) < _NAMES_TOLD:
            names.add(call)
            self._tell((kind, call), text)

    def _tell(self, kind: object, text: str) -> None:
        """Say a sentence, the first time that there is one of its kind."""
        with self._lock:
            if kind in self._said:
                return
            self._said.add(kind)
        logger.warning("%s", text)
        if os.getpid() == self._process:
            self._reporter.warning(text[:_CAPTION])


class _Kept:
    """A block in which something is taken; why it cannot be is told, and nothing is raised."""

    def __init__(self, recorder: Recorder, call: str, kind: str) -> None:
        self._recorder, self._call, self._kind = recorder, call, kind

    def __enter__(self) -> None:
        if os.getpid() != self._recorder._process:
            self._recorder._tell_foreign()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None:
            return True
        if isinstance(error, NotKeptError):
            text = f"{self._call} is left out, and the training goes on: {error}."
            self._recorder._tell_left_out(self._kind, self._call, text)
            return True
        if isinstance(error, Exception):
            logger.warning("%s is left out, and the training goes on.", self._call, exc_info=error)
            return True
        return False


def _in_order(name: Any, content: Any) -> tuple[Any, Any]:
    """Return a name and what has it, also where a caller has turned them round."""
    turned = isinstance(content, str) and not isinstance(name, str | int | float | None)
    return (content, name) if turned else (name, content)


def _named(name: Any) -> str:
    """Return a name as it was given; what can be none by its type, since it may be a picture."""
    return f"{name!r:.60}" if isinstance(name, str | int | float | None) else f"a {type(name).__name__}"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _title(figure: Any) -> str:
    """Return what a figure is called: by its label, its title, or that of its first axes that has one."""
    try:
        found = [figure.get_label(), figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""]
        found += [axes.get_title() for axes in figure.get_axes()]
    except Exception:  # noqa: BLE001 (a figure of another library)
        return ""
    return next((text for text in found if isinstance(text, str) and text.strip()), "")
