"""What the ``init()`` of every framework does: settings checked, a context begun, a call that is run or submitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from det_native.capture.calls import note_call
from det_native.capture.log import CallRecord, current_log, running_execution
from det_native.client import ended
from det_native.client.addresses import named_master
from det_native.client.last import note_begun
from det_native.errors import DetError, of_the_users
from det_native.experimental.directory import working_directory
from det_native.experimental.origin import Origin
from det_native.experimental.settings import ConfigInput, Settings, as_written, check_before_fit, has_seed
from det_native.own_time import own_time
from det_native.process.streams import current_streams, encoded
from det_native.runtime import ProgramHost
from det_native.schema.environment import TrialEnvironment
from det_native.schema.loading import names
from det_native.schema.manifests import Framework
from det_native.schema.sampling import first_hyperparameters, trial_seeds

if TYPE_CHECKING:
    from det_native.client.handles import Experiment
    from det_native.experimental.early_contents import EarlyContents


@dataclass
class Begun:
    """Where ``init()`` was called: the execution of the notebook, and the place in the program.

    `early` is what the notebook's variables held then, None where the training is here; `streams` the states of the
    streams of random numbers, encoded.
    """

    execution: int | None
    record: CallRecord | None
    early: EarlyContents | None = None
    streams: bytes = b""

    @classmethod
    def now(cls) -> Begun:
        """Note the call of ``init()`` that is being made."""
        record = note_call("init")
        working_directory.leave()
        return cls(running_execution(), record)

    def origin(self, record: CallRecord | None) -> Origin:
        """Return where a training call comes from."""
        executions = () if self.execution is None else (self.execution,)
        return Origin(record, executions, self.record, self.early, self.streams)


def first_environment(settings: Settings, framework: Framework) -> TrialEnvironment:
    """Return the facts of the experiment's first trial, as far as they are known before the training call.

    Raises
    ------
    ConfigurationError, UnsupportedFeatureError
        If the configuration cannot be used, whatever the call says.
    MasterUnreachableError
        If a master is named and does not answer.
    """
    complete = check_before_fit(settings, framework)
    if not settings.place.local and named_master(settings.master_url):
        from det_native.client.connect import connect

        connect(settings.master_url)  # a wrong address is told now, not when the model has been built
    # Seed and hyperparameters are those of the experiment's first trial on the cluster.
    return _first_trial(complete)


def replayed_environment(host: ProgramHost, config: ConfigInput) -> TrialEnvironment:
    """Return the facts for an ``init()`` of a program that is run again: the trial's, for the one that began it.

    Another ``init()`` of the program gets what it asks for itself, so that the code after it finds its hyperparameters.
    """
    if host.owns_init():
        if host.role == "worker":
            seed_streams(host.environment)
            host.set_streams_of_init()
        return host.environment
    complete = as_written(config)
    # The sample is the one that the notebook has seen. The seed of models to come stays the trial's.
    return replace(_first_trial(complete), trial_seed=host.environment.trial_seed)


def names_metric(config: ConfigInput, environment: TrialEnvironment) -> bool:
    """Return whether the user has said by which metric trials are compared, here or in what was submitted."""
    if environment.metric not in ("loss", "val_loss"):
        return True  # none that a call fills in
    try:
        return names(config, "searcher.metric")
    except (DetError, OSError):  # a file of the kernel's machine
        return True


def _first_trial(config: dict[str, Any]) -> TrialEnvironment:
    seed = next(trial_seeds(config["reproducibility"]["experiment_seed"] or 0))
    hparams = first_hyperparameters(config["hyperparameters"], config["searcher"]["name"], seed)
    return TrialEnvironment(config=config, hparams=hparams, trial_seed=seed)


def seed_streams(environment: TrialEnvironment) -> None:
    """Seed the global streams of random numbers with the trial's seed."""
    from det_harness.trial import rng

    rng.seed_process(environment.trial_seed)


