"""What is known of a checkpoint, in the words that Determined has for it, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from det_native.client.history import as_numbers
from det_native.client.source import Source
from det_native.frameworks import find_framework
from det_native.schema import rest
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.registry import ModelVersion
from det_native.schema.states import CheckpointState


class CheckpointFacts:
    """Facts of a checkpoint; nothing of them is asked for but the configuration, and what it is in the registry.

    Parameters
    ----------
    checkpoint : rest.Checkpoint
        What is known of it.
    """

    def __init__(self, source: Source, checkpoint: rest.Checkpoint) -> None:
        self._source = source
        self._known = checkpoint

    @property
    def facts(self) -> rest.Checkpoint:
        """What is known of it."""
        return self._known

    @property
    def source(self) -> Source:
        """Where the facts come from."""
        return self._source

    @property
    def uuid(self) -> str:
        """Identity of the checkpoint."""
        return self._known.uuid

    @property
    def batch(self) -> int:
        """Batches done when it was taken."""
        return self._known.batch

    @property
    def batch_number(self) -> int:
        """As `batch`: the name that Determined has for it."""
        return self.batch

    @property
    def state(self) -> CheckpointState:
        """Whether it is there, or was deleted."""
        return self._known.state

    @property
    def trial_id(self) -> int:
        """Number of its trial."""
        return self._known.trial_id

    @property
    def experiment_id(self) -> int:
        """Number of its experiment."""
        return self._known.experiment_id

    @property
    def experiment_config(self) -> dict[str, Any]:
        """Configuration of its experiment."""
        return self._source.experiment(self.experiment_id).config

    @property
    def metrics(self) -> dict[str, Any]:
        """Validation metrics at its batch; empty if the trial was not validated there."""
        return as_numbers(self._known.metrics)

    @property
    def training(self) -> SimpleNamespace:
        """Its training, as Determined 0.38 has it: numbers, configuration, hyperparameters, validation metrics."""
        return SimpleNamespace(
            experiment_id=self.experiment_id,
            trial_id=self.trial_id,
            experiment_config=self.experiment_config,
            hparams=self.hparams,
            validation_metrics={"avgMetrics": self.metrics},
        )

    @property
    def validation(self) -> dict[str, Any]:
        """The same as Determined has them: ``validation["metrics"]["validationMetrics"][name]``."""
        return {"state": self._known.state.name, "metrics": {"validationMetrics": self.metrics}}

    @property
    def hparams(self) -> dict[str, Any]:
        """Hyperparameters of its trial."""
        return dict(self._known.manifest.hparams)

    @property
    def framework(self) -> str:
        """What it was made with, and which version: ``"torch-2.13.0"``."""
        return f"{self._known.manifest.framework}-{self._known.manifest.framework_version}"

    @property
    def format(self) -> str:
        """How weights are kept, as Determined names it: ``"cloudpickle"`` of PyTorch, ``"saved_weights"`` of Keras."""
        described = find_framework(self._known.manifest.framework)
        return "" if described is None else described.checkpoint_format

    @property
    def determined_version(self) -> str:
        """The version of det_native that has made it."""
        return self._known.manifest.det_version

    @property
    def start_time(self) -> str:
        """When it was taken, as ISO 8601 in UTC."""
        return self._known.manifest.created

    @property
    def end_time(self) -> str:
        """When it was complete and known."""
        return max(self._known.created, self._known.manifest.created)

    @property
    def resources(self) -> dict[str, int]:
        """Its files: bytes by path."""
        return {file.path: file.size for file in self._known.manifest.files}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return self._known.size

    @property
    def metadata(self) -> dict[str, Any]:
        """What its code has stored with it, and what people have noted of it; see ``add_metadata``."""
        stored = self._known.manifest.metadata
        of_code = {name: value for name, value in stored.items() if name != CheckpointManifest.METRICS}
        return of_code | self._known.metadata

    @property
    def pinned(self) -> bool:
        """Whether it stays, however many checkpoints the configuration keeps; see ``pin``."""
        return self._known.pinned

    @property
    def model_name(self) -> str | None:
        """Name of the model that it was registered for last; None if it is none's version."""
        version = self._registered()
        return None if version is None else version.model

    @property
    def model_version(self) -> int | None:
        """Number of that version; None if it is none's."""
        version = self._registered()
        return None if version is None else version.version

    def _registered(self) -> ModelVersion | None:
        versions = self._source.versions_of(self.uuid)
        return versions[-1] if versions else None

    def to_json(self) -> dict[str, Any]:
        """Return what is known of it, of plain values only."""
        return {
            "uuid": self.uuid,
            "state": self._known.state.name,
            "experiment_id": self.experiment_id,
            "trial_id": self.trial_id,
            "batch_number": self.batch,
            "framework": self.framework,
            "format": self.format,
            "determined_version": self.determined_version,
            "hparams": self.hparams,
            "validation": {"metrics": {"validationMetrics": dict(self._known.metrics)}},
            "metadata": self.metadata,
            "pinned": self.pinned,
            "resources": self.resources,
            "start_time": self.start_time,
            "end_time": self.end_time,
            "location": self._known.location,
        }
