"""Models of the registry, and their versions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from det_native.client.arguments import checked_keys, checked_labels, checked_metadata, checked_number, checked_text
from det_native.client.checkpoint import Checkpoint
from det_native.client.http_source import HttpSource
from det_native.client.listing import Listing
from det_native.client.sdk.absent_names import AbsentNames
from det_native.client.sdk.metrics import TrialMetrics
from det_native.errors import ArgumentError
from det_native.schema import registry, routes
from det_native.schema.registry import STAGES, ModelOrderBy, ModelSortBy, name_problem

Facts = TypeVar("Facts", registry.Model, registry.ModelVersion)
Kind = TypeVar("Kind", ModelSortBy, ModelOrderBy)

_PAGE = 1000


class _Kept(Generic[Facts]):
    """What a model and a version have in common: facts that can be changed, and are asked for anew each time."""

    _source: HttpSource
    _known: Facts

    def _read(self) -> Facts:
        raise NotImplementedError

    def _change(self, **changes: Any) -> Facts:
        raise NotImplementedError

    @property
    def description(self) -> str:
        """What it is, in a sentence; can be set."""
        return str(self._read().description)

    @description.setter
    def description(self, text: str) -> None:
        self._change(description=checked_text(text, "description"))

    @property
    def notes(self) -> str:
        """Notes in Markdown; can be set."""
        return str(self._read().notes)

    @notes.setter
    def notes(self, text: str) -> None:
        self._change(notes=checked_text(text, "notes"))

    @property
    def labels(self) -> list[str]:
        """Labels; can be set."""
        return list(self._read().labels)

    @labels.setter
    def labels(self, labels: Sequence[str]) -> None:
        self._change(labels=checked_labels(labels))

    @property
    def metadata(self) -> dict[str, Any]:
        """What was noted of it by name; see ``add_metadata``."""
        return dict(self._read().metadata)

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Note something by name; what has such a name already is replaced."""
        self._change(add_metadata=checked_metadata(metadata))

    def remove_metadata(self, keys: Sequence[str]) -> None:
        """Remove what was noted by these names; one that is not there is passed over."""
        self._change(remove_metadata=checked_keys(keys))

    def set_description(self, description: str) -> None:
        """Replace the description: the name that Determined has for it, as the other ``set_`` methods."""
        self._change(description=checked_text(description, "description"))

    def set_notes(self, notes: str) -> None:
        """Replace the notes."""
        self._change(notes=checked_text(notes, "notes"))

    def set_labels(self, labels: Sequence[str]) -> None:
        """Replace the labels."""
        self._change(labels=checked_labels(labels))

    def reload(self) -> None:
        """Ask anew for all that is known of it."""
        self._read()

    @property
    def created(self) -> str:
        """When it was made, as ISO 8601 in UTC."""
        return str(self._known.created)

    @property
    def updated(self) -> str:
        """When it was changed last."""
        return str(self._read().updated)

    def to_json(self) -> dict[str, Any]:
        """Return what is known of it, of plain values only."""
        facts: dict[str, Any] = self._read().model_dump(mode="json")
        return facts


