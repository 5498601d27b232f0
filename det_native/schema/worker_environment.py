"""What a client asks a master of its workers' Python before it sends anything, and what differs from the notebook's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import Field

from det_native.schema.bodies import Answer, Sent

Versions = dict[str, str]
# Built for processors only: the other machine takes the one that uses its GPUs, too.
_WITH_GPUS = {"tensorflow-cpu": "tensorflow"}


class EnvironmentQuestion(Sent):
    """Body of POST /environment: the interpreter of the notebook, and the modules that its cells import."""

    executable: str = ""
    modules: list[str] = Field(max_length=5_000)


class EnvironmentAnswer(Answer):
    """What the Python has that will run the trials.

    `modules` has those of the question that can be imported there, each with the distributions that bring it and their
    versions; `notices` are sentences on what stands in the way of training there now. `place` says where the workers
    are, if not beside the master.
    """

    python: str
    executable: str
    modules: dict[str, Versions]
    notices: list[str] = Field(default_factory=list)
    place: str = ""


@dataclass(frozen=True)
class PackageUse:
    """A module that the program imports.

    Attributes
    ----------
    module : str
        Its top-level name.
    where : str
        The cell or file.
    required : bool
        Whether it is imported in any case: at the top level, not where an ``ImportError`` is caught.
    """

    module: str
    where: str = ""
    required: bool = True


@dataclass(frozen=True)
class Difference:
    """A package that the workers lack (`there` is empty), or have in another version.

    Attributes
    ----------
    package : str
        The distribution, as the workers have it where they have one.
    here, there : str
        Versions.
    """

    use: PackageUse
    package: str
    here: str
    there: str = ""

    @property
    def missing(self) -> bool:
        """Whether the workers have nothing of it."""
        return not self.there

    @property
    def requirement(self) -> str:
        """What brings the workers the version of here; a local part such as ``+cpu`` says for what one was built."""
        return f"{_WITH_GPUS.get(self.package, self.package)}=={_public(self.here)}"


def differences(
    uses: Iterable[PackageUse], here: Mapping[str, Versions], there: Mapping[str, Versions]
) -> list[Difference]:
    """Return what differs of the modules that a program imports.

    What is not installed here is not compared: the program does without it. Where several distributions share a module
    (``google``), their versions are not compared.

    Parameters
    ----------
    here, there : mapping
        Module to distributions and versions; without an entry, it cannot be imported.
    """
    found: list[Difference] = []
    for use in uses:
        ours = here.get(use.module)
        if not ours:
            continue
        package = use.module if use.module in ours else min(ours)
        theirs = there.get(use.module)
        if theirs is None:
            found.append(Difference(use, package, ours[package]))
        elif len(ours) == 1 and len(theirs) == 1:
            [version] = theirs.values()
            if _public(version) != _public(ours[package]):
                found.append(Difference(use, next(iter(theirs)), ours[package], version))
    return found


def _public(version: str) -> str:
    return version.partition("+")[0]