def enter(settings: Settings, environment: TrialEnvironment, begun: Begun) -> None:
    """Say where the code trains, be in the folder that is sent, and seed what is to be drawn from the trial's seed.

    That is all that draws, where the configuration has a seed. Else the streams go on from where the program has
    brought them, as they do without `init()`; only what has no state yet that can be saved begins.
    """
    from det_harness.trial import rng

    if not settings.place.local:  # a training here has what is here
        from det_native.experimental.early_contents import EarlyContents

        log = current_log()
        begun.early = EarlyContents(log.shell.user_ns if log is not None else None, begun.record)
    if has_seed(settings):
        seed_streams(environment)
    else:
        rng.begin(environment.trial_seed)
    begun.streams = encoded(current_streams())
    if settings.place.notice:
        print(settings.place.notice)
    if settings.context_dir is not None:
        working_directory.enter(settings.context_dir)


@dataclass(frozen=True)
class NotedCall:
    """A training call that was made."""

    kind: str
    record: CallRecord | None

    @classmethod
    def now(cls, kind: str) -> NotedCall:
        """Note the training call that is being made."""
        record = note_call(kind)
        working_directory.leave()
        return cls(kind, record)

    def again(self) -> CallRecord | None:
        """Return where the call was made; if another cell runs by now, that is where it takes effect: noted anew."""
        running = running_execution()
        if self.record is None or running is None or running == self.record.running:
            return self.record
        return NotedCall.now(self.kind).record


#: Makes a framework's own handle of an experiment, for a call.
HandleOf: TypeAlias = "Callable[[Any, Experiment], Experiment]"


def train_by_fit(
    call: Any,
    settings: Settings,
    begun: Begun,
    handle_of: HandleOf | None = None,
    fit_here: Callable[[Any, Settings, Origin], Any] | None = None,
) -> Any:
    """Run what a call of ``fit()`` or ``train_and_evaluate()`` asks for; the result is what the user's call returns.

    Parameters
    ----------
    call : FitCall, TorchCall or EstimatorCall
    settings : Settings
    begun : Begun
        Where ``init()`` was called.
    handle_of : callable, optional
        Makes the handle of what was submitted; a plain one by default.
    fit_here : callable, optional
        Trains in this process.
    """
    if call.quiet:
        settings = replace(settings, show="none")
    record = NotedCall.now(call.kind).record
    wait_for_earlier(call, settings)
    origin = begun.origin(record)
    if not settings.place.local or fit_here is None:
        __tracebackhide__ = True
        experiment = submit(call, settings, origin, handle_of)
        wait_for(experiment, call, settings)
        return experiment
    try:
        return fit_here(call, settings, origin)
    except Exception as error:  # noqa: BLE001 (raised again)
        __tracebackhide__ = True
        raise of_the_users(error)


def submit(call: Any, settings: Settings, origin: Origin, handle_of: HandleOf | None = None) -> Experiment:
    """Submit a call of ``fit()`` or of a loop, and return its experiment at once; see :func:`wait_for`."""
    __tracebackhide__ = True
    with own_time():
        return _submit(call, settings, origin, handle_of)


def _submit(call: Any, settings: Settings, origin: Origin, handle_of: HandleOf | None) -> Experiment:
    from det_harness.frameworks.base import harness_for

    from det_native.capture import submitted
    from det_native.experimental.cluster import master_name, submit_fit

    experiment = submit_fit(call, settings, origin)
    if handle_of is not None:
        experiment = ended.pass_on(experiment, handle_of(call, experiment))
    submitted.note(origin.record, experiment, master_name(settings))
    call.context.experiment = experiment
    note_begun(experiment)
    harness_for(call).build(call)
    harness_for(call).note_names(call)  # as it is on the worker when the training begins
    return experiment


def wait_for_earlier(call: Any, settings: Settings) -> None:
    """Wait for trainings of a call's models that ``wait=False`` has left running: the call goes on from their end."""
    __tracebackhide__ = True
    for experiment in ended.to_come_for(getattr(call, "models", ())):
        from det_native.home.waiting import wait_for_result

        print(f"This call goes on from experiment {experiment.id}, which trains the same model: waiting for its end.")
        wait_for_result(experiment, settings.show)


def wait_for(experiment: Experiment, call: Any, settings: Settings) -> None:
    """Wait for the end of a call that was submitted, unless it or its ``init()`` says ``wait=False``.

    Raises
    ------
    DetError
        If it has failed, or its result does not fit.
    KeyboardInterrupt
        If the waiting was interrupted; the training goes on.
    """
    __tracebackhide__ = True
    wait = getattr(call, "wait", None)
    if settings.wait if wait is None else wait:
        from det_native.home.waiting import wait_for_result

        wait_for_result(experiment, settings.show)
