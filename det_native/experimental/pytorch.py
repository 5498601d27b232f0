"""``det.experimental.pytorch.init()``: train the PyTorch objects of a notebook or script, here or on the cluster."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from det_native.callsite import asking_frame
from det_native.client.arguments import Show
from det_native.experimental.arguments import Mode, any_documented_order
from det_native.experimental.cell_end import at_the_end
from det_native.experimental.native import (
    Begun,
    NotedCall,
    enter,
    first_environment,
    names_metric,
    replayed_environment,
    submit,
    train_by_fit,
    wait_for,
    wait_for_earlier,
)
from det_native.experimental.settings import ConfigInput, Settings, check_settings, complete_for_fit, placed
from det_native.frameworks import translated
from det_native.public_names import listed
from det_native.runtime import ProgramHost, active_host
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.loading import load_config
from det_native.schema.sampling import sample_hyperparameters

if TYPE_CHECKING:
    from det_native.client.handles import Experiment
    from det_native.experimental.origin import Origin
    from det_native.pytorch.native import PyTorchNativeContext
    from det_native.pytorch.native_call import TorchCall
    from det_native.pytorch.training_call import TrainingCall

__all__ = ["init"]
__dir__ = listed(__all__)


@any_documented_order(leading=1)
def init(
    config: ConfigInput = None,
    mode: Mode | str | None = None,
    local: bool | None = None,
    test: bool | None = None,
    context_dir: str | os.PathLike[str] = "",
    command: Sequence[str] | None = None,
    master_url: str | None = None,
    *,
    values: Iterable[str] = (),
    include: Iterable[str | os.PathLike[str]] = (),
    show: Show = "view",
    wait: bool | None = None,
) -> PyTorchNativeContext:
    """Begin an experiment with PyTorch objects of your own, trained by ``context.fit()`` or in a loop of your own.

    Calling it again, in the same kernel too, begins another experiment.

    Parameters
    ----------
    config : dict, str or path, optional
        Experiment configuration: a dictionary, YAML, or the path of a YAML file. What it does not say about length,
        batch size and metric, the call says: its epochs, the loader's batch size, ``val_loss`` (``loss`` without
        validation), with a validation after every epoch. Without it: one trial.
    mode, local, test, context_dir, command, master_url, values, include, show, wait
        See ``det.experimental.keras.init()``.

    Returns
    -------
    PyTorchNativeContext

    Raises
    ------
    ArgumentError
        If arguments contradict each other or name what does not exist.
    ConfigurationError
        Listing everything that is wrong with the configuration.
    UnsupportedFeatureError
        If the configuration asks for what comes with a later version.
    MissingDependencyError
        If PyTorch is not installed.
    MasterUnreachableError
        If a master is named and does not answer.

    Examples
    --------
    >>> context = det.experimental.pytorch.init(config, local=True)
    >>> model, optimizer, loader = context.wrap(model, torch.optim.Adam(model.parameters()), loader)
    >>> for epoch in context.epochs(5):
    ...     for x, y in loader:
    ...         optimizer.zero_grad()
    ...         loss = loss_of(model(x), y)
    ...         loss.backward()
    ...         optimizer.step()
    ...     context.report(loss=loss)
    """
    host = active_host()
    if host is not None:
        return _replayed(host, config)
    begun = Begun.now()
    settings = check_settings(config, mode, local, test, context_dir, command, master_url, values, include, show, wait)
    settings = placed(settings, "torch")
    environment = first_environment(settings, "torch")
    with translated("det.experimental.pytorch.init()"):
        from det_native.pytorch.native import PyTorchNativeContext

    context = PyTorchNativeContext(
        environment,
        on_fit=partial(train_by_fit, fit_here=_fit_here, settings=settings, begun=begun),
        on_train=partial(_train, settings=settings, begun=begun),
        role="local" if settings.place.local else "cluster",
        length_of=partial(_length, settings=settings),
    )
    enter(settings, environment, begun)
    return context


def _replayed(host: ProgramHost, config: ConfigInput) -> PyTorchNativeContext:
    """Return the context of a program that is run again for a trial."""
    from det_harness.program.null_handle import NullHandle

    from det_native.pytorch.native import PyTorchNativeContext

    environment = replayed_environment(host, config)
    context = PyTorchNativeContext(
        environment,
        on_fit=lambda call: host.take_call("fit", call),
        on_train=lambda call: host.take_loop("train", call),
        role=host.role,
        length_of=partial(_length_replayed, environment=host.environment, config=config),
    )
    context.metric_said = names_metric(config, environment)
    # What stands behind a loop may ask for it: behind one without batches here, or one that was left.
    context.experiment = NullHandle("context.train()")
    return context


def _length(call: TrainingCall, settings: Settings) -> int:
    """Return the batches of a training that is to be begun here, or on the cluster."""
    if settings.place.test:
        return 1
    config = complete_for_fit(settings, call, warn=False)
    environment = _completed(call.context.env, config)
    slots = 1 if environment.native_parallel else environment.slots
    return _batches(call, replace(environment, ranks=Ranks(size=slots)))


def _length_replayed(call: TrainingCall, environment: TrialEnvironment, config: ConfigInput) -> int:
    """Return the batches of a training in a program that is run again for a trial: of the trial's, or of another."""
    if call.context.env is not environment:
        fills = call.configuration_fills()
        complete = load_config(config, local=True, defaults=fills, framework=call.framework, warn=False)
        environment = _completed(call.context.env, complete)
    return _batches(call, environment)


