"""Loops of the user's own in this process, and calls of ``fit()`` of PyTorch."""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from det_native.errors import of_the_users
from det_native.experimental.cell_end import at_the_end
from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.samples import config_of_call, sample_of_call
from det_native.experimental.proof import note_trained
from det_native.experimental.settings import Settings
from det_native.runtime import Later
from det_native.schema.environment import Ranks

if TYPE_CHECKING:
    from det_native.client.handles import Experiment
    from det_native.experimental.origin import Origin
    from det_native.loops.call import TrainingCall
    from det_native.pytorch.native_call import TorchCall


class LoopError(Exception):
    """An exception in the body of the loop ended the training; it is shown where the loop ran."""


def fit_torch_here(call: TorchCall, settings: Settings, origin: Origin) -> Experiment:
    """Train here, to the end, and return the handle.

    Ctrl-C ends the training with a checkpoint.
    """
    experiment = _begun(call, settings, origin)
    experiment.run()
    return experiment.handle


def batches_here(call: TrainingCall, settings: Settings, origin: Origin) -> Iterator[Any]:
    """Return the batches, or epochs, of a training here; the experiment ends with them, or when the loop is left.

    Parameters
    ----------
    call : TrainingCall
        Of ``train`` or ``epochs``.
    """
    batches = _batches(call, settings, origin)
    _close_at_the_end(batches)
    return batches


def _batches(call: TrainingCall, settings: Settings, origin: Origin) -> Generator[Any, None, None]:
    from det_harness.frameworks.base import harness_of

    try:
        with _begun(call, settings, origin).running() as run:
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


def _begun(call: TrainingCall, settings: Settings, origin: Origin) -> LocalExperiment:
    """Return the experiment of a call."""
    note_trained(call)
    config = config_of_call(settings, call)
    sample = sample_of_call(config, call)
    complete = replace(
        call.context.env, config=config.model_dump(mode="json"), hparams=sample.hparams, ranks=Ranks(size=1)
    )
    call.check(complete)
    steps = call.steps_per_epoch(complete)
    experiment = LocalExperiment(call.kind, call, config, call.framework, settings, origin, sample, steps)
    call.context.experiment = Later(lambda: experiment.handle)
    return experiment
