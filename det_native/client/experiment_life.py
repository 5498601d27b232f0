"""What a user does with an experiment as a whole: describes it, archives it, deletes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from det_native.client import life
from det_native.errors import NotRecordedError
from det_native.schema import rest

if TYPE_CHECKING:
    from det_native.client.source import Source


NOT_RECORDED = "not recorded"


class _NoNumber(int):
    """What stands for the number of a run that no master has: its source knows which run is meant."""

    def __str__(self) -> str:
        return f"({NOT_RECORDED})"


class ExperimentLife:
    """The part of ``Experiment`` that is about the experiment as a whole."""

    _source: Source
    _number: int | Callable[..., int]
    _ended: rest.ExperimentDetail | None

    @property
    def id(self) -> int:
        """Number of the experiment on its master.

        Raises
        ------
        NotRecordedError
            If no master has the run of this process.
        """
        if callable(self._number):
            self._number = self._number()
        return self._number

    @property
    def _id(self) -> int:
        try:
            return self.id
        except NotRecordedError:
            return _NoNumber()

    @property
    def description(self) -> str:
        """What the experiment is about, in a sentence; ``set_description`` changes it."""
        return self._source.experiment(self._id).description

    @property
    def notes(self) -> str:
        """Markdown that people have written of it; ``experiment.notes = "..."`` and ``set_notes`` change it."""
        return self._source.experiment(self._id).notes

    @notes.setter
    def notes(self, text: str) -> None:
        self.set_notes(text)

    @property
    def labels(self) -> list[str]:
        """Labels; ``add_labels`` and ``remove_labels`` change them."""
        return self._source.experiment(self._id).labels

    @property
    def project(self) -> str:
        """The project that it is in, a path of folders such as ``"vision/digits"``; ``move_to`` changes it."""
        return self._source.experiment(self._id).project

    @property
    def archived(self) -> bool:
        """Whether it is archived; see ``archive``."""
        return self._source.experiment(self._id).archived

    @property
    def forked_from(self) -> int | None:
        """Number of the experiment whose program it runs with another configuration, if it was made so."""
        return self._source.experiment(self._id).forked_from

    def rename(self, name: str) -> None:
        """Give the experiment another name.

        Raises
        ------
        ArgumentError
            If the name is empty.
        """
        self._describe(name=name)

    def set_name(self, name: str) -> None:
        """As ``rename``: the name that Determined has for it."""
        self.rename(name)

    def set_description(self, description: str) -> None:
        """Say in a sentence what the experiment is about."""
        self._describe(description=description)

    def set_notes(self, notes: str) -> None:
        """Replace the notes, which are Markdown."""
        self._describe(notes=notes)

    def add_labels(self, *labels: str) -> None:
        """Add labels; those that it has stay."""
        self._describe(add_labels=list(labels))

    def remove_labels(self, *labels: str) -> None:
        """Remove labels, as far as it has them."""
        self._describe(remove_labels=list(labels))

    def set_labels(self, labels: str | Iterable[str]) -> None:
        """Replace all labels."""
        self._describe(labels=life.labels_of(labels))

    def add_label(self, label: str) -> None:
        """As ``add_labels``, of one label: the name that Determined has for it."""
        self.add_labels(label)

    def remove_label(self, label: str) -> None:
        """As ``remove_labels``, of one label: the name that Determined has for it."""
        self.remove_labels(label)

    def move_to(self, project: str) -> None:
        """Put the experiment into a project: a path of folders such as ``"vision/digits"``, ``""`` for none."""
        self._describe(project=project)

    def archive(self) -> None:
        """Have the experiment not listed any more unless archived ones are asked for; nothing of it is lost.

        Raises
        ------
        RequestError
            If it goes on.
        """
        self._describe(archived=True)

    def unarchive(self) -> None:
        """Have an archived experiment listed again."""
        self._describe(archived=False)

    def delete(self, yes: bool = False) -> None:
        """Delete the experiment for good: checkpoints, metrics, output, and stored files that nothing else needs.

        What that frees is shown first, and you are asked.

        Parameters
        ----------
        yes : bool
            Delete without asking.

        Raises
        ------
        RequestError
            If it goes on, or a checkpoint of it is registered, pinned, or what another experiment began with.
        """
        life.delete(self._source, self._id, yes=yes)
        self._ended = None

    def _describe(self, **change: Any) -> None:
        life.describe(self._source, self._id, **change)
        self._ended = None