class Model(_Kept[registry.Model], AbsentNames):
    """A named model of the registry.

    Parameters
    ----------
    source : HttpSource
    known : registry.Model
    """

    #: What changes is the registry, not the notebook: capture tells this object by its identity.
    _det_known_by_identity = True
    _sdk_class = "Model"

    def __init__(self, source: HttpSource, known: registry.Model) -> None:
        self._source = source
        self._known = known

    @property
    def name(self) -> str:
        """Its name; can be set."""
        return str(self._known.name)

    @name.setter
    def name(self, name: str) -> None:
        self._change(name=_checked_name(name))

    @property
    def archived(self) -> bool:
        """Whether it takes no new versions, and is not listed unless that is asked for."""
        return bool(self._read().archived)

    @property
    def versions(self) -> list[ModelVersion]:
        """Its versions, newest first."""
        return self.get_versions()

    def get_versions(self, order_by: ModelOrderBy | str = ModelOrderBy.DESCENDING) -> list[ModelVersion]:
        """Return its versions.

        Parameters
        ----------
        order_by : ModelOrderBy
            Newest first by default.
        """
        order = _checked(ModelOrderBy, order_by, "order_by").value
        found = self._source.session.call(routes.LIST_VERSIONS, name=self.name, order_by=order)
        return Listing(ModelVersion(self._source, version) for version in found)

    def list_versions(self, order_by: ModelOrderBy | str = ModelOrderBy.DESCENDING) -> list[ModelVersion]:
        """As ``get_versions``: the name that Determined has for it."""
        return self.get_versions(order_by)

    def version(self, version: int) -> ModelVersion:
        """Return a version by its number.

        Raises
        ------
        NotFoundError
            If there is none of that number.
        """
        number = checked_number(version, "version")
        return ModelVersion(self._source, self._source.session.call(routes.GET_VERSION, name=self.name, version=number))

    def get_version(self, version: int | None = None) -> ModelVersion | None:
        """Return a version by its number, from 1 on; by default, or by -1, the newest one, None where there is none."""
        if version is not None and version != -1:
            return self.version(version)
        newest = self._read().last_version
        return None if newest is None else self.version(newest)

    def register_version(
        self,
        checkpoint: Checkpoint | str | None = None,
        name: str = "",
        description: str = "",
        *,
        notes: str = "",
        stage: str = "",
        labels: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        checkpoint_uuid: str | None = None,
    ) -> ModelVersion:
        """Make a checkpoint the next version; it is not deleted then, however many the configuration keeps.

        Parameters
        ----------
        checkpoint : Checkpoint or str
            Or its whole uuid; of an experiment of the same master.
        name, description, notes : str
        stage : str
            Any short text; ``"staging"``, ``"production"`` and ``"archived"`` are usual.
        labels : sequence of str
        metadata : mapping, optional
        checkpoint_uuid : str, optional
            Determined's name of `checkpoint`.

        Raises
        ------
        ArgumentError
            If an argument cannot be.
        RequestError
            If it was deleted, is a version already, or the model is archived.
        """
        body = registry.VersionCreate.model_construct(
            uuid=_uuid_of(checkpoint_uuid if checkpoint is None else checkpoint),
            name=checked_text(name, "name"),
            description=checked_text(description, "description"),
            notes=checked_text(notes, "notes"),
            stage=_checked_stage(stage),
            labels=checked_labels(labels),
            metadata=checked_metadata(metadata or {}),
        )
        return ModelVersion(self._source, self._source.session.call(routes.REGISTER_VERSION, body, name=self.name))

    def archive(self) -> None:
        """Have the model take no new versions; it stays as it is."""
        self._change(archived=True)

    def unarchive(self) -> None:
        """Have the model take versions again."""
        self._change(archived=False)

    def delete(self, *, versions: bool = False) -> None:
        """Delete the model from the registry; checkpoints of its versions are as all others then.

        Parameters
        ----------
        versions : bool
            Whether its versions go, too; else a model that has some is not deleted.

        Raises
        ------
        RequestError
            If it has versions.
        """
        self._source.session.call(routes.DELETE_MODEL, name=self.name, versions=bool(versions))

    def _read(self) -> registry.Model:
        self._known = self._source.session.call(routes.GET_MODEL, name=self.name)
        return self._known

    def _change(self, **changes: Any) -> registry.Model:
        self._known = self._source.session.call(
            routes.CHANGE_MODEL, registry.ModelChange.model_construct(**changes), name=self.name
        )
        return self._known

    def __repr__(self) -> str:
        count = self._known.versions
        many = {0: "no versions", 1: "1 version"}.get(count, f"{count} versions")
        return f"Model({self.name!r}: {many}{', archived' if self._known.archived else ''})"


