"""From which checkpoint a trial continues, as far as the master can see: by what its database knows of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from det_native.errors import CheckpointError, StorageError
from det_native.master.flow.context import Context
from det_native.master.flow.places_of_checkpoints import storage_of
from det_native.master.store import checkpoints
from det_native.schema import rest
from det_native.schema.manifests import CheckpointManifest, Sha256
from det_native.schema.states import CheckpointState

# Of so many checkpoints at most the worker is told what their manifests have to be.
KNOWN = 1000


@dataclass(frozen=True)
class Resume:
    """Where a run begins.

    Attributes
    ----------
    checkpoint : CheckpointManifest or None
        As the database has it; None for the beginning.
    manifests : dict of str to str
        Hashes of the manifests of all of the trial's checkpoints, by uuid: what lies in the storage under these names
        has to have them, and nothing else there is used.
    passed_over : list of str
        What is wrong with later checkpoints, a sentence each.
    """

    checkpoint: CheckpointManifest | None = None
    manifests: dict[str, Sha256] = field(default_factory=dict)
    passed_over: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        """Where it begins, in words."""
        one = self.checkpoint
        return f"checkpoint {one.uuid} at batch {one.batch}" if one else "the beginning"

    @property
    def notice(self) -> str:
        """What is to be known of it beside the trial's state; empty where it begins at the last checkpoint."""
        if not self.passed_over:
            return ""
        start = f"from batch {self.checkpoint.batch}" if self.checkpoint else "from the beginning"
        return f"continued {start}, since a later checkpoint is damaged: {self.passed_over[0]}"


def find_resume(context: Context, experiment: rest.Experiment, trial: rest.Trial) -> Resume:
    """Return the furthest checkpoint of a trial of which all files are there; hashes are verified by the worker."""
    with context.database.read() as connection:
        known = [one for one in checkpoints.of_trial(connection, trial.id) if one.state is CheckpointState.COMPLETED]
    if not known:
        return Resume()
    known.sort(key=lambda one: (one.batch, one.created), reverse=True)
    storage = storage_of(context, experiment)
    manifests = {one.uuid: one.manifest.sha256 for one in known[:KNOWN]}
    passed_over: list[str] = []
    for one in known:
        try:
            storage.check(one.manifest)
        except CheckpointError as error:
            passed_over.append(str(error))
            continue
        except OSError as error:
            if "://" not in storage.uri:
                raise
            said = str(error).rstrip(".") or type(error).__name__
            raise StorageError(
                f"The trial cannot go on: the storage {storage.uri} of its checkpoints does not answer: {said}."
            ) from error
        return Resume(one.manifest, manifests, passed_over)
    return Resume(None, manifests, passed_over)
