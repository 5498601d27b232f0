"""Trials and checkpoints in a few words, out of what is known of them: nothing is asked for. Pure functions."""

from __future__ import annotations

import math
from typing import Any

from det_native.client.state_words import trial_notice, trial_word
from det_native.client.tables import plain
from det_native.past_history import as_number
from det_native.schema import rest
from det_native.schema.numbers import shown_number
from det_native.schema.states import ExperimentState
from det_native.schema.trial_names import trial_name

LONGEST = 40
_TAIL = 15
# As many of a uuid's characters as tell the checkpoints of an experiment apart, for ``experiment.checkpoint(...)``.
UUID_LENGTH = 8
MAX_METRICS = 3


def format_value(value: Any) -> str:
    """Return a metric or a hyperparameter in a few characters."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shortened(str(value))
    return shown_number(value)


def batches_of(trial: rest.Trial) -> str:
    """Return how far a trial is: ``30/2,694``, or the first alone where nobody has said how long it trains."""
    return f"{trial.batches:,}/{trial.target_batches:,}" if trial.target_batches else f"{trial.batches:,}"


def whole_percent(fraction: float) -> int:
    """Return a share in percent, from 0 to 100; never 100 before it is all done, as in the live view."""
    if not fraction > 0:
        return 0
    # 0.29 is a little less than 29 hundredths in binary.
    return 100 if fraction >= 1 else min(math.floor(fraction * 100 + 1e-9), 99)


def trial_words(
    trial: rest.Trial, metric: str, *, note: str = "", experiment: ExperimentState | None = None
) -> list[str]:
    """Return how a trial stands: state, batches and best value of the searcher's metric.

    Parameters
    ----------
    metric : str
        The searcher's; empty where it is not known.
    note : str
        Said with the state, such as for which time it is told.
    experiment : ExperimentState, optional
        The state of its experiment.
    """
    state = f"{trial_word(trial, experiment).lower()}{note}"
    words = [state, *filter(None, [trial_notice(trial)]), f"{batches_of(trial)} batches"]
    if trial.best_validation is not None:
        words.append(f"best {metric or 'validation'} {format_value(trial.best_validation)}")
    return words


def trial_short(trial: rest.Trial, metric: str) -> str:
    """Return a trial in short: ``Trial(7.2: completed, 44/44 batches, best val_loss 0.25)``.

    What goes on may have gone on since it was asked for, and is said so.
    """
    note = "" if trial.state.terminal else " when asked"
    name = trial_name(trial.experiment_id, trial.shown_number)
    return f"Trial({name}: {', '.join(trial_words(trial, _name(metric), note=note))})"


def checkpoint_short(checkpoint: rest.Checkpoint, metric: str) -> str:
    """Return a checkpoint in short: ``Checkpoint(0b2f61aa: trial 3, batch 44, val_loss 0.25)``.

    Parameters
    ----------
    metric : str
        The one to tell. Where that is empty, or was not measured there, the first ones that were.
    """
    measured = {name: value for name, value in checkpoint.metrics.items() if value is not None}
    names = [metric] if metric in measured else list(measured)[:MAX_METRICS]
    values = [f"{_name(name)} {plain(format_value(as_number(measured[name])))}" for name in names]
    words = [f"trial {checkpoint.shown_trial}", f"batch {checkpoint.batch}", *(values or ["not validated"])]
    return f"Checkpoint({checkpoint.uuid[:UUID_LENGTH]}: {', '.join(words)})"


def _name(metric: str) -> str:
    """Return the name of a metric on one line, whatever the user's code calls it."""
    return shortened(plain(metric))


def shortened(text: str, longest: int = LONGEST) -> str:
    """Leave out the middle of a long text: names differ at their ends as often as at their beginnings."""
    return text if len(text) <= longest else f"{text[: longest - 3 - _TAIL]}...{text[-_TAIL:]}"
