"""``det.experimental.pytorch`` in this process: a call of ``fit()``, or the batches of a loop over ``train()``."""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from det_native.callsite import asking_frame
from det_native.client.handles import Experiment
from det_native.errors import of_the_users
from det_native.experimental.cell_end import at_the_end
from det_native.experimental.local.calls import after_search, search_of
from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.samples import Sample, config_of_call, sample_of_call, searches
from det_native.experimental.local.search import LocalSearch
from det_native.experimental.proof import note_trained
from det_native.experimental.settings import Settings
from det_native.schema.environment import Ranks

if TYPE_CHECKING:
    from det_native.experimental.origin import Origin
    from det_native.pytorch.native_call import TorchCall
    from det_native.pytorch.training_call import TrainingCall

_ELSEWHERE = (
    "{}(): the body of this loop has run in processes of its own, and not here: the wrapped models are trained, and "
    "its variables are as it left them there."
)
_SEARCHED = "{}(): the body of this loop runs in a process of its own for each trial of the search, and not here."


class LoopError(Exception):
    """An exception in the body of the loop ended the training; it is shown where the loop ran."""


def fit_torch_here(call: TorchCall, settings: Settings, origin: Origin) -> Experiment:
    """Train here, to the end, and return the handle.

    Ctrl-C ends the training with a checkpoint.

    Parameters
    ----------
    call : TorchCall
    settings : Settings
    origin : Origin
    """
    experiment, sample, steps, search = _begun(call, settings, origin)
    if search is not None:
        return after_search(search.run(experiment, steps), call.kind)
    with experiment.running():
        experiment.run_trial(sample, steps)
    return experiment.handle


def batches_here(call: TrainingCall, settings: Settings, origin: Origin) -> Iterator[Any]:
    """Return the batches, or epochs, of a training here; the experiment ends with them, or when the loop is left.

    A training on several slots gives none: the loop's body runs in processes of its own, as on the cluster.

    Parameters
    ----------
    call : TrainingCall
        Of ``train`` or ``epochs``.
    settings : Settings
    origin : Origin
    """
    batches = _batches(call, settings, origin)
    _close_at_the_end(batches)
    return batches


def _batches(call: TrainingCall, settings: Settings, origin: Origin) -> Generator[Any, None, None]:
    from det_harness.frameworks.base import harness_of
    from det_harness.frameworks.torch.call_snapshot import begin_loop

    try:
        experiment, sample, steps, search = _begun(call, settings, origin)
        if search is not None:
            print(_SEARCHED.format(call.name))
            after_search(search.run(experiment, steps), call.kind)
            return
        with experiment.running():
            if experiment.in_processes:
                begin_loop(call.context, asking_frame())
                experiment.run_trial(sample, steps)
                print(_ELSEWHERE.format(call.name))
            else:
                with experiment.trial(sample, steps) as run:
                    controller = harness_of(call.framework).loop(call, run.services)
                    try:
                        yield from controller.batches()
                    except GeneratorExit:
                        if controller.outcome is None:
                            raise LoopError(LoopError.__doc__) from None
                    run.outcome = controller.outcome
    except LoopError:
        return
    except Exception as error:  # noqa: BLE001 (raised again)
        __tracebackhide__ = True
        raise of_the_users(error)


def _close_at_the_end(batches: Generator[Any, None, None]) -> None:
    """Close batches that have a name, so that they stay when their loop is left, at the end of the cell or script."""
    reference = weakref.ref(batches)

    def close() -> None:
        open_batches = reference()
        if open_batches is not None:
            open_batches.close()

    at_the_end(close)


def _begun(
    call: TrainingCall, settings: Settings, origin: Origin
) -> tuple[LocalExperiment, Sample, int, LocalSearch | None]:
    """Return the experiment of a call, the sample of its one trial, the batches of an epoch, and its search if any."""
    note_trained(call)
    config = config_of_call(settings, call)
    search = search_of(config, settings) if searches(config, settings) else None
    sample = sample_of_call(config, call)
    slots = 1 if config.resources.native_parallel else max(config.resources.slots_per_trial, 1)
    complete = replace(
        call.context.env, config=config.model_dump(mode="json"), hparams=sample.hparams, ranks=Ranks(size=slots)
    )
    call.check(complete)
    call.context.begin_training(call.kind, in_processes=slots > 1 or search is not None)
    experiment = LocalExperiment(
        call.kind, call, config, call.framework, settings, origin, whole_epochs=True, in_processes=search is not None
    )
    call.context.experiment = experiment.handle
    return experiment, sample, call.steps_per_epoch(complete), search
