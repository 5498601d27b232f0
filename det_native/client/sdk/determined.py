"""``Determined``: what a master has, by the names of Determined's SDK."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from det_native.client import models
from det_native.client.arguments import checked_number
from det_native.client.connect import connect, forget_token, remember_token
from det_native.client.handles import Checkpoint, Experiment, Trial
from det_native.client.http_source import HttpSource
from det_native.client.listing import Listing
from det_native.client.models import Model
from det_native.client.sdk import metrics
from det_native.client.sdk.absent_names import AbsentNames
from det_native.client.sdk.metrics import TrialMetrics
from det_native.client.sdk.sorting import ExperimentSortBy, sorted_experiments
from det_native.client.sdk.waiting import SdkExperiment
from det_native.client.state_words import shown_state
from det_native.errors import ArgumentError
from det_native.schema.query.filters import Filters
from det_native.schema.registry import ModelOrderBy, ModelSortBy, OrderBy
from det_native.schema.states import ExperimentState


class Determined(AbsentNames):
    """What a master has: experiments, trials, checkpoints and models.

    Parameters
    ----------
    master : str, optional
        Address of the master. Default: ``DET_MASTER``; without it the master that runs on this machine.
    user : str, optional
        Has no effect: a token says who the user is. It is there for code that was written for Determined.
    password : str, optional
        The token of the master, which this process remembers and nothing stores. Default: ``DET_TOKEN``; a master of
        this machine, or one that is reached by SSH, needs none.
    cert_path, cert_name : str, optional
        Have no effect: ``REQUESTS_CA_BUNDLE`` names the file of a certificate of your own.
    noverify : bool
        Cannot be True: certificates are verified.

    Raises
    ------
    MasterUnreachableError
        If no master answers; none is started.
    ArgumentError
        If the certificate is not to be verified.
    """

    def __init__(
        self,
        master: str | None = None,
        user: str | None = None,
        password: str | None = None,
        cert_path: str | None = None,
        cert_name: str | None = None,
        noverify: bool = False,
    ) -> None:
        if noverify:
            raise ArgumentError(
                "noverify=True would send the token to whoever answers: name the file of the master's certificate by "
                "the environment variable REQUESTS_CA_BUNDLE."
            )
        if cert_path or cert_name:
            text = "cert_path and cert_name have no effect: set REQUESTS_CA_BUNDLE to the file of the certificate."
            warnings.warn(text, UserWarning, stacklevel=2)
        self._master = master
        if password:
            remember_token(master, password)
        self._source = HttpSource(connect(master, start=False))

    def logout(self) -> None:
        """Forget the token that was given; the master and its experiments stay as they are."""
        forget_token(self._master)

    def create_experiment(
        self,
        config: str | os.PathLike[str] | Mapping[str, Any],
        model_dir: str | os.PathLike[str] | None = None,
        includes: Iterable[str | os.PathLike[str]] | None = None,
        project_id: int | None = None,
        template: str | None = None,
    ) -> Experiment:
        """Submit what a configuration names as ``entrypoint``, with a folder of code.

        Parameters
        ----------
        config : str, path or dict
            The configuration, or the path of its file.
        model_dir : str or path, optional
            Folder of the code, sent whole but for what its ``.detignore`` names; without it there are `includes` only.
        includes : iterable of paths, optional
            Files and folders that are sent beside what is in `model_dir`, under their own names.
        project_id, template
            None: ``project`` of the configuration names the project, and there are no templates.

        Returns
        -------
        Experiment
            At once.

        Raises
        ------
        ArgumentError
            If an argument cannot be, or the configuration names nothing to train.
        ConfigurationError
            Listing everything that is wrong with the configuration.
        """
        return create_experiment(self._master, config, model_dir, includes, project_id, template)

    def get_experiment(self, experiment_id: int) -> Experiment:
        """Return an experiment of the master.

        Raises
        ------
        NotFoundError
            If there is no such experiment.
        ArgumentError
            If `experiment_id` is no number.
        """
        experiment = SdkExperiment(self._source, checked_number(experiment_id, "experiment_id"))
        experiment.detail()
        return experiment

    def list_experiments(
        self,
        sort_by: ExperimentSortBy | None = None,
        order_by: OrderBy | None = None,
        experiment_ids: Collection[int] | None = None,
        labels: Collection[str] | None = None,
        users: Collection[str] | None = None,
        states: Collection[ExperimentState] | None = None,
        name: str | None = None,
        project_id: int | None = None,
    ) -> list[Experiment]:
        """Return the experiments of the master, archived ones too.

        ``det.experiments()`` has more ways to choose.

        Parameters
        ----------
        sort_by : ExperimentSortBy, optional
            By their ids by default.
        order_by : OrderBy, optional
        experiment_ids : collection of int, optional
            Only these.
        labels : collection of str, optional
            With one of these labels.
        states : collection of ExperimentState, optional
            In one of these states; in ``ACTIVE`` are those that wait for slots, too.
        name : str, optional
            With this in the name, whatever the case of letters.
        users, project_id
            None: all experiments are yours, and projects have names (``det.experiments(project=...)``).

        Raises
        ------
        ArgumentError
            If an argument cannot be.
        """
        _refuse("list_experiments", users=users, project_id=project_id)
        found = self._source.find(Filters(name=name, archived=True), None, None).experiments
        chosen = [
            facts
            for facts in found
            if (not experiment_ids or facts.id in experiment_ids)
            and (not labels or set(labels) & set(facts.labels))
            and (not states or facts.state in states or shown_state(facts) in states)
        ]
        ordered = sorted_experiments(self._source, chosen, sort_by, order_by)
        return Listing(SdkExperiment(self._source, facts.id) for facts in ordered)

    def get_trial(self, trial_id: int | str) -> Trial:
        """Return a trial.

        Raises
        ------
        NotFoundError
            If there is no such trial.
        ArgumentError
            If `trial_id` is no number.
        """
        return Trial(self._source, self._source.trial(checked_number(trial_id, "trial_id")))

    def get_checkpoint(self, uuid: str) -> Checkpoint:
        """Return a checkpoint.

        Raises
        ------
        NotFoundError
            If there is no such checkpoint.
        """
        return Checkpoint(self._source, self._source.checkpoint(uuid))

    def iter_trials_metrics(self, trial_ids: Iterable[int], group: str) -> Iterator[TrialMetrics]:
        """Return what trials have reported so far in a group; see ``Trial.iter_metrics``."""
        return metrics.iter_metrics(self._source, trial_ids, group)

    def stream_trials_metrics(self, trial_ids: Iterable[int], group: str) -> Iterator[TrialMetrics]:
        """As ``iter_trials_metrics``: the older name."""
        return self.iter_trials_metrics(trial_ids, group)

    def stream_trials_training_metrics(self, trial_ids: Iterable[int]) -> Iterator[TrialMetrics]:
        """As ``iter_trials_metrics(trial_ids, "training")``."""
        return self.iter_trials_metrics(trial_ids, metrics.TRAINING)

    def stream_trials_validation_metrics(self, trial_ids: Iterable[int]) -> Iterator[TrialMetrics]:
        """As ``iter_trials_metrics(trial_ids, "validation")``."""
        return self.iter_trials_metrics(trial_ids, metrics.VALIDATION)

    def create_model(
        self,
        name: str,
        description: str | None = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Sequence[str] | None = (),
        workspace_name: str | None = None,
    ) -> Model:
        """Add a model to the registry; see ``det.create_model``."""
        _refuse("create_model", workspace_name=workspace_name)
        return models.create(self._source, name, description or "", metadata, labels or ())

    def get_model(self, identifier: str) -> Model:
        """Return a model of the registry by its name; see ``det.model``."""
        return models.get(self._source, identifier)

    def list_models(
        self,
        sort_by: ModelSortBy = ModelSortBy.NAME,
        order_by: ModelOrderBy = ModelOrderBy.ASCENDING,
        name: str | None = None,
        description: str | None = None,
        model_id: int | None = None,
        workspace_names: Collection[str] | None = None,
        workspace_ids: Collection[int] | None = None,
    ) -> list[Model]:
        """Return the models of the registry; see ``det.models``. The last three are None: models have names only."""
        _refuse("list_models", model_id=model_id, workspace_names=workspace_names, workspace_ids=workspace_ids)
        return models.listing(
            self._source, sort_by=sort_by, order_by=order_by, name=name or "", description=description or ""
        )

    def get_models(
        self,
        sort_by: ModelSortBy = ModelSortBy.NAME,
        order_by: ModelOrderBy = ModelOrderBy.ASCENDING,
        name: str | None = "",
        description: str | None = "",
        model_id: int | None = None,
        workspace_names: Collection[str] | None = None,
        workspace_ids: Collection[int] | None = None,
    ) -> list[Model]:
        """As ``list_models``: the older name."""
        return self.list_models(sort_by, order_by, name, description, model_id, workspace_names, workspace_ids)

    def get_model_labels(self) -> list[str]:
        """Return the labels of all models, the most frequent first."""
        counts: dict[str, int] = {}
        for model in models.listing(self._source):
            for label in model.labels:
                counts[label] = counts.get(label, 0) + 1
        return sorted(counts, key=lambda label: (-counts[label], label))


_WHY = {
    "users": "all experiments of a master are yours",
    "project_id": "projects are known by their names: project: vision/digits in the configuration",
    "template": "there are no templates: put what it holds into the configuration",
    "workspace_name": "there are no workspaces",
    "workspace_names": "there are no workspaces",
    "workspace_ids": "there are no workspaces",
    "model_id": "models are known by their names: get_model('digits')",
}


def _refuse(function: str, **given: Any) -> None:
    """Refuse arguments that would choose something else than is asked for."""
    for name, value in given.items():
        if value:
            raise ArgumentError(f"{function}() takes no {name}: {_WHY[name]}.")


def create_experiment(
    master: str | None,
    config: str | os.PathLike[str] | Mapping[str, Any],
    model_dir: str | os.PathLike[str] | None,
    includes: Iterable[str | os.PathLike[str]] | None,
    project_id: int | None,
    template: str | None,
) -> Experiment:
    """Submit a folder to a master, which is started if it is that of this machine; see ``Determined``."""
    from det_native.experimental.directories import create_from_directory, folder_with

    _refuse("create_experiment", project_id=project_id, template=template)
    if not isinstance(config, str | os.PathLike | Mapping):
        raise ArgumentError(f"config must be a dictionary or the path of a file, not {config!r}.")
    given = config if isinstance(config, Mapping) else Path(config)
    with folder_with(model_dir, tuple(includes or ())) as folder:
        made = create_from_directory(given, folder, master_url=master)
    return SdkExperiment(made.source, made.id)
