"""Trainings in loops of the user's own, which begin when a loop asks for its first pass: here, on the cluster."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from det_native.callsite import asking_frame
from det_native.experimental.cell_end import at_the_end
from det_native.experimental.native import Begun, NotedCall, names_metric, submit, wait_for, wait_for_earlier
from det_native.experimental.settings import ConfigInput, Settings, complete_for_fit
from det_native.runtime import ProgramHost
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.loading import load_config
from det_native.schema.sampling import sample_hyperparameters
from det_native.trial import Role

if TYPE_CHECKING:
    from det_native.client.handles import Experiment
    from det_native.loops.call import TrainingCall


class LoopHandlers(TypedDict):
    """What a context with loops is made with.

    Attributes
    ----------
    on_train : callable
        Takes a checked call; its result begins the training, and returns what the loop goes over.
    length_of : callable
        Returns the batches of such a call's training.
    """

    on_train: Callable[[TrainingCall], Callable[[], Iterator[Any]]]
    role: Role
    length_of: Callable[[TrainingCall], int]


def loops_of(settings: Settings, begun: Begun) -> LoopHandlers:
    """Return what a context of ``init()`` trains loops with."""
    return {
        "on_train": partial(_train, settings=settings, begun=begun),
        "role": "local" if settings.place.local else "cluster",
        "length_of": partial(_length, settings=settings),
    }


def replayed_loops(host: ProgramHost, config: ConfigInput) -> LoopHandlers:
    """Return the same in a program that is run again for a trial."""
    return {
        "on_train": lambda call: host.take_loop("train", call),
        "role": host.role,
        "length_of": partial(_length_replayed, environment=host.environment, config=config),
    }


def note_replayed(context: Any, config: ConfigInput) -> None:
    """Tell a context of such a program what the notebook's has known."""
    from det_harness.program.null_handle import NullHandle

    context.metric_said = names_metric(config, context.env)
    # What stands behind a loop may ask for it: behind one without batches here, or one that was left.
    context.experiment = NullHandle("context.train()")


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


def _train(call: TrainingCall, settings: Settings, begun: Begun) -> Callable[[], Iterator[Any]]:
    """Return what begins a loop."""
    noted = NotedCall.now("train")
    beginning = _Beginning(call, settings, begun, noted)
    reference = weakref.ref(beginning)

    def tell() -> None:
        from det_native.loops.batches import WORDS

        waiting = reference()
        if waiting is not None and not waiting.asked:  # batches without a name tell it themselves, when they are gone
            print(f"{waiting.call.name}(): {WORDS[waiting.call.name].not_begun}")

    at_the_end(tell)
    return beginning


@dataclass(eq=False)
class _Beginning:
    """Begins a loop when it asks for its first batch: here it gets all batches, none for the cluster.

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
            from det_harness.frameworks.base import harness_for

            harness_for(call).begin_loop(call.context, asking_frame())
            return _no_batches(submit(call, settings, origin), call, settings)
        from det_native.experimental.local.loops import batches_here

        return batches_here(call, settings, origin)


def _no_batches(experiment: Experiment, call: TrainingCall, settings: Settings) -> Iterator[Any]:
    """Give no batches here, and end with the training."""
    __tracebackhide__ = True
    wait_for(experiment, call, settings)
    yield from ()
