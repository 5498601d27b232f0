"""Finds the description of a framework: our own in a table, all others by the entry points that packages declare.

Our own are declared as entry points too, as an example, and found without: a source checkout has no metadata.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from det_native.errors import MissingDependencyError
from det_native.frameworks.description import Description, resolve

GROUP = "det_native.frameworks"
BUILT_IN = {name: f"{GROUP}.{name}:DESCRIPTION" for name in ("torch", "keras", "estimator", "tf_estimator", "core")}

logger = logging.getLogger("det_native")

_descriptions: dict[str, Description] = {}
_scanned = False


def find_framework(name: str) -> Description | None:
    """Return the description of a framework by its name, None if this Python has none.

    Raises
    ------
    MissingDependencyError
        If the package that brings it is broken.
    """
    if name not in _descriptions:
        # What is not known is looked for anew: it may have been installed since.
        reference = BUILT_IN.get(name) or _declared().get(name)
        if reference is None:
            return None
        _descriptions[name] = _loaded(name, reference)
    return _descriptions[name]


def get_framework(name: str) -> Description:
    """Return the description of a framework by its name.

    Raises
    ------
    MissingDependencyError
        If there is none; the message lists those that there are.
    """
    found = find_framework(name)
    if found is None:
        names = ", ".join(sorted(one.name for one in known_frameworks() if one.trains))
        raise MissingDependencyError(
            f"{name!r} is no framework that det_native in this Python ({sys.executable}) knows; it knows: {names}. "
            f"Install the package there that brings {name!r} (its entry point is in the group {GROUP})."
        )
    return found


def known_frameworks() -> list[Description]:
    """Return all descriptions, ours first; a package that is broken is left out with a line in the log."""
    global _scanned
    if not _scanned:
        for name in [*BUILT_IN, *_declared()]:
            try:
                find_framework(name)
            except MissingDependencyError as error:
                logger.warning("%s", error)
        _scanned = True
    return _ours_first()


def read_frameworks() -> list[Description]:
    """Return our own descriptions, and those of others that were asked for; no metadata are searched for it."""
    for name in BUILT_IN:
        find_framework(name)
    return _ours_first()


def framework_taking(payload: object) -> Description | None:
    """Return the description of the framework that a trial class or a captured call is of, None if of none."""
    return _first(lambda one: one.takes(payload))


def framework_with_init(room: str) -> Description | None:
    """Return the description whose ``init()`` is found as ``det.experimental.<room>``, None if there is none."""
    return _first(lambda one: one.init.rpartition(".")[2] == room)


def _first(matches: Callable[[Description], bool]) -> Description | None:
    """Return the first that matches; where one of ours does, no metadata are searched."""
    for descriptions in (read_frameworks, known_frameworks):
        for one in descriptions():
            if matches(one):
                return one
    return None


def trial_class_names(*, several_slots: bool = False) -> str:
    """Return the names of the trial classes that are trained, or those of them that run on several slots."""
    able = [one for one in known_frameworks() if one.trial_class and (one.gradient_means or not several_slots)]
    first, *others = [one.trial_class.partition(":")[2] for one in able]
    return "".join([first, *(f" or {'an' if name[0] in 'AEIOU' else 'a'} {name}" for name in others)])


def trial_class_titles() -> str:
    """Return the trial classes that are trained, as users write them."""
    return " or ".join(one.trial_class_title for one in known_frameworks() if one.trial_class)


def _ours_first() -> list[Description]:
    order = [*BUILT_IN, *sorted(_descriptions.keys() - BUILT_IN.keys())]
    return [_descriptions[name] for name in order]


def _declared() -> dict[str, str]:
    """Return the references that installed packages declare, by name."""
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=GROUP) if entry.name not in BUILT_IN}


def _loaded(name: str, reference: str) -> Description:
    try:
        description = resolve(reference)
        if not isinstance(description, Description) or description.name != name:
            raise TypeError(f"it is no Description of {name!r}")
    except Exception as error:
        raise MissingDependencyError(
            f"The framework {name!r} is installed, but its entry point {reference} in the group {GROUP} cannot be "
            f"used: {type(error).__name__}: {error}. Install a version that goes with this det_native."
        ) from error
    return description
