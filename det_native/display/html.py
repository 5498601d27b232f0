"""Experiments and trials as calm HTML. Everything that comes from outside is escaped; there is no script in it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from det_native.client.handles import Experiment, Trial
from det_native.client.short_forms import format_value
from det_native.client.state_words import trial_word
from det_native.display.hparams import hparam_texts
from det_native.display.text import experiment_facts, shown_trials, title_of, trial_facts
from det_native.schema import rest

_BOX = "font-size:13px;line-height:1.5;max-width:900px"
_MUTED = "opacity:.65"
_CELL = "text-align:left;padding:1px 14px 1px 0;font-weight:normal"
# Entries up to this length are not broken: the long ones of their row have the room.
_ONE_LINE = 24
_ERROR = "white-space:pre-wrap;border-left:3px solid #e45756;padding-left:8px;margin:6px 0"


def experiment_html(experiment: Experiment, picture: bytes | None = None, *, note: str = "") -> str:
    """Return an experiment as HTML.

    Parameters
    ----------
    experiment : Experiment
    picture : bytes, optional
        PNG of its curves, embedded.
    note : str
        Said after the facts, such as the time for which they are told.
    """
    detail = experiment.detail()
    handles = experiment.trials
    hparams = hparam_texts(handles)
    trials, more = shown_trials(handles)
    parts = [_heading(title_of(experiment.id, ""), detail.name), _facts(experiment_facts(detail), note)]
    if len(trials) > 1:
        rows = [_trial_row(trial, hparams.own[trial.id]) for trial in trials]
        parts.append(_table(("trial", "state", "batches", "best", "hyperparameters"), rows))
    if more:
        parts.append(_muted(f"... and {more} more trials"))
    if hparams.common:
        parts.append(_muted(f"In all trials: {hparams.common}"))
    return _box([*parts, _error(detail.error), _picture(picture)])


def trial_html(trial: Trial, picture: bytes | None = None, *, note: str = "") -> str:
    """Return a trial as HTML.

    Parameters
    ----------
    trial : Trial
    picture : bytes, optional
        PNG of its curves, embedded.
    note : str
        Said after the facts.
    """
    detail = trial.detail()
    heading = _heading(f"Trial {detail.id}", f"of experiment {trial.source.shown_id(detail.experiment_id)}")
    return _box([heading, _facts(trial_facts(detail, trial.metric), note), _error(detail.error), _picture(picture)])


def table_html(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a small table; every entry is escaped."""
    return _table(titles, rows)


def _trial_row(trial: rest.Trial, hparams: str) -> tuple[str, ...]:
    best = "" if trial.best_validation is None else format_value(trial.best_validation)
    batches = f"{trial.batches}/{trial.target_batches}"
    return str(trial.id), trial_word(trial), batches, best, hparams


def _muted(text: str) -> str:
    return f'<div style="{_MUTED}">{escape(text)}</div>'


def _box(parts: Iterable[str]) -> str:
    return f'<div style="{_BOX}">{"".join(parts)}</div>'


def _heading(title: str, name: str) -> str:
    muted = f' <span style="{_MUTED}">{escape(name)}</span>' if name != title else ""
    return f"<div><b>{escape(title)}</b>{muted}</div>"


def _facts(facts: Mapping[str, str], note: str = "") -> str:
    said = f'<span style="{_MUTED}">{escape(note)}</span>' if note else ""
    shown = (f'<span style="{_MUTED}">{escape(label)}</span> {escape(value)}&emsp;' for label, value in facts.items())
    return f"<div>{''.join(shown)}{said}</div>"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th style="{_CELL};{_MUTED}">{escape(title)}</th>' for title in titles)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_cell(entry)}">{escape(entry)}</td>' for entry in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x:auto">{table}</div>'


def _cell(entry: str) -> str:
    return f"{_CELL};white-space:nowrap" if len(entry) <= _ONE_LINE else _CELL


def _error(error: rest.UserErrorInfo | None) -> str:
    if error is None:
        return ""
    return f'<pre style="{_ERROR}">{escape(error.traceback or f"{error.type}: {error.message}")}</pre>'


def _picture(png: bytes | None) -> str:
    if png is None:
        return ""
    return f'<img alt="training curves" src="data:image/png;base64,{b64encode(png).decode("ascii")}"/>'
