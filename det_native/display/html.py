"""Experiments and trials as calm HTML. Everything that comes from outside is escaped; there is no script in it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from det_native.client.handles import Experiment, Trial
from det_native.client.short_forms import batches_of, format_value, shortened
from det_native.display.failures import Failure, failures_of, headlines
from det_native.display.feed import outputs_trial
from det_native.display.hparams import hparam_texts
from det_native.display.outputs import output_facts
from det_native.display.text import (
    MAX_ROWS,
    best_id,
    experiment_facts,
    experiment_state,
    title_of,
    trial_facts,
    trial_state,
)
from det_native.schema import rest
from det_native.schema.ranking import trials_best_first

_BOX = "font-size:13px;line-height:1.5;max-width:900px"
_MUTED = "opacity:.65"
# The look of the live view's tables. JupyterLab centres a table, leaves much room below it and stripes its rows.
_TABLE = "margin:2px 0;border:0;border-collapse:collapse;font-size:12px;font-variant-numeric:tabular-nums"
_ROW = "background:none"
_CELL = "text-align:left;padding:3px 16px 3px 0;border:0;font-weight:normal;vertical-align:top"
# Entries up to this length are not broken: the long ones of their row have the room.
_ONE_LINE = 24
_ERROR = "white-space:pre-wrap;border-left:3px solid #e45756;padding-left:8px;margin:6px 0"


def experiment_html(experiment: Experiment, picture: bytes | None = None, *, note: str = "", pictures: str = "") -> str:
    """Return an experiment as HTML.

    Parameters
    ----------
    picture : bytes, optional
        PNG of its curves, embedded.
    note : str
        Said after the facts, such as the time for which they are told.
    pictures : str
        HTML of what was logged.
    """
    detail = experiment.detail()
    trials = experiment.source.trials(experiment.id)
    hparams = hparam_texts(trials)
    trial = outputs_trial(trials, smaller_is_better=detail.smaller_is_better)
    outputs = output_facts(experiment.source, trial, several=len(trials) > 1)
    parts = [_heading(title_of(experiment.id, ""), detail.name), _facts(experiment_facts(detail), note)]
    if len(trials) > 1:
        best = best_id(trials, detail)
        shown = trials_best_first(trials, smaller_is_better=detail.smaller_is_better)[:MAX_ROWS]
        rows = [_trial_row(trial, hparams.own[trial.id], detail, best=trial.id == best) for trial in shown]
        titles = ("trial", "state", "batches", f"best {detail.metric}".rstrip(), "hyperparameters")
        parts.append(_table(titles, rows, None if best is None else 0))
    if len(trials) > MAX_ROWS:
        parts.append(_muted(f"... and {len(trials) - MAX_ROWS} more trials"))
    if hparams.common:
        parts.append(_muted(f"In all trials: {hparams.common}"))
    return _box(
        [
            *parts,
            _failures(failures_of(trials, detail)),
            *([_facts(outputs)] if outputs else []),
            _picture(picture),
            pictures,
        ]
    )


def trial_html(trial: Trial, picture: bytes | None = None, *, note: str = "", pictures: str = "") -> str:
    """Return a trial as HTML; see :func:`experiment_html`."""
    detail = trial.detail()
    heading = _heading(f"Trial {detail.shown_number}", f"of experiment {detail.experiment_id}")
    facts = trial_facts(detail, trial.metric, state=experiment_state(trial, detail))
    outputs = output_facts(trial.source, detail)
    lines = [_facts(outputs)] if outputs else []
    return _box([heading, _facts(facts, note), _failures(failures_of([detail])), *lines, _picture(picture), pictures])


def table_html(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a small table; every entry is escaped."""
    return _table(titles, rows)


def _trial_row(trial: rest.Trial, hparams: str, detail: rest.ExperimentDetail, *, best: bool) -> tuple[str, ...]:
    number = f"{trial.shown_number} (best)" if best else str(trial.shown_number)
    value = "" if trial.best_validation is None else format_value(trial.best_validation)
    batches = batches_of(trial)
    return number, trial_state(trial, detail.state, slots=True), batches, value, hparams


def _muted(text: str) -> str:
    return f'<div style="{_MUTED}">{escape(text)}</div>'


def _box(parts: Iterable[str]) -> str:
    return f'<div style="{_BOX}">{"".join(parts)}</div>'


def _heading(title: str, name: str) -> str:
    whole = f' title="{escape(name)}"' if shortened(name) != name else ""
    muted = f' <span style="{_MUTED}"{whole}>{escape(shortened(name))}</span>' if name != title else ""
    return f"<div><b>{escape(title)}</b>{muted}</div>"


def _facts(facts: Mapping[str, str], note: str = "") -> str:
    said = f'<span style="{_MUTED}">{escape(note)}</span>' if note else ""
    shown = (f'<span style="{_MUTED}">{escape(label)}</span> {escape(value)}&emsp;' for label, value in facts.items())
    return f"<div>{''.join(shown)}{said}</div>"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], bold: int | None = None) -> str:
    head = "".join(f'<th style="{_CELL};{_MUTED}">{escape(title)}</th>' for title in titles)
    body = "".join(
        f'<tr style="{_ROW}">{"".join(_entry(entry, bold=at == bold) for entry in row)}</tr>'
        for at, row in enumerate(rows)
    )
    table = f'<thead style="border:0"><tr>{head}</tr></thead><tbody>{body}</tbody>'
    return f'<div style="overflow-x:auto"><table style="{_TABLE}">{table}</table></div>'


def _entry(entry: str, *, bold: bool = False) -> str:
    style = _CELL.replace("normal", "bold") if bold else _CELL
    whole = f"{style};white-space:nowrap" if len(entry) <= _ONE_LINE else style
    return f'<td style="{whole}">{escape(entry)}</td>'


def _failures(failures: Sequence[Failure]) -> str:
    """Say what failed, with the traceback of the first one."""
    lines = [f"<div><b>{escape(line)}</b></div>" for line in headlines(failures)]
    shown = [
        f'<pre style="{_ERROR}">{escape(failure.traceback)}</pre>' for failure in failures[:1] if failure.traceback
    ]
    return "".join([*lines[:1], *shown, *lines[1:]])


def _picture(png: bytes | None) -> str:
    if png is None:
        return ""
    return f'<img alt="training curves" src="data:image/png;base64,{b64encode(png).decode("ascii")}"/>'
