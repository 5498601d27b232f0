"""Whatever happens: nothing that is registered, pinned or begun with is deleted, and the disk has what is listed."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fresh_databases import put_database
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule
from master_parts import MemoryLauncher, manifest, publish
from sqlalchemy import select

from det_native.errors import RequestError
from det_native.master.flow import collection, kept_checkpoints
from det_native.master.flow.context import Context
from det_native.master.flow.places import Places
from det_native.master.store import bundles, checkpoints, experiments, protection, registry, reports, runs, trials
from det_native.master.store.database import Database
from det_native.master.store.tables import checkpoints as table
from det_native.master.store.tables import experiments as experiments_table
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.registry import CheckpointChange, ModelCreate, VersionCreate
from det_native.schema.run_ids import new_id
from det_native.schema.states import CheckpointState, ExperimentState, TrialState
from det_native.storage.blobs import BlobStore

OWNER = "user"


class _Job:
    """What `publish` needs of a job."""

    def __init__(self, places: Places, experiment_id: int, trial_id: int, run_id: str) -> None:
        self.checkpoints, self.checkpoint_options = places.checkpoints, {}
        self.experiment_id, self.trial_id, self.run_id = experiment_id, trial_id, run_id
        self.bundle_id, self.hparams = "0" * 64, {}


class Collected(RuleBasedStateMachine):
    """Experiments over the real store, and a folder of checkpoints."""

    live = Bundle("live")
    made = Bundle("made")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        home = Path(self.folder.name)
        (home / "checkpoints").mkdir()
        self.database = Database(put_database(home / "det.db"))
        self.places = Places(home=home, url="", slots=())
        blobs = BlobStore(self.places.blobs)
        self.context = Context(self.database, MemoryLauncher(), self.places, lambda step: None, blobs)
        self.seq: dict[str, int] = {}
        self.batch = 0
        #: What the test itself says must be there: by uuid how many reasons there are.
        self.must: dict[str, int] = {}
        self.versions: dict[int, str] = {}
        self.pins: set[str] = set()
        with self.database.write() as transaction:
            bundles.add(transaction, manifest())
            registry.create(transaction, OWNER, ModelCreate(name="m"))

    @rule(target=live, best=st.integers(0, 2), trial=st.integers(0, 2), last=st.integers(0, 2))
    def start(self, best: int, trial: int, last: int) -> tuple[int, int, str]:
        return self._start({"save_experiment_best": best, "save_trial_best": trial, "save_trial_latest": last}, None)

    @rule(target=live, source=made)
    def fork(self, source: str) -> tuple[int, int, str]:
        if not self._complete(source):
            return self._start({}, None)
        self.must[source] = self.must.get(source, 0) + 1
        return self._start({}, source)

    def _start(self, storage: dict[str, int], source: str | None) -> tuple[int, int, str]:
        searcher: dict[str, Any] = {"name": "single", "metric": "loss", "max_length": {"batches": 100}}
        if source is not None:
            searcher["source_checkpoint_uuid"] = source
        config = ExperimentConfig.model_validate({"searcher": searcher, "checkpoint_storage": storage})
        dumped = config.model_dump(mode="json")
        new = experiments.NewExperiment(OWNER, "", dumped, manifest().id, "torch", "loss", True, [])
        run_id = new_id()
        with self.database.write() as transaction:
            experiment_id = experiments.create(transaction, new)
            checkpoints.note_uses(transaction, experiment_id, [] if source is None else [source])
            trial_id = trials.create(
                transaction, experiment_id, request=0, hparams={}, seed=1, target_batches=100, warm_start=source
            )
            runs.create(transaction, trial_id, run_id, token_hash="t", slots=["cpu:0"], start_batch=0)
        return experiment_id, trial_id, run_id

    @rule(target=made, of=live, loss=st.integers(0, 3), validated=st.booleans())
    def report(self, of: tuple[int, int, str], loss: int, validated: bool) -> str:
        experiment_id, _, run_id = of
        self.batch += 1
        uuid, said = publish(_Job(self.places, *of), self.batch)  # type: ignore[arg-type]
        found: list[dict[str, Any]] = [said]
        if validated:
            row = {"batches": [self.batch], "metrics": {"loss": [float(loss)]}}
            found.insert(0, {"type": "metrics", "kind": "validation", **row})
        if self._ended(experiment_id):
            kept_checkpoints_storage(self.places).delete(uuid)  # as a worker does that was told to end
            return uuid
        numbered = []
        for one in found:
            self.seq[run_id] = self.seq.get(run_id, 0) + 1
            numbered.append({"seq": self.seq[run_id], **one})
        with self.database.write() as transaction:
            reports.accept(transaction, run_id, rest.ReportBatch.model_validate({"reports": numbered}))
        return uuid

    @rule(uuid=made)
    def pin(self, uuid: str) -> None:
        if self._complete(uuid):
            kept_checkpoints.change(self.context, OWNER, uuid, CheckpointChange(pinned=True))
            self.pins.add(uuid)

    @rule(uuid=made)
    def unpin(self, uuid: str) -> None:
        if uuid in self.pins:
            kept_checkpoints.change(self.context, OWNER, uuid, CheckpointChange(pinned=False))
            self.pins.remove(uuid)

    @rule(uuid=made)
    def register(self, uuid: str) -> None:
        if self._complete(uuid) and uuid not in self.versions.values():
            with self.database.write() as transaction:
                version = registry.register(transaction, "m", OWNER, VersionCreate(uuid=uuid))
            self.versions[version.version] = uuid

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.versions)))
        with self.database.write() as transaction:
            registry.remove_version(transaction, "m", OWNER, version)
        del self.versions[version]

    @rule(uuid=made)
    def delete(self, uuid: str) -> None:
        if not self._known(uuid):
            return
        if uuid in self._protected():
            with pytest.raises(RequestError, match="cannot be deleted: "):
                kept_checkpoints.delete(self.context, OWNER, uuid)
            return
        with suppress(RequestError):  # its trial goes on
            kept_checkpoints.delete(self.context, OWNER, uuid)

    @rule(of=live)
    def end(self, of: tuple[int, int, str]) -> None:
        experiment_id, trial_id, _ = of
        if not self._ended(experiment_id):
            with self.database.write() as transaction:
                trials.set_state(transaction, trial_id, TrialState.COMPLETED)
                experiments.set_state(transaction, experiment_id, ExperimentState.COMPLETED)
                collection.retire(transaction, experiments.get(transaction.connection, experiment_id))
            collection.collect(self.context, experiment_id)

    @rule(of=live, last=st.integers(1, 2))
    def collect(self, of: tuple[int, int, str], last: int) -> None:
        if self._ended(of[0]):
            collection.collect(self.context, of[0])
        else:
            before = [one.uuid for one in self._all() if one.trial_id == of[1] and self._complete(one.uuid)]
            collection.collect_running(self.context, *of[:2], last=last)
            newest = sorted(before)[-1:]  # numbered as they were made
            assert all(self._complete(uuid) for uuid in newest), "a live trial lost what it continues from"

    @invariant()
    def nothing_protected_is_gone(self) -> None:
        if hasattr(self, "database"):
            for uuid in self._protected():
                assert self._complete(uuid), uuid

    @invariant()
    def the_disk_has_what_is_listed(self) -> None:
        if not hasattr(self, "database"):
            return
        complete = [one for one in self._all() if one.state is CheckpointState.COMPLETED]
        root = Path(self.places.checkpoints)
        on_disk = {folder.name for folder in root.iterdir() if not folder.name.startswith(".")}
        assert on_disk == {one.uuid for one in complete}
        files = (path for uuid in on_disk for path in (root / uuid).rglob("*") if path.name != "manifest.json")
        assert sum(path.stat().st_size for path in files if path.is_file()) == sum(one.size for one in complete)
        with self.database.read() as connection:
            assert protection.protected(connection).keys() >= self._protected()

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            self.folder.cleanup()

    def _protected(self) -> set[str]:
        return self.pins | set(self.versions.values()) | self.must.keys()

    def _all(self) -> list[rest.Checkpoint]:
        with self.database.read() as connection:
            numbers = connection.execute(select(experiments_table.c.id)).scalars().all()
            return [checkpoint for number in numbers for checkpoint in checkpoints.of_experiment(connection, number)]

    def _state(self, uuid: str) -> CheckpointState | None:
        with self.database.read() as connection:
            row = connection.execute(select(table.c.state).where(table.c.uuid == uuid)).first()
        return None if row is None else CheckpointState(row.state)

    def _known(self, uuid: str) -> bool:
        return self._state(uuid) is not None

    def _complete(self, uuid: str) -> bool:
        return self._state(uuid) is CheckpointState.COMPLETED

    def _ended(self, experiment_id: int) -> bool:
        with self.database.read() as connection:
            return experiments.get(connection, experiment_id).state.terminal


def kept_checkpoints_storage(places: Places) -> Any:
    """Return the checkpoints of the folder."""
    from det_native.storage.checkpoints import CheckpointStorage

    return CheckpointStorage(places.checkpoints)


TestCollected = Collected.TestCase
TestCollected.settings = settings(max_examples=max(8, settings.default.max_examples // 10), stateful_step_count=20)
