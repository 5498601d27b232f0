"""What the machines of a cluster have of the modules that a program imports, as if they were together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from det_native.schema.cluster import MachineModules
from det_native.schema.worker_environment import Versions

_MOST_NAMED = 3


def of_any(machines: Sequence[MachineModules], names: Sequence[str]) -> dict[str, Versions]:
    """Return the modules that a machine or more can import, each as most of these machines have it."""
    modules = {}
    for name in names:
        versions = Counter(tuple(sorted(has.modules[name].items())) for has in machines if name in has.modules)
        if versions:
            modules[name] = dict(versions.most_common(1)[0][0])
    return modules


def disagreements(machines: Sequence[MachineModules], names: Sequence[str]) -> list[str]:
    """Return sentences on the modules that only some machines have, or that they have in several versions."""
    sentences = []
    for name in names:
        without = [has.name for has in machines if name not in has.modules]
        if without and len(without) < len(machines):
            sentences.append(f"{name} is not installed on {_listed(without)}, but on other machines of the cluster.")
        versions: dict[str, list[str]] = {}
        for has in machines:
            brought = has.modules.get(name, {})
            if len(brought) == 1:
                versions.setdefault(next(iter(brought.values())), []).append(has.name)
        if len(versions) > 1:
            each = "; ".join(f"{version} on {_listed(those)}" for version, those in sorted(versions.items()))
            sentences.append(f"The machines of the cluster have several versions of {name}: {each}.")
    return sentences


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
