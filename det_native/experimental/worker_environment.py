"""The Python of the workers beside that of the notebook: compared before anything is sent, made equal where asked."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from det_native.capture.model import Bundle
from det_native.client.session import Session
from det_native.errors import NotFoundError, Problem, WorkerEnvironmentError
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.launchers import LOCAL
from det_native.schema.manifests import BundleManifest
from det_native.schema.packages import Installed, modules_here, normal_name, read_installed, stamp
from det_native.schema.reports import CaptureRow
from det_native.schema.worker_environment import (
    Difference,
    EnvironmentAnswer,
    EnvironmentQuestion,
    PackageUse,
    differences,
)

_HEADLINE = "The workers cannot run what would be sent:"
# The configuration has seen to it that each begins with one.
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_last: tuple[Installed, object] | None = None


@dataclass(frozen=True)
class Fitted:
    """A bundle as it is to run on the workers, and what is to be told about that."""

    bundle: Bundle
    warnings: Sequence[str] = ()
    rows: Sequence[CaptureRow] = ()


def fit_to_workers(
    session: Session, bundle: Bundle, uses: Sequence[PackageUse], wanted: Literal["auto"] | list[str] | None
) -> Fitted:
    """Compare what the program imports with what the workers have.

    Where the workers run in the very interpreter of this process there is nothing to ask.

    Parameters
    ----------
    session : Session
    bundle : Bundle
    uses : sequence of PackageUse
    wanted : "auto", list of str, or None
        What is installed for the trials: ``environment.packages`` of the configuration.

    Raises
    ------
    WorkerEnvironmentError
        If packages are missing there, or values cannot be loaded by another version of Python.
    """
    listed = tuple(wanted) if isinstance(wanted, list) else ()
    if _is_own(session, bundle.manifest):
        # Only one with GPUs has anything to tell.
        told = notices_of(session) if shutil.which("nvidia-smi") else []
        return Fitted(_with_packages(bundle, listed), told)
    here = _installed()
    names = sorted({use.module for use in uses})
    question = EnvironmentQuestion(executable=bundle.manifest.interpreter.executable, modules=names)
    try:
        there = _asked(session, question)
    except NotFoundError:  # a master from before it could tell
        return Fitted(_with_packages(bundle, listed))
    machine = there.place or session.url
    notices = [*there.notices, *_check_python(bundle.manifest, there, machine)]
    found = differences(uses, modules_here(here, names), there.modules)
    rows = [_row(one) for one in found]
    if wanted == "auto":
        packages = tuple(dict.fromkeys(one.requirement for one in found))
        return Fitted(_with_packages(bundle, packages), notices, rows)
    missing = [one for one in found if one.missing and one.use.required and not _brings(listed, one)]
    if missing:
        raise WorkerEnvironmentError(_HEADLINE, [_problem(one, there, machine) for one in missing])
    told = [_warning(one, machine) for one in found if not _brings(listed, one)]
    return Fitted(_with_packages(bundle, listed), [*notices, *told], rows)


def notices_of(session: Session) -> list[str]:
    """Return what stands in the way of training there now: GPUs that other processes fill."""
    try:
        return _asked(session, EnvironmentQuestion(modules=[])).notices
    except NotFoundError:  # a master from before it could tell
        return []


def can_import(session: Session, module: str) -> bool:
    """Return whether the workers have a package, by its top-level name; true where the master cannot tell."""
    try:
        return module in _asked(session, EnvironmentQuestion(modules=[module])).modules
    except NotFoundError:  # a master from before it could tell
        return True


def have_it_as_here(session: Session, package: str) -> bool:
    """Return whether the workers have a package in the version of this process, by its top-level name."""
    try:
        versions = _asked(session, EnvironmentQuestion(modules=[package])).modules.get(package)
    except NotFoundError:  # a master from before it could tell
        return False
    return versions is not None and versions == modules_here(_installed(), [package]).get(package)


def _asked(session: Session, question: EnvironmentQuestion) -> EnvironmentAnswer:
    return session.call(routes.ASK_ENVIRONMENT, question)


def _is_own(session: Session, manifest: BundleManifest) -> bool:
    """Whether the workers run in this interpreter: the master is that of this home, hence of this machine."""
    if session.route is not None or manifest.interpreter.executable != sys.executable:
        return False
    runtime = read_runtime(Home.default())
    if runtime is None or runtime.launcher != LOCAL:
        return False
    return runtime.is_at(session.url) and os.access(sys.executable, os.X_OK)


def _installed() -> Installed:
    global _last
    if _last is None or _last[1] != stamp(_last[0].paths):
        found = read_installed()
        _last = found, stamp(found.paths)
    return _last[0]


def _with_packages(bundle: Bundle, packages: tuple[str, ...]) -> Bundle:
    if not packages:
        return bundle
    return replace(bundle, manifest=bundle.manifest.model_copy(update={"packages": packages}))


def _check_python(manifest: BundleManifest, there: EnvironmentAnswer, machine: str) -> list[str]:
    """Return what is to be told of another Python; refuse one for which the values are of no use."""
    minor = ".".join(there.python.split(".")[:2])
    if minor == manifest.interpreter.minor:
        return []
    if manifest.bound_to_python:
        names = ", ".join(value.name for value in manifest.values)
        raise WorkerEnvironmentError(
            _HEADLINE,
            [
                Problem(
                    "python",
                    f"the notebook runs Python {manifest.interpreter.minor}, the workers of {machine} Python {minor}, "
                    f"and pickled values are to be sent ({names}), which only the same one can load.",
                    f"Make an environment with Python {manifest.interpreter.minor} there (`det remote setup`), or let "
                    "the cells that make these values run there.",
                )
            ],
        )
    return [
        f"The workers of {machine} have Python {minor}, here it is {manifest.interpreter.minor}; only source is sent."
    ]


def _brings(requirements: Sequence[str], one: Difference) -> bool:
    """Whether a list of requirements has the package, in whatever version."""
    names = {normal_name(_NAME.match(text)[0]) for text in requirements}  # type: ignore[index]
    return normal_name(one.package) in names or normal_name(one.use.module) in names


def _problem(one: Difference, there: EnvironmentAnswer, machine: str) -> Problem:
    return Problem(
        one.use.where,
        f"imports {one.use.module}, which the workers of {machine} do not have (here {one.package} {one.here}).",
        f"Install it there (`{there.executable} -m pip install {one.requirement}`), or have it installed for the "
        f"trials: environment: {{packages: auto}}, or [{one.requirement}], in the configuration.",
    )


def _warning(one: Difference, machine: str) -> str:
    if one.missing:
        return (
            f"The workers of {machine} do not have {one.use.module}, which {one.use.where or 'the program'} imports "
            f"in some case (here {one.package} {one.here})."
        )
    return (
        f"The workers of {machine} have {one.package} {one.there}, here it is {one.here}; `environment: "
        "{packages: auto}` in the configuration has the trials use what is here."
    )


def _row(one: Difference) -> CaptureRow:
    note = f"here {one.here}, on the workers {one.there or 'missing'}"
    return CaptureRow(what=one.package, how="package", size=0, cell=one.use.where, status="not sent", note=note)
