"""Waiting for the end of trainings on the cluster, and having their results in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from det_native.client import rendering
from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.client.waiting import interrupt_is_told
from det_native.errors import ArgumentError, DetError, MasterError, NotFoundError, shown_alone
from det_native.runtime import active_host


def wait_for_result(experiment: Experiment, show: Show) -> None:
    """Wait for the end of a training call under its live view; then its result is in place.

    Raises
    ------
    DetError
        If it has failed, or its result does not fit.
    KeyboardInterrupt
        If the waiting was interrupted, or the user wants the training left running.
    """
    later = "wait() waits for its end and brings its result."
    try:
        with interrupt_is_told():
            experiment.wait(show=show)
    except KeyboardInterrupt:
        sentence = f"Experiment {experiment.id} goes on. det.last_experiment().{later}"
        raise shown_alone(KeyboardInterrupt(sentence)) from None
    except MasterError as error:
        _add(error, f"Experiment {experiment.id} may go on. det.experiment({experiment.id}).{later}")
        raise


def wait(*experiments: Experiment | Iterable[Experiment]) -> None:
    """Wait for trainings that run side by side, and bring their results into the objects of this process.

    Results come in the order given. Where some have failed, the first failure is raised once all have ended.

    Parameters
    ----------
    experiments : Experiment, or iterable of Experiment
        What calls with ``wait=False`` have returned.

    Raises
    ------
    ArgumentError
        If something is no experiment.
    DetError
        The first failure.
    KeyboardInterrupt
        If the waiting was interrupted; the trainings go on.

    Examples
    --------
    >>> experiments = [model.fit(x, y, epochs=5, wait=False) for model in models]
    >>> det.wait(experiments)
    """
    if active_host() is not None:
        return  # a program that runs again has the results already
    handles = [*dict.fromkeys(_handles(experiments))]
    failures: list[DetError] = []
    line = rendering.current().line_in_place()
    for count, handle in enumerate(handles):
        try:
            if not handle.state.terminal:
                line.say(f"Waiting for {_names(handles[count:])}.")
            with interrupt_is_told():
                handle.wait(show="none")
        except KeyboardInterrupt:
            rest = _names(handles[count:])
            sentence = f"{rest.capitalize()} may go on. det.wait() waits again and brings the results."
            raise shown_alone(KeyboardInterrupt(sentence)) from None
        except DetError as failure:
            if _add(failure, f"{_names(handles[count:]).capitalize()} may go on. det.wait() waits again."):
                raise  # the others would not be heard of either
            failures.append(failure)
    if handles:
        line.say(f"{_names(handles).capitalize()} ended{f', {len(failures)} failed' if failures else ''}.")
    if failures:
        raise failures[0]


def _handles(given: Iterable[Any]) -> Iterator[Experiment]:
    for argument in given:
        if isinstance(argument, Experiment):
            yield argument
        elif isinstance(argument, Iterable) and not isinstance(argument, str | bytes | dict):
            yield from _handles(argument)
        else:
            raise ArgumentError(
                f"det.wait() takes experiments, not {argument!r}: what fit(..., wait=False) returns, "
                "context.experiment, or det.experiment(7)."
            )


def _names(handles: list[Experiment]) -> str:
    numbers = ", ".join(str(handle.id) for handle in handles)
    return f"experiment{'s' if len(handles) > 1 else ''} {numbers}"


def _add(error: DetError, sentence: str) -> bool:
    """Say what can be done later in an error that tells that the master does not answer; return whether it is one."""
    away = isinstance(error, MasterError) and not isinstance(error, NotFoundError)
    if away and len(error.args) == 1:
        error.args = (f"{error.args[0]}\n{sentence}",)
    return away
