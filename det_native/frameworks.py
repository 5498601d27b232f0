"""The training frameworks: what each is called, and one sentence for the one that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from det_native.errors import MissingDependencyError


@dataclass(frozen=True)
class Framework:
    """A framework: the module it is imported as, its title, and our extra that installs it."""

    module: str
    title: str
    extra: str


FRAMEWORKS = {
    "tensorflow": Framework("tensorflow", "TensorFlow", "keras"),
    "torch": Framework("torch", "PyTorch", "torch"),
}


def missing(framework: Framework, user: str) -> MissingDependencyError:
    """Return the error that says what `user` needs and how to install it."""
    return MissingDependencyError(
        f"{user} needs {framework.title}, which is not installed in this Python: "
        f'run  pip install "det-native[{framework.extra}]"'
    )


@contextmanager
def translated(user: str) -> Iterator[None]:
    """Turn the ``ModuleNotFoundError`` for a framework inside the block into one sentence with its ``pip install``.

    Parameters
    ----------
    user : str
        What needs the framework, as the user typed it.

    Raises
    ------
    MissingDependencyError
        If a framework is not installed. Other failures of an import pass unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        framework = FRAMEWORKS.get((error.name or "").partition(".")[0])
        if framework is None:
            raise
        raise missing(framework, user) from None
