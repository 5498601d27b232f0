"""A script that runs anywhere and reports by the Core API: a run in its process, which a master records."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from det_native.core.cluster_info import ClusterInfo, TrialInfo, set_info
from det_native.errors import ArgumentError, MasterError, NotRecordedError
from det_native.experimental.arguments import Place
from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.output import copied_output
from det_native.experimental.local.samples import Sample
from det_native.experimental.origin import Origin
from det_native.experimental.settings import Settings
from det_native.kernel_runs.folder import records
from det_native.schema.config import ExperimentConfig
from det_native.schema.kernel_runs import KernelRun
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.sampling import sample_hyperparameters, trial_seeds
from det_native.schema.states import ExitReason
from det_native.schema.storage_config import Address

if TYPE_CHECKING:
    from det_harness.local.run import LocalTrial
    from det_harness.trial.report import SpoolReporter

    from det_native.client.session import Session
    from det_native.core.context import Context
    from det_native.core.distributed import DistributedContext
    from det_native.experimental.local.progress import Observe

_NO_PROGRAM = "the script runs by itself, and reports only"


class UnmanagedRun(LocalExperiment):
    """The run of a script.

    Parameters
    ----------
    config : ExperimentConfig
        Complete.
    master_url : str or None
        The master that the script has named.
    external : str
        By what the training is known outside; empty for a new one.
    """

    def __init__(self, config: ExperimentConfig, master_url: str | None, external: str) -> None:
        config = config.with_some_seed()
        seed = next(trial_seeds(config.reproducibility.experiment_seed or 0))
        sample = Sample(sample_hyperparameters(config.hyperparameters, seed), seed)
        self._external = external
        settings = Settings(config=None, place=Place(local=True, test=False), master_url=master_url, show="none")
        super().__init__("init", None, config, "core", settings, _Script(None), sample)
        self._resume: CheckpointManifest | None = None

    @property
    def number(self) -> int:
        """The number of the experiment; 0 where nobody records it."""
        numbers = None if self._recording is None else self._recording.numbers
        return 0 if numbers is None else numbers.experiment_id

    def record(self) -> None:
        """Have the master record the run before it begins, since an earlier one may have saved what it continues from.

        Raises
        ------
        NotRecordedError
            If no master can be reached.
        """
        if self._recording is None:
            return
        self._recording.begun.set()
        try:
            self._resume = self._recording.wait().resume
        except MasterError as error:
            shutil.rmtree(self._folder.path, ignore_errors=True)
            reason = self._recording.reason.rstrip(".")
            raise NotRecordedError(f"The training does not begin, since no master has it: {reason}.") from error

    def session(self) -> Session:
        """Return the user's session with the master that records it."""
        assert self._recording is not None
        return self._recording.session()

    @property
    def place(self) -> Address:
        """Where its checkpoints go."""
        return self._place

    @property
    def info(self) -> ClusterInfo:
        """What ``det.get_cluster_info()`` is."""
        recording, environment = self._recording, self._environment
        numbers = None if recording is None else recording.numbers
        resume = self._resume
        return ClusterInfo(
            master_url="" if recording is None or numbers is None else recording.session().url,
            task_id=self._folder.run_id,
            allocation_id=self._folder.run_id,
            session_token=self._folder.token,
            latest_checkpoint=None if resume is None else resume.uuid,
            trial_info=TrialInfo(
                trial_id=0 if numbers is None else numbers.trial_id,
                experiment_id=0 if numbers is None else numbers.experiment_id,
                trial_seed=environment.trial_seed,
                hparams=dict(environment.hparams),
                config=environment.config,
                steps_completed=0 if resume is None else resume.batch,
                trial_run_id=self._folder.run_id,
            ),
        )

    def _request(self, why_no_program: str) -> KernelRun:
        named = {"external": self._external} if self._external else {}
        return super()._request(why_no_program).model_copy(update=named)

    def _trial(self, reporter: SpoolReporter, observe: Observe | None) -> LocalTrial:
        trial = super()._trial(reporter, observe)
        trial["own_script"] = True
        trial["resume"] = self._resume
        return trial

    @contextmanager
    def _kept_output(self, reporter: SpoolReporter) -> Iterator[None]:
        """Keep what the script prints; its files are its own."""
        if self._recording is None:
            yield
            return
        with copied_output(self._folder.path / "output.log"):
            yield

    def _reason_of(self, error: BaseException) -> ExitReason:
        return ExitReason.STOPPED if isinstance(error, KeyboardInterrupt) else super()._reason_of(error)


class _Script(Origin):
    """Where no code is captured."""

    def why_no_program(self) -> str:
        """Return why."""
        return _NO_PROGRAM


def external_name(experiment: str | None, trial: str | None) -> str:
    """Return by what a training is known outside; empty where nobody has named the trial.

    Raises
    ------
    ArgumentError
        If only the trial is named.
    """
    if trial is None:
        return ""
    if experiment is None:
        raise ArgumentError(f"external_trial_id={trial!r} needs external_experiment_id=, the name that it belongs to.")
    return json.dumps([str(experiment), str(trial)])


def begin(run: UnmanagedRun, distributed: DistributedContext | None = None, **modes: Any) -> Context:
    """Return the context of a run that begins; it ends when the context is closed."""
    from det_harness.core.context import core_context

    if records():
        run.record()
    stack = ExitStack()
    local = stack.enter_context(run.running())
    if distributed is not None:
        distributed.broadcast((run.info, run.place))
    _known(stack, run.info)

    def close(error: BaseException | None) -> None:
        local.outcome = context.run.outcome()
        try:
            stack.__exit__(type(error) if error is not None else None, error, getattr(error, "__traceback__", None))
        except BaseException as raised:
            if raised is not error:  # that one is on its way to the user already
                raise

    context = core_context(local.services, run.info, distributed=distributed, on_close=close, **modes)
    return context


def begin_beside(distributed: DistributedContext, **modes: Any) -> Context:
    """Return the context of another process than the first one, which reports for all."""
    from det_harness.core.context import core_context
    from det_harness.core.local import local_services

    info, place = distributed.broadcast(None)
    stack = ExitStack()
    _known(stack, info)
    services = local_services(*place, ranks=distributed.ranks)
    return core_context(services, info, distributed=distributed, on_close=lambda error: stack.close(), **modes)


def _known(stack: ExitStack, info: ClusterInfo) -> None:
    """Have ``det.get_cluster_info()`` give this until the end of a stack."""
    stack.callback(set_info, set_info(lambda: info))