def _completed(environment: TrialEnvironment, config: ExperimentConfig) -> TrialEnvironment:
    hparams = sample_hyperparameters(config.hyperparameters, environment.trial_seed) | environment.hparams
    return replace(environment, config=config.model_dump(mode="json"), hparams=hparams)


def _batches(call: TrainingCall, environment: TrialEnvironment) -> int:
    from det_harness.trial.lengths import length_in_whole_epochs

    return length_in_whole_epochs(environment, call.steps_per_epoch(environment))


def _fit_here(call: TorchCall, settings: Settings, origin: Origin) -> Any:
    from det_native.experimental.local.native_torch import fit_torch_here

    return fit_torch_here(call, settings, origin)


def _train(call: TrainingCall, settings: Settings, begun: Begun) -> Callable[[], Iterator[Any]]:
    """Return what begins a loop over ``train()``."""
    noted = NotedCall.now("train")
    beginning = _Beginning(call, settings, begun, noted)
    reference = weakref.ref(beginning)

    def tell() -> None:
        from det_native.pytorch.loop_batches import OVER_BATCHES, OVER_EPOCHS

        waiting = reference()
        if waiting is not None and not waiting.asked:  # batches without a name tell it themselves, when they are gone
            words = next(words for words in (OVER_BATCHES, OVER_EPOCHS) if words.call == waiting.call.name)
            print(f"{words.call}(): {words.not_begun}")

    at_the_end(tell)
    return beginning


@dataclass(eq=False)
class _Beginning:
    """Begins a loop over ``train()`` when it asks for its first batch: here it gets all batches, none for the cluster.

    The call was noted where it was made; where a loop of a later cell asks, it is noted once more.
    """

    call: TrainingCall
    settings: Settings
    begun: Begun
    noted: NotedCall
    asked: bool = False

    def __call__(self) -> Iterator[Any]:
        self.asked = True
        call, settings, record = self.call, self.settings, self.noted.again()
        wait_for_earlier(call, settings)
        origin = self.begun.origin(record)
        if not settings.place.local:
            from det_harness.frameworks.torch.call_snapshot import begin_loop

            begin_loop(call.context, asking_frame())
            return _no_batches(submit(call, settings, origin), call, settings)
        from det_native.experimental.local.native_torch import batches_here

        return batches_here(call, settings, origin)


def _no_batches(experiment: Experiment, call: TrainingCall, settings: Settings) -> Iterator[Any]:
    """Give no batches here, and end with the training."""
    __tracebackhide__ = True
    wait_for(experiment, call, settings)
    yield from ()
