"""Names by the time: what a worker has named by its clock, as the notebook has named it by its own.

``log_dir = "logs/" + datetime.now().strftime("%Y%m%d-%H%M%S")`` is another text on a worker, which runs the cell later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from det_native.proof.own_values import dates_of_process

_MOMENT = re.compile(r"\d[\d\-_:.T]*\d")
_DIGIT = re.compile(r"\d")


def as_here(paths: Sequence[str], patterns: Iterable[str]) -> dict[str, str]:
    """Return the paths of a trial that are named by a moment, each as the notebook names it.

    Names stay as they are where the notebook's code, or the files of the trial, have several moments in the same form:
    nobody can tell which belongs to which.

    Parameters
    ----------
    paths : sequence of str
        Of the files of the trial.
    patterns : iterable of str
        Paths that the code of the training names in the notebook, relative to the notebook's folder.
    """
    here = _by_form(patterns)
    renamed: dict[str, str] = {}
    for form, moments in here.items():
        others = _of_form(form, paths)
        if len(moments) != 1 or len(others) != 1 or moments == others:
            continue
        [moment], [other] = moments, others
        whole = re.compile(rf"(?<!\d){re.escape(other)}(?!\d)")
        renamed |= {path: whole.sub(moment, renamed.get(path, path)) for path in paths if whole.search(path)}
    after = [renamed.get(path, path) for path in paths]
    return renamed if len(set(after)) == len(after) else {}


def _by_form(paths: Iterable[str]) -> dict[str, set[str]]:
    """Return the moments in paths, by a pattern of how they are written."""
    moments = dict[str, set[str]]()
    for path in paths:
        for moment in filter(_is_moment, _MOMENT.findall(path)):
            form = _DIGIT.sub(r"\\d", re.escape(moment))
            moments.setdefault(rf"(?<!\d){form}(?!\d)", set()).add(moment)
    return moments


def _of_form(form: str, paths: Iterable[str]) -> set[str]:
    return {moment for path in paths for moment in re.findall(form, path) if _is_moment(moment)}


def _is_moment(text: str) -> bool:
    """Whether a text has a date on which this process has run, with a time of that day."""
    digits = "".join(_DIGIT.findall(text))
    return any(date in digits and len(digits) > len(date) for date in dates_of_process())
