"""Waiting for a training whose weights are needed, and putting them into the objects of this process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from det_native.capture.log import current_log
from det_native.client import rendering
from det_native.client.handles import Experiment
from det_native.client.keras_experiment import KerasExperiment, give_history
from det_native.client.loaded import joined, loaded_sentence, note_loaded_into
from det_native.client.rendering import LineInPlace
from det_native.client.waiting import interrupt_is_told, patiently
from det_native.errors import CheckpointCorruptError, DetError, MasterError, NotFoundError, shown_shortly
from det_native.pending import lost, registry
from det_native.pending.naming import names_of
from det_native.pending.registry import PendingTraining
from det_native.pending.trained import note_trained


def bring_home(training: PendingTraining, again: str) -> None:
    """Wait for the end of a training, and put its weights into the objects that were submitted.

    What can never come is said once: from then on the weights are those that are here.

    Parameters
    ----------
    training : PendingTraining
    again : str
        How to come back to it once the waiting was interrupted.

    Raises
    ------
    DetError
        If the experiment has failed, was stopped or deleted, or its weights do not fit.
    KeyboardInterrupt
        If the waiting was interrupted; the experiment goes on.
    """
    if training.is_overwritten():
        registry.end(training)
        return
    experiment, names = training.experiment, names_of(training.call.models)
    name = next(filter(None, names), "")
    line = rendering.current().line_in_place()
    try:
        _wait(training, names, line)
        _load(training)
    except KeyboardInterrupt:
        what = f"Experiment {experiment.id} goes on. {again}, or call det.forget({name or 'model'}) to go on without "
        raise shown_shortly(KeyboardInterrupt(f"{what}its weights.")) from None
    except MasterError as error:
        if isinstance(error, NotFoundError):
            registry.end(training)
            raise _with(error, _kept(name)) from None
        where = f"det.forget({name or 'model'}) goes on with the weights that are here"
        raise _with(error, f"`{name or 'model'}` needs the weights of experiment {experiment.id}; {where}.") from None
    except DetError as error:
        registry.end(training)
        damaged = isinstance(error, CheckpointCorruptError)  # and it says what there is instead
        raise _with(error, _kept(name) if damaged else _remedy(experiment, name)) from None
    if isinstance(experiment, KerasExperiment):
        give_history(training.call.model, experiment)
    note_loaded_into(experiment, names)
    rendering.current().renew(experiment)
    line.say(f"Experiment {experiment.id}: {loaded_sentence(names)}.{_of_one_slot(training)}")


def _of_one_slot(training: PendingTraining) -> str:
    """Return a sentence for code on several slots: what it counts is one slot's share."""
    slots = training.call.context.env.slots
    if not training.counted or slots == 1:
        return ""
    return f" What its code has counted is the share of the first of {slots} slots; reported metrics are of all."


def _wait(training: PendingTraining, names: Sequence[str], line: LineInPlace) -> None:
    """Wait for the end of a training; a line says so, and how to stop waiting."""
    experiment = training.experiment
    if patiently(experiment.source, experiment.detail, line.say).state.terminal:
        experiment.wait(show="none")
        return
    models = [f"`{name}`" for name in names if name] or ["a model"]
    need = f"{joined(models)} need{'s' if len(models) == 1 else ''}"
    line.say(
        f"Waiting for experiment {experiment.id}, whose weights {need}. To stop waiting, interrupt the cell (Ctrl-C or "
        "the stop button): the experiment goes on."
    )
    try:
        with interrupt_is_told():
            experiment.wait(show=training.show)
    except BaseException:
        line.say(f"No longer waiting for experiment {experiment.id}.")
        raise


def _load(training: PendingTraining) -> None:
    from det_native.client.loading_into import detail_of
    from det_native.pending.loading import load_state

    experiment, objects, loop = training.experiment, training.objects(), training.loop
    awaited = training.awaited()
    if training.created and detail_of(experiment.source, experiment.id).created != training.created:
        raise NotFoundError(
            f"Experiment {experiment.id} is not there any more, so its weights cannot be loaded: another one has "
            "its number now."
        )
    checkpoint = load_state(experiment, training.call)
    training.counted = loop is not None and loop.brought
    objects |= training.objects()
    registry.end(training)
    if loop is not None:
        lost.note(experiment.id, {name: f"is {what}" for name, what in loop.unkept.items()} | loop.lost)
    if checkpoint is not None:
        note_trained(experiment, training.call, checkpoint)
    log = current_log()
    if log is not None and training.execution is not None:
        log.note_loaded(training.execution, objects, awaited)


def _remedy(experiment: Experiment, name: str) -> str:
    """Return what to do without the weights that training was to give."""
    best = None
    with suppress(DetError):
        best = experiment.top_checkpoint()
    sentence = _kept(name)
    if best is not None:
        call = f"det.experiment({experiment.id}).checkpoint({best.uuid[:8]!r}).load()"
        sentence += f" Its best checkpoint is {best.uuid[:8]}: {call}."
    return sentence


def _kept(name: str) -> str:
    return (
        f"`{name or 'model'}` keeps the weights that it has here: run this again to go on with them. Nothing waits for "
        f"weights after det.forget({name or 'model'}), or with `weights: stay` in the configuration."
    )


def _with(error: DetError, advice: str) -> DetError:
    """Return an error with a sentence more."""
    if len(error.args) == 1:
        error.args = (f"{error.args[0]}\n{advice}",)
    return error
