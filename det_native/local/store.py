"""Where runs in this process are kept: ``DET_HOME/local/<n>/``, in the REST models' own form.

::

    local/3/experiment.json         rest.ExperimentDetail
    local/3/described.json          what people write of it: name, labels, notes ...
    local/3/run.lock                held while the run goes on
    local/3/use.lock                shared by all who hold a handle of the experiment
    local/3/bundle.json             the program; its blobs are in local/blobs/, for all runs together
    local/3/no-program.txt          why there is none
    local/3/process.json            Runner: the process that runs it, or ran it
    local/3/trials/1/trial.json     rest.Trial
    local/3/trials/1/training.jsonl, validation.jsonl, logged.jsonl    rest.MetricRow, one a line, added while it trains
    local/3/trials/1/epochs.jsonl                        rest.EpochRow, one a line
    local/3/trials/1/system.jsonl                        rest.SystemSample, one a line
    local/3/trials/1/media.jsonl                         rest.Medium, one a line; contents are in local/blobs/ too
    local/3/trials/1/checkpoints.jsonl                   rest.Checkpoint, one a line
    local/3/trials/1/marks.json                          what people noted of checkpoints, and which they pinned
    local/3/trials/1/log.jsonl, log.1.jsonl              rest.LogLine, one a line; the second has the older ones
    local/3/trials/1/files/<uuid>/  the checkpoints

A line that does not end is not there yet. The last `KEPT` runs stay, and older ones that somebody still holds a handle
of. Those that people have described, labelled, noted, renamed, archived or put into a project, or a checkpoint of which
they have pinned or noted, stay until they are deleted, and do not count. ``local/last-number`` is the highest number
that a run ever had.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from det_native.errors import NotFoundError, StorageError
from det_native.local.described import with_description
from det_native.local.keeping import make_folder, stays
from det_native.local.locks import is_locked
from det_native.local.runner import Runner
from det_native.schema import rest
from det_native.schema.home import Home
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.states import CheckpointState, ExperimentState, TrialState

Model = TypeVar("Model", bound=BaseModel)

PREFIX = "local-"
#: Runs that stay in ``DET_HOME/local``.
KEPT = 20

_REMOVED = ".removed-"
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


def now() -> str:
    """Return the present time as ISO 8601 in UTC, as a master writes it."""
    return _utc(datetime.now(UTC))


class LocalStore:
    """The folder of one local experiment.

    Parameters
    ----------
    folder : Path
        ``DET_HOME/local/<n>``. It stays as long as this object lives.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        weakref.finalize(self, os.close, _held(folder))

    @classmethod
    def create(cls) -> LocalStore:
        """Make the folder of a new experiment, with the next number, and remove those of old ones."""
        root = _root()
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        store = cls(make_folder(root))
        _remove_old(root)
        return store

    @classmethod
    def find(cls, experiment_id: str) -> LocalStore:
        """Return the store of ``"local-<n>"``.

        Raises
        ------
        NotFoundError
            If there is none.
        """
        number = experiment_id.removeprefix(PREFIX)
        folder = _root() / number
        if number.isdigit() and (folder / "experiment.json").is_file():
            try:
                store = cls(folder)
            except FileNotFoundError:  # removed at this moment
                store = None
            if store is not None and (folder / "experiment.json").is_file():
                return store
        raise NotFoundError(
            f"There is no local experiment {experiment_id!r} in {_root()}; the last {KEPT} runs are kept there, "
            "and those that were pinned, labelled, described or archived."
        )

    @classmethod
    def all(cls) -> list[LocalStore]:
        """Return the stores of the runs that are kept, newest first."""
        found = []
        for number in kept_numbers():
            with suppress(NotFoundError):  # removed at this moment
                found.append(cls.find(f"{PREFIX}{number}"))
        return found

    @property
    def number(self) -> int:
        """Number of the experiment among the local ones."""
        return int(self.folder.name)

    @property
    def id(self) -> str:
        """What the user sees and types: ``"local-<n>"``."""
        return f"{PREFIX}{self.number}"

    @property
    def lock(self) -> FileLock:
        """Held while the run goes on; free again when its process dies."""
        return FileLock(self.folder / "run.lock")

    def trial_folder(self, trial_id: int) -> Path:
        """Return the folder of a trial, made if need be."""
        folder = self.folder / "trials" / str(trial_id)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write_experiment(self, experiment: rest.ExperimentDetail) -> None:
        """Replace what is kept of the experiment."""
        _write(self.folder / "experiment.json", experiment.model_dump_json())

    def write_trial(self, trial: rest.Trial) -> None:
        """Replace what is kept of a trial."""
        _write(self.trial_folder(trial.id) / "trial.json", trial.model_dump_json())

    def write_runner(self, runner: Runner) -> None:
        """Keep which process runs the experiment."""
        _write(self.folder / "process.json", runner.model_dump_json())

    def runner(self) -> Runner | None:
        """Return which process runs the experiment, or ran it; None for one of an earlier version."""
        try:
            return Runner.model_validate_json((self.folder / "process.json").read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write_rows(self, trial_id: int, kind: str, rows: Iterable[rest.MetricRow]) -> None:
        """Replace a trial's rows of metrics."""
        _write_lines(self.trial_folder(trial_id) / f"{kind}.jsonl", rows)

    def append_rows(self, trial_id: int, kind: str, rows: Iterable[rest.MetricRow]) -> None:
        """Add to a trial's rows of metrics, while it runs."""
        with (self.trial_folder(trial_id) / f"{kind}.jsonl").open("a") as file:
            file.write("".join(f"{row.model_dump_json()}\n" for row in rows))

    def write_epochs(self, trial_id: int, rows: Iterable[rest.EpochRow]) -> None:
        """Replace what the framework's own history has of a trial."""
        _write_lines(self.trial_folder(trial_id) / "epochs.jsonl", rows)

    def epochs(self, trial_id: int) -> list[rest.EpochRow]:
        """Return what the framework's own history has of a trial, by epoch."""
        return list(_read_lines(self._of_trial(trial_id, "epochs.jsonl"), rest.EpochRow))

    def write_samples(self, trial_id: int, samples: Iterable[rest.SystemSample]) -> None:
        """Replace what is known of what a trial's processes use."""
        _write_lines(self.trial_folder(trial_id) / "system.jsonl", samples)

    def samples(self, trial_id: int) -> list[rest.SystemSample]:
        """Return what a trial's processes use, by time."""
        return list(_read_lines(self._of_trial(trial_id, "system.jsonl"), rest.SystemSample))

    def write_media(self, trial_id: int, media: Iterable[rest.Medium]) -> None:
        """Replace what is known of the pictures, tables, texts and histograms of a trial."""
        of_trial = (each.model_copy(update={"trial_id": trial_id}) for each in media)
        _write_lines(self.trial_folder(trial_id) / "media.jsonl", of_trial)

    def media(self, trial_id: int) -> list[rest.Medium]:
        """Return the pictures, tables, texts and histograms that a trial has logged, in that order."""
        return list(_read_lines(self._of_trial(trial_id, "media.jsonl"), rest.Medium))

    def medium_content(self, medium: rest.Medium) -> bytes:
        """Return what was logged.

        Raises
        ------
        NotFoundError
            If it is not there any more.
        """
        from det_harness.local.bundle import read_blob

        try:
            return read_blob(self.folder, medium.sha256)
        except StorageError:
            raise NotFoundError(f"The content of {medium.name!r} of the run {self.id} is not there any more.") from None

    def write_checkpoints(self, trial_id: int, checkpoints: Iterable[rest.Checkpoint]) -> None:
        """Replace what is known of a trial's checkpoints."""
        _write_lines(self.trial_folder(trial_id) / "checkpoints.jsonl", checkpoints)

    def write_why_no_program(self, reason: str) -> None:
        """Keep why the program of the experiment could not be captured."""
        _write(self.folder / "no-program.txt", reason)

    def why_no_program(self) -> str:
        """Return what :meth:`write_why_no_program` was given, empty if nothing."""
        try:
            return (self.folder / "no-program.txt").read_text()
        except FileNotFoundError:
            return ""

    def experiment(self) -> rest.ExperimentDetail:
        """Return the experiment; one whose process has ended in the middle of it is stopped, and says why."""
        detail = self._kept_experiment()
        if detail.state.terminal or self.running():
            return detail
        detail = self._kept_experiment()  # it may have ended since it was read: that is written before the lock is free
        if detail.state.terminal:
            return detail
        error = rest.UserErrorInfo(type="Stopped", message=self._why_stopped(), traceback="")
        values = [trial.best_validation for trial in self.trials() if trial.best_validation is not None]
        best = (min if detail.smaller_is_better else max)(values, default=None)
        changes = {"state": ExperimentState.CANCELED, "error": error, "ended": self._last_written()}
        return detail.model_copy(update=changes | {"best_validation": best})

    def _kept_experiment(self) -> rest.ExperimentDetail:
        kept = rest.ExperimentDetail.model_validate_json((self.folder / "experiment.json").read_bytes())
        return with_description(self.folder, kept)

    def trials(self) -> list[rest.Trial]:
        """Return the trials, oldest first; none goes on whose process has ended."""
        found = self._kept_trials()
        if all(trial.state.terminal for trial in found) or self.running():
            return found
        return [trial if trial.state.terminal else self._stopped(trial) for trial in self._kept_trials()]

    def _stopped(self, trial: rest.Trial) -> rest.Trial:
        return trial.model_copy(update={"state": TrialState.CANCELED, "ended": self._last_written()})

    def _kept_trials(self) -> list[rest.Trial]:
        numbers = sorted(int(each.parent.name) for each in self.folder.glob("trials/*/trial.json"))
        return [rest.Trial.model_validate_json(self._of_trial(number, "trial.json").read_bytes()) for number in numbers]

    def rows(self, trial_id: int, kind: str) -> list[rest.MetricRow]:
        """Return a trial's rows of metrics."""
        return list(_read_lines(self._of_trial(trial_id, f"{kind}.jsonl"), rest.MetricRow))

    def checkpoints(self, trial_id: int) -> list[rest.Checkpoint]:
        """Return a trial's checkpoints, oldest first; deleted ones included."""
        kept = list(_read_lines(self._of_trial(trial_id, "checkpoints.jsonl"), rest.Checkpoint))
        marks = self._marks(trial_id)
        return [one.model_copy(update=marks[one.uuid]) if one.uuid in marks else one for one in kept]

    def write_mark(self, trial_id: int, uuid: str, *, metadata: dict[str, Any], pinned: bool) -> None:
        """Keep what people have noted of a checkpoint, and whether it is pinned."""
        marks = self._marks(trial_id) | {uuid: {"metadata": metadata, "pinned": pinned}}
        _write(self._of_trial(trial_id, "marks.json"), json.dumps(marks))

    def _marks(self, trial_id: int) -> dict[str, Any]:
        try:
            marks: dict[str, Any] = json.loads(self._of_trial(trial_id, "marks.json").read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return {}
        return marks

    def _of_trial(self, trial_id: int, name: str) -> Path:
        return self.folder / "trials" / str(trial_id) / name

    def running(self) -> bool:
        """Whether the process of the run lives, and has not ended the run."""
        if not is_locked(self.folder / "run.lock"):
            return False
        runner = self.runner()
        # What the process has forked keeps the lock as long as it lives.
        return runner is None or not runner.gone

    def _why_stopped(self) -> str:
        runner = self.runner()
        if runner is None:
            who = "its process ended in the middle of it"
        elif runner.in_kernel:
            who = "its kernel was restarted or ended in the middle of it"
        else:
            who = f"its process ({runner.pid}) ended in the middle of it"
        trials = self.trials()
        batches = f", after batch {trials[-1].batches} of {trials[-1].target_batches}" if trials else ""
        return f"{who}{batches}."

    def _last_written(self) -> str:
        """Return when the run was last heard of."""
        paths = [self.folder / "experiment.json", *self.folder.glob("trials/*/*.json*")]
        return _moment(max(_modified(path) for path in paths))


def trial_row(store: LocalStore, trial_id: int, hparams: dict[str, Any], seed: int, target: int) -> rest.Trial:
    """Return a trial that begins now."""
    return rest.Trial(
        id=trial_id,
        number=trial_id,
        experiment_id=store.number,
        state=TrialState.RUNNING,
        hparams=hparams,
        seed=seed,
        restarts=0,
        run_id=None,
        batches=0,
        target_batches=target,
        best_validation=None,
        error=None,
        created=now(),
        started=now(),
        ended=None,
    )


def checkpoint_row(
    number: int, trial_id: int, location: str, manifest: CheckpointManifest, metrics: dict[str, Any]
) -> rest.Checkpoint:
    """Return a checkpoint of the local experiment of that number."""
    return rest.Checkpoint(
        uuid=manifest.uuid,
        trial_id=trial_id,
        experiment_id=number,
        batch=manifest.batch,
        state=CheckpointState.COMPLETED,
        size=manifest.size,
        metrics=metrics,
        location=location,
        created=manifest.created,
        manifest=manifest,
        trial_number=trial_id,
    )


def kept_numbers() -> list[int]:
    """Return the numbers of the runs that are kept, newest first."""
    try:
        names = os.listdir(_root())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _moment(seconds: float) -> str:
    return _utc(datetime.fromtimestamp(seconds, UTC))


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _root() -> Path:
    return Home.default().path / "local"


def _held(folder: Path) -> int:
    """Hold a folder against removal, until the descriptor that is returned is closed."""
    descriptor = os.open(folder / "use.lock", _OPEN, 0o600)
    if sys.platform != "win32":  # there, what is open cannot be renamed
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _remove_old(root: Path) -> None:
    """Remove all but the last runs, unless they are in use or people keep them, and what only they needed."""
    folders = [each for each in root.iterdir() if each.name.isdigit()]
    numbers = sorted((int(each.name) for each in folders if not stays(each)), reverse=True)
    old = [root / str(number) for number in numbers[KEPT:]]
    if old:
        from det_harness.local.bundle import all_hashes, drop_blobs

        hashes = {folder: all_hashes(folder) for folder in old}
        drop_blobs(root, set[str]().union(*(hashes[folder] for folder in old if _remove(folder))))
    for left in root.glob(f"{_REMOVED}*"):
        shutil.rmtree(left, ignore_errors=True)  # what another kernel is removing at the same moment


def _remove(folder: Path) -> bool:
    """Rename a folder away unless somebody holds it or people keep it; return whether it is gone."""
    target = folder.with_name(f"{_REMOVED}{folder.name}-{os.getpid()}")
    try:
        descriptor = os.open(folder / "use.lock", _OPEN, 0o600)
    except OSError:
        return False
    try:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stays(folder):  # somebody has pinned or labelled it since it was looked at
                return False
            folder.rename(target)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    if sys.platform == "win32":
        try:
            folder.rename(target)
        except OSError:
            return False
    return True


def _write(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def _write_lines(path: Path, models: Iterable[BaseModel]) -> None:
    _write(path, "".join(f"{model.model_dump_json()}\n" for model in models))


def _read_lines(path: Path, model: type[Model]) -> Iterator[Model]:
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        yield model.model_validate_json(line)