class ModelVersion(_Kept[registry.ModelVersion]):
    """A version of a model: a checkpoint, and what was noted of it.

    Parameters
    ----------
    source : HttpSource
    known : registry.ModelVersion
    """

    _det_known_by_identity = True

    def __init__(self, source: HttpSource, known: registry.ModelVersion) -> None:
        self._source = source
        self._known = known

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return str(self._known.model)

    @property
    def version(self) -> int:
        """Number of the version, from 1 on; none is given twice."""
        return int(self._known.version)

    @property
    def model_version(self) -> int:
        """As `version`: the name that Determined has for it."""
        return self.version

    def set_name(self, name: str) -> None:
        """Give it another name of its own."""
        self._change(name=checked_text(name, "name"))

    def iter_metrics(self, group: str | None = None) -> Iterator[TrialMetrics]:
        """Return what the trial of its checkpoint has reported at that batch; see ``Checkpoint.get_metrics``."""
        return self.checkpoint.get_metrics(group)

    def get_metrics(self, group: str | None = None) -> Iterator[TrialMetrics]:
        """As ``iter_metrics``: the older name."""
        return self.iter_metrics(group)

    @property
    def name(self) -> str:
        """A name of its own, if it has one; can be set."""
        return str(self._read().name)

    @name.setter
    def name(self, name: str) -> None:
        self._change(name=checked_text(name, "name"))

    @property
    def stage(self) -> str:
        """Where it is used: any short text, or empty; ``"staging"``, ``"production"`` and ``"archived"`` are usual.

        Can be set.
        """
        return str(self._read().stage)

    @stage.setter
    def stage(self, stage: str) -> None:
        self._change(stage=_checked_stage(stage))

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that it is."""
        return Checkpoint(self._source, self._known.checkpoint)

    def load(self, *arguments: Any, **options: Any) -> Any:
        """Return the trained model; see ``Checkpoint.load``."""
        return self.checkpoint.load(*arguments, **options)

    def download(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Copy the checkpoint's files into a folder, verified; see ``Checkpoint.download``."""
        return self.checkpoint.download(path)

    def export(self, path: str | os.PathLike[str], format: str, *, example_inputs: Any = None) -> Path:
        """Write the trained model in a format that other programs read; see ``Checkpoint.export``."""
        return self.checkpoint.export(path, format, example_inputs=example_inputs)

    def delete(self) -> None:
        """Delete the version; its checkpoint is as all others then, and its number is not given again."""
        self._source.session.call(routes.DELETE_VERSION, name=self.model_name, version=self.version)

    def _read(self) -> registry.ModelVersion:
        self._known = self._source.session.call(routes.GET_VERSION, name=self.model_name, version=self.version)
        return self._known

    def _change(self, **changes: Any) -> registry.ModelVersion:
        change = registry.VersionChange.model_construct(**changes)
        self._known = self._source.session.call(
            routes.CHANGE_VERSION, change, name=self.model_name, version=self.version
        )
        return self._known

    def __repr__(self) -> str:
        stage = f", {self._known.stage}" if self._known.stage else ""
        return f"ModelVersion({self.model_name!r}, {self.version}: {self._known.checkpoint.uuid[:8]}{stage})"


def create(
    source: HttpSource,
    name: str,
    description: str = "",
    metadata: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
    notes: str = "",
) -> Model:
    """Add a model to the registry of a master."""
    body = registry.ModelCreate.model_construct(
        name=_checked_name(name),
        description=checked_text(description, "description"),
        metadata=checked_metadata({} if metadata is None else metadata),
        labels=checked_labels(labels),
        notes=checked_text(notes, "notes"),
    )
    return Model(source, source.session.call(routes.CREATE_MODEL, body))


def get(source: HttpSource, name: str) -> Model:
    """Return a model of the registry of a master."""
    return Model(source, source.session.call(routes.GET_MODEL, name=_checked_name(name)))


def listing(
    source: HttpSource,
    *,
    sort_by: ModelSortBy | str = ModelSortBy.NAME,
    order_by: ModelOrderBy | str = ModelOrderBy.ASCENDING,
    name: str = "",
    description: str = "",
    label: str = "",
    archived: bool | None = None,
) -> Listing[Model]:
    """Return all models of the registry of a master that fit."""
    query = {
        "sort_by": _checked(ModelSortBy, sort_by, "sort_by").value,
        "order_by": _checked(ModelOrderBy, order_by, "order_by").value,
        "name": checked_text(name, "name"),
        "description": checked_text(description, "description"),
        "label": checked_text(label, "label"),
        "archived": None if archived is None else str(bool(archived)).lower(),
    }
    found: list[Model] = []
    while True:
        page = source.session.call(routes.LIST_MODELS, limit=_PAGE, offset=len(found), **query)
        found += [Model(source, model) for model in page]
        if len(page) < _PAGE:
            return Listing(found)


def _checked_name(name: object) -> str:
    if problem := name_problem(name):
        raise ArgumentError(problem)
    return str(name)


def _checked_stage(stage: object) -> str:
    if not isinstance(stage, str) or len(stage) > 32:
        usual = ", ".join(repr(each) for each in STAGES)
        raise ArgumentError(f"stage must be a text of at most 32 characters, such as {usual}, not {stage!r}.")
    return stage


def _checked(kind: type[Kind], value: object, name: str) -> Kind:
    try:
        return kind(str(value))
    except ValueError:
        words = ", ".join(repr(each.value) for each in kind if each.value)
        raise ArgumentError(f"{name} must be one of {words}, not {value!r}.") from None


def _uuid_of(checkpoint: object) -> str:
    if isinstance(checkpoint, Checkpoint):
        return checkpoint.uuid
    if not isinstance(checkpoint, str) or not checkpoint:
        raise ArgumentError(f"register_version() takes a checkpoint or its uuid, not {checkpoint!r}.")
    return checkpoint
