"""Which builds a machine needs: for its GPUs to be seen an extra, or the build for its driver; without any, no CUDA."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from det_native.client.remote.ssh import Line
from det_native.frameworks import Description, known_frameworks

#: For the script that looks at a machine: what its driver is.
LOOK = r"""
nvidia-smi -L 2>/dev/null | grep -q '^GPU ' && echo "gpu=yes"
nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Za-z ]*Version: *\([0-9][0-9.]*\).*/cuda=\1/p'
"""
_SECONDS = 60.0
# By whatever there is that fetches a page.
_FETCH = """
url={url}
{{ curl -fsSL --max-time 20 "$url" || wget -qO- --timeout=20 "$url" || {python} -c '
import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
' "$url"; }} 2>/dev/null </dev/null | grep -o '{name}-{version}[^">< #]*[.]whl' | sort -u
"""
_CPU = re.compile(r"(?:%2B|\+)cpu-")
_BUILD = re.compile(r"(?:%2B|\+)cu(\d+)(\d)(?:-|$)")

Cuda = tuple[int, int]


@dataclass
class Fitted:
    """Requirements for a machine, further indexes that have them, and what should be known of them."""

    requirements: list[str]
    indexes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def fitted(line: Line, requirements: Sequence[str], facts: dict[str, str], *, offline: bool = False) -> Fitted:
    """Return the requirements with what the machine's GPUs need; without a GPU, in builds for processors.

    A machine with Slurm may have GPUs behind it, and a Python that the user names keeps what it has.

    Parameters
    ----------
    facts : dict of str to str
        What :data:`LOOK` has printed, and ``python``: a version and a path.
    offline : bool
        Nothing can be looked up there.
    """
    fit = Fitted(list(requirements))
    gpu = "gpu" in facts
    if not gpu and (offline or "slurm" in facts or line.target.python is not None):
        return fit
    for package, framework in _packages(known_frameworks()):
        for at, requirement in enumerate(fit.requirements):
            name, _, version = requirement.partition("==")
            if name != package or not version or "+" in version:
                continue
            if not gpu:
                _choose_processors(line, fit, at, framework, facts)
                continue
            fit.requirements[at] = f"{framework.gpu_package}=={version}"
            if framework.gpu_index:
                _choose_build(line, fit, at, framework, facts, offline=offline)
    return fit


def _packages(frameworks: Iterable[Description]) -> list[tuple[str, Description]]:
    """Return the package of each framework, without extras; several frameworks may share one."""
    return list({one.gpu_package.partition("[")[0]: one for one in frameworks if one.gpu_package}.items())


def _choose_processors(line: Line, fit: Fitted, at: int, framework: Description, facts: dict[str, str]) -> None:
    requirement = fit.requirements[at]
    name, _, version = requirement.partition("==")
    if framework.gpu_index and _CPU.search(_listed(line, f"{framework.gpu_index}/{name}/", name, version, facts)):
        fit.requirements[at] = f"{requirement}+cpu"
        fit.indexes.append(f"{framework.gpu_index}/cpu")
        fit.notes.append(f"No GPU is seen there: {name} comes in its build for processors, without CUDA.")


def _choose_build(
    line: Line, fit: Fitted, at: int, framework: Description, facts: dict[str, str], *, offline: bool
) -> None:
    requirement = fit.requirements[at]
    name, _, version = requirement.partition("==")
    if "cuda" not in facts:
        fit.notes.append(f"The driver there does not say which CUDA it takes: {requirement} comes as pip has it.")
        return
    driver = facts["cuda"]
    if offline:
        fit.notes.append(f"The driver there takes CUDA up to {driver}: take a build of {name} for it.")
        return
    builds = _builds(line, f"{framework.gpu_index}/{name}/", name, version, facts)
    chosen = choose(builds, driver)
    if chosen is not None:
        tag = f"cu{chosen[0]}{chosen[1]}"
        fit.requirements[at] = f"{requirement}+{tag}"
        fit.indexes.append(f"{framework.gpu_index}/{tag}")
        fit.notes.append(f"The driver there takes CUDA up to {driver}: {name} comes in its build {tag}.")
    elif builds:
        releases = ", ".join(f"{major}.{minor}" for major, minor in sorted(builds))
        fit.notes.append(
            f"The driver there takes CUDA up to {driver}, {requirement} is built for {releases}: its GPUs will not be "
            f"seen. Renew the driver, or name a version that is built for it: -p {name}==..."
        )
    else:
        fit.notes.append(
            f"Which builds of {requirement} there are cannot be read there ({framework.gpu_index}): it comes as pip "
            f"has it, and may not fit the driver (CUDA up to {driver})."
        )


def _builds(line: Line, url: str, name: str, version: str, facts: dict[str, str]) -> set[Cuda]:
    return {(int(match[1]), int(match[2])) for match in _BUILD.finditer(_listed(line, url, name, version, facts))}


def _listed(line: Line, url: str, name: str, version: str, facts: dict[str, str]) -> str:
    """Return the names of the wheels of a version that an index has."""
    python = facts.get("python", "").partition(" ")[2] or "python3"
    script = _FETCH.format(url=shlex.quote(url), python=shlex.quote(python), name=name, version=re.escape(version))
    return line.run(script, seconds=_SECONDS).printed


def choose(builds: Iterable[Cuda], driver: str) -> Cuda | None:
    """Return the CUDA of the build that a driver takes, None if it takes none of them.

    It takes what is as old as itself or older, and of its own major version what is newer, too.
    """
    major, _, minor = driver.partition(".")
    newest = int(major), int(minor.partition(".")[0] or 0)
    older = [build for build in builds if build <= newest]
    same = [build for build in builds if build[0] == newest[0]]
    if older and (max(older)[0] == newest[0] or not same):
        return max(older)
    return min(same, default=None)
