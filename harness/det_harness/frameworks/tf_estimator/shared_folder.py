"""The folder of an estimator whose roles are on several machines: some of them have to see the same one.

The variables lie with the ps, each of which writes its part of a checkpoint; the evaluator reads checkpoints.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from det_harness.ranks.exchange import wait_until
from det_native.errors import UnsupportedFeatureError
from det_native.schema.roles import Role

_MARK = ".det-machines"
# A network file system may not show a new file at once.
_SECONDS = 15.0


@contextmanager
def marked(folder: Path) -> Iterator[str]:
    """Have a mark in the folder of the first process, for the block; gives what is in it."""
    mark = secrets.token_hex(8)
    (folder / _MARK).write_text(mark)
    try:
        yield mark
    finally:
        with suppress(OSError):
            (folder / _MARK).unlink()


def check_shared(folder: Path, mark: str, role: Role) -> None:
    """See that a role on another machine than the first process finds its mark, if the role needs the folder."""
    if role.name not in ("ps", "evaluator"):
        return

    def is_there() -> bool:
        with suppress(OSError):
            return (folder / _MARK).read_text() == mark
        return False

    if not wait_until(is_there, _SECONDS):
        does = "writes its part of each checkpoint" if role.name == "ps" else "reads the checkpoints"
        raise UnsupportedFeatureError(
            f"The {role.title} is on another machine than the first process, and {does} in the estimator's "
            f"folder, but {folder} is not the same folder on both machines: give the estimator a model_dir that all "
            "machines share, or as many slots as one machine has."
        )
