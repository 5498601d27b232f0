"""What the training of an experiment prints and shows, in the cell that waits for it: as plain code's would stand."""

from __future__ import annotations

import sys
from base64 import b64encode
from contextlib import suppress
from functools import cached_property
from typing import Any

from det_native.client.selection import best_trial
from det_native.client.source import Source
from det_native.errors import DetError
from det_native.schema import rest
from det_native.schema.outputs import MIME_TYPES, CellItem, CellPart, MediaKind


class CellOutputs:
    """Publishes it once and in order, whichever cell waits; of a search what its best trial has shown, at the end.

    Parameters
    ----------
    source : Source
    experiment_id : int
    """

    def __init__(self, source: Source, experiment_id: int) -> None:
        self._source = source
        self._experiment_id = experiment_id
        self._number = self._last_part = self._last_picture = 0
        self._pictures: dict[str, rest.Medium] = {}
        self._named: dict[str, Any] = {}
        # Once the code clears its output: what has been shown since, in order, each renewed in its place.
        self._places: list[Any] | None = None
        self._place = 0
        self._text = ""

    def take(self, event: rest.Event) -> None:
        """Publish what an event tells of; where the master is away, with the next one, or at the end."""
        with suppress(DetError):
            if event.type == "media" and event.trial_id is not None and not self._is_search:
                self._publish_new(event.trial_id)

    def finish(self) -> None:
        """Publish what is not shown yet."""
        with suppress(DetError):
            trials = self._source.trials(self._experiment_id)
            if not self._is_search:
                shown = trials[-1] if trials else None
            else:
                detail = self._source.experiment(self._experiment_id)
                shown = best_trial(trials, smaller_is_better=detail.smaller_is_better)
            if shown is not None:
                self._publish_new(shown.id)

    @cached_property
    def _is_search(self) -> bool:
        searcher = self._source.experiment(self._experiment_id).config.get("searcher") or {}
        return searcher.get("name") != "single"

    def _publish_new(self, trial_id: int) -> None:
        for part in self._source.media(trial_id, MediaKind.OUTPUT, self._last_part):
            items = CellPart.model_validate_json(self._source.medium_content(part)).items
            for number, item in enumerate(items, int(part.name)):
                if number >= self._number:
                    self._publish(item, trial_id)
                    self._number = number + 1
            self._last_part = part.id

    def _publish(self, item: CellItem, trial_id: int) -> None:
        if item.clear:
            self._places, self._place, self._text = self._places or [], 0, ""
        elif item.text and self._places is None:
            print(item.text, end="", file=sys.stderr if item.stream == "stderr" else sys.stdout, flush=True)
        elif item.text:
            self._place -= bool(self._text)
            self._text += item.text
            self._show_in_place({"text/plain": self._text.rstrip("\n")})
        elif item.data:
            self._text = ""
            self._display(self._with_picture(item, trial_id), item)

    def _display(self, data: dict[str, Any], item: CellItem) -> None:
        named = self._named.get(item.display_id)
        if item.update and named is not None:
            named.update(data, raw=True)
            return
        shown = self._show_in_place(data) if self._places is not None else _displayed(data)
        if item.display_id:
            self._named[item.display_id] = shown

    def _show_in_place(self, data: dict[str, Any]) -> Any:
        assert self._places is not None
        if self._place < len(self._places):
            self._places[self._place].update(data, raw=True)
        else:
            self._places.append(_displayed(data))
        self._place += 1
        for later in self._places[self._place :]:
            later.update({"text/plain": ""}, raw=True)
        return self._places[self._place - 1]

    def _with_picture(self, item: CellItem, trial_id: int) -> dict[str, Any]:
        if not item.picture:
            return item.data
        if item.picture not in self._pictures:
            new = self._source.media(trial_id, MediaKind.IMAGE, self._last_picture)
            self._pictures |= {medium.sha256: medium for medium in new}
            self._last_picture = max([self._last_picture, *(medium.id for medium in new)])
        picture = self._pictures.get(item.picture)
        if picture is None:
            return item.data
        content, mime = self._source.medium_content(picture), MIME_TYPES[picture.format]
        text = content.decode() if mime == "image/svg+xml" else b64encode(content).decode("ascii")
        return {**item.data, mime: text}


def _displayed(data: dict[str, Any]) -> Any:
    from IPython.display import display

    return display(data, raw=True, display_id=True)
