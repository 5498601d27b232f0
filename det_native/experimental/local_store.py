"""Where runs in this process are kept: ``DET_HOME/local/<n>/``, in the REST models' own form.

::

    local/3/experiment.json         rest.ExperimentDetail
    local/3/run.lock                held while the run goes on
    local/3/trials/1/trial.json     rest.Trial
    local/3/trials/1/training.jsonl, validation.jsonl    rest.MetricRow, one a line
    local/3/trials/1/checkpoints.jsonl                   rest.Checkpoint, one a line
    local/3/trials/1/files/<uuid>/  the checkpoints
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel

from det_native.client.source import Source
from det_native.errors import CheckpointError, NotFoundError, UnsupportedFeatureError
from det_native.schema import rest
from det_native.schema.home import Home
from det_native.schema.states import ExperimentState, TrialState

Model = TypeVar("Model", bound=BaseModel)
Loader = Callable[[rest.Checkpoint, Path], Any]

PREFIX = "local-"


def now() -> str:
    """Return the present time as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class LocalStore:
    """The folder of one local experiment.

    Parameters
    ----------
    folder : Path
        ``DET_HOME/local/<n>``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls) -> LocalStore:
        """Make the folder of a new experiment, with the next number."""
        root = _root()
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            number = max((int(each.name) for each in root.iterdir() if each.name.isdigit()), default=0) + 1
            try:
                (root / str(number)).mkdir(mode=0o700)
            except FileExistsError:  # another kernel took the number at the same moment
                continue
            return cls(root / str(number))

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
        if not number.isdigit() or not (folder / "experiment.json").is_file():
            raise NotFoundError(f"There is no local experiment {experiment_id!r} in {_root()}.")
        return cls(folder)

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

    def write_rows(self, trial_id: int, kind: str, rows: Iterable[rest.MetricRow]) -> None:
        """Replace a trial's rows of metrics."""
        _write_lines(self.trial_folder(trial_id) / f"{kind}.jsonl", rows)

    def write_checkpoints(self, trial_id: int, checkpoints: Iterable[rest.Checkpoint]) -> None:
        """Replace what is known of a trial's checkpoints."""
        _write_lines(self.trial_folder(trial_id) / "checkpoints.jsonl", checkpoints)

    def experiment(self) -> rest.ExperimentDetail:
        """Return the experiment; one whose process died without a word ended in state ERROR."""
        detail = rest.ExperimentDetail.model_validate_json((self.folder / "experiment.json").read_bytes())
        if detail.state.terminal or self._running():
            return detail
        error = rest.UserErrorInfo(type="Died", message="The process of this local run ended in the middle.", traceback="")
        return detail.model_copy(update={"state": ExperimentState.ERROR, "error": error})

    def trials(self) -> list[rest.Trial]:
        """Return the trials, oldest first."""
        numbers = sorted(int(each.parent.name) for each in self.folder.glob("trials/*/trial.json"))
        return [rest.Trial.model_validate_json(self._of_trial(number, "trial.json").read_bytes()) for number in numbers]

    def rows(self, trial_id: int, kind: str) -> list[rest.MetricRow]:
        """Return a trial's rows of metrics."""
        return list(_read_lines(self._of_trial(trial_id, f"{kind}.jsonl"), rest.MetricRow))

    def checkpoints(self, trial_id: int) -> list[rest.Checkpoint]:
        """Return a trial's checkpoints, oldest first."""
        return list(_read_lines(self._of_trial(trial_id, "checkpoints.jsonl"), rest.Checkpoint))

    def _of_trial(self, trial_id: int, name: str) -> Path:
        return self.folder / "trials" / str(trial_id) / name

    def _running(self) -> bool:
        lock = FileLock(self.folder / "run.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
        return False


class LocalSource(Source):
    """Facts of one local experiment, for the handles.

    Parameters
    ----------
    store : LocalStore
    loader : callable, optional
        Rebuilds the user's model for a checkpoint; only the process that ran the experiment has it.
    """

    def __init__(self, store: LocalStore, loader: Loader | None = None) -> None:
        self._store = store
        self._loader = loader

    def experiment(self, experiment_id: int | str) -> rest.ExperimentDetail:
        """Return the experiment as it is now."""
        return self._store.experiment()

    def trials(self, experiment_id: int | str) -> list[rest.Trial]:
        """Return the experiment's trials, oldest first."""
        return self._store.trials()

    def trial(self, trial_id: int) -> rest.Trial:
        """Return the trial as it is now."""
        for trial in self._store.trials():
            if trial.id == trial_id:
                return trial
        raise NotFoundError(f"Experiment {self._store.id} has no trial {trial_id}.")

    def metrics(self, trial_id: int, kind: str, after_batch: int = 0) -> list[rest.MetricRow]:
        """Return all rows of a kind after a batch."""
        return [row for row in self._store.rows(trial_id, kind) if row.batch > after_batch or not after_batch]

    def checkpoints(
        self, *, experiment_id: int | str | None = None, trial_id: int | None = None
    ) -> list[rest.Checkpoint]:
        """Return the checkpoints that exist, oldest first."""
        trials = [trial.id for trial in self._store.trials()] if trial_id is None else [trial_id]
        return [checkpoint for trial in trials for checkpoint in self._store.checkpoints(trial)]

    def logs(self, trial_id: int, after: int = 0) -> list[rest.LogLine]:
        """Return nothing: a local run prints where it runs."""
        return []

    def events(self, experiment_id: int | str, after: int = 0) -> Iterator[rest.Event]:
        """Yield one event, at the end of the run; blocks while another process runs it."""
        with self._store.lock:
            detail = self._store.experiment()
        experiment = rest.Experiment.model_validate(detail.model_dump(exclude={"report"}))
        yield rest.Event(
            id=after + 1,
            type="experiment",
            experiment_id=self._store.number,
            trial_id=None,
            data=experiment.model_dump(mode="json"),
        )

    def kill(self, experiment_id: int | str) -> None:
        """End nothing: a local run ends with Ctrl-C where it runs.

        Raises
        ------
        UnsupportedFeatureError
            If the run goes on, in another process.
        """
        if not self._store.experiment().state.terminal:
            raise UnsupportedFeatureError(
                f"Experiment {self._store.id} runs in another process on this machine; interrupt it there (Ctrl-C)."
            )

    def download(self, checkpoint: rest.Checkpoint, directory: Path) -> None:
        """Copy the checkpoint's files, verified, into an existing empty directory."""
        from det_harness.load import copy_checkpoint

        copy_checkpoint(checkpoint, directory)

    def load(self, checkpoint: rest.Checkpoint, directory: Path) -> Any:
        """Rebuild the user's model and load the downloaded checkpoint into it.

        Raises
        ------
        CheckpointError
            In another process than the one that ran the experiment: a local run keeps no copy of the code.
        """
        if self._loader is None:
            raise CheckpointError(
                f"Experiment {self._store.id} ran in another process, and a local run keeps no copy of the code. "
                "checkpoint.download() has the weights."
            )
        return self._loader(checkpoint, directory)

    def bundle(self, experiment_id: int | str) -> Any:
        """Say that there is none.

        Raises
        ------
        UnsupportedFeatureError
            Always: a local run sends no program.
        """
        raise UnsupportedFeatureError(
            f"Experiment {self._store.id} ran in a process of this machine; only what was submitted has a program to write."
        )

    def blob(self, sha256: str) -> bytes:
        """Say that there is none.

        Raises
        ------
        NotFoundError
            Always: a local run sends nothing.
        """
        raise NotFoundError(f"Experiment {self._store.id} is local and has no blob {sha256}.")


def trial_row(store: LocalStore, trial_id: int, hparams: dict[str, Any], seed: int, target: int) -> rest.Trial:
    """Return a trial that begins now."""
    return rest.Trial(
        id=trial_id,
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


def _root() -> Path:
    return Home.default().path / "local"


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
    for line in path.read_text().splitlines():
        yield model.model_validate_json(line)
