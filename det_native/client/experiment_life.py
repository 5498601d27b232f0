"""What a user does with an experiment as a whole: describes it, archives and deletes it, makes others of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from det_native.client import life, selection
from det_native.client.trial import Trial
from det_native.schema import rest

if TYPE_CHECKING:
    from det_native.client.checkpoint import Checkpoint
    from det_native.client.handles import Experiment
    from det_native.client.source import Source


class ExperimentLife:
    """The part of ``Experiment`` that is about the experiment as a whole."""

    _source: Source
    _id: int | str
    _ended: rest.ExperimentDetail | None

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

    def fork(
        self,
        hyperparameters: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> Experiment:
        """Submit the same program and data with another configuration; no cell runs here.

        What is not named stays, also what came from the training call: length, metric, batch size.

        Parameters
        ----------
        hyperparameters : mapping, optional
            New values by name, or ranges for a search: ``{"lr": 0.01}``.
        config : mapping, str or path, optional
            Changes of the configuration, section by section: ``{"searcher": {"max_length": {"epochs": 20}}}``.
        name : str, optional
            ``"Fork of ..."`` by default.

        Returns
        -------
        Experiment
            The new one, at once.

        Raises
        ------
        ArgumentError
            If the program has no hyperparameter of that name; the message lists those that it has.
        ConfigurationError
            Listing everything that is wrong with the configuration.
        UnsupportedFeatureError
            If it is a local run; ``move("cluster")`` makes an experiment of it.
        """
        return self._new(life.fork(self._source, self._id, hyperparameters, config, name))

    def continue_(
        self,
        epochs: int | None = None,
        *,
        batches: int | None = None,
        records: int | None = None,
        checkpoint: Checkpoint | str | None = None,
        trial: Trial | int | None = None,
        name: str | None = None,
    ) -> Experiment:
        """Submit an experiment that goes on where a training has ended, and trains so much longer.

        It begins with the weights, and the states of optimizers and learning rate schedules, of a checkpoint; epochs
        and batches are counted from 1 again. An Estimator takes the weights only.

        Parameters
        ----------
        epochs, batches, records : int
            How much longer: one of them.
        checkpoint : Checkpoint or str, optional
            Where it begins, or the beginning of its uuid; the last one of the trial by default.
        trial : Trial or int, optional
            The trial that is continued, or its id; the best one by default.
        name : str, optional
            ``"Continuation of ..."`` by default.

        Returns
        -------
        Experiment
            The new one, at once.

        Raises
        ------
        ArgumentError
            If not exactly one length is given.
        CheckpointError
            If there is no checkpoint (any more).
        UnsupportedFeatureError
            If the length stands in the program's own code, or it is a local run.
        """
        if isinstance(checkpoint, str):
            found = self._source.checkpoints(experiment_id=self._id)
            uuid: str | None = selection.checkpoint_named(checkpoint, found, owner=f"Experiment {self._id}").uuid
        else:
            uuid = None if checkpoint is None else checkpoint.uuid
        trial_id = trial.id if isinstance(trial, Trial) else trial
        lengths = {"epochs": epochs, "batches": batches, "records": records}
        return self._new(life.continuation(self._source, self._id, lengths, uuid, trial_id, name))

    def move(
        self,
        place: str = "cluster",
        *,
        config: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        master_url: str | None = None,
    ) -> Experiment:
        """Train the program of a local run on the cluster, from the beginning, with the same configuration.

        Parameters
        ----------
        place : {"cluster"}
            Where to.
        config : mapping, str or path, optional
            Changes of the configuration: ``{"resources": {"slots_per_trial": 2}}``.
        master_url : str, optional
            As of ``init()``.

        Returns
        -------
        Experiment
            The one on the cluster, at once.

        Raises
        ------
        ArgumentError
            If it is on the cluster already.
        UnsupportedFeatureError
            If the program of the run could not be kept.
        """
        from det_native.experimental.moving import move

        return move(self._source, self._id, place, config, master_url)

    def _describe(self, **change: Any) -> None:
        life.describe(self._source, self._id, **change)
        self._ended = None

    def _new(self, made: rest.Experiment) -> Experiment:
        from det_native.client.handles import Experiment

        print(life.submitted_text(made))
        return Experiment(self._source, made.id)
