"""Files that ranks on other machines have written, brought to the first rank in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from det_harness.ranks.communicator import Communicator

PIECE = 4 << 20

_Piece = tuple[str, bytes]


def bring(communicator: Communicator, sent: Path | None, target: Path) -> None:
    """Put files of other ranks into a folder of the first rank; a collective call, and all have sent when it is over.

    Parameters
    ----------
    sent : Path or None
        The folder whose files this rank sends; None if it sends none.
    target : Path
        The first rank's: each file comes to the same path in it. It has no effect on the others.

    Raises
    ------
    OSError
        On the first rank, if something cannot be written; on another, if it cannot be read. The others have sent all
        that they have in any case.
    """
    files = [] if sent is None else sorted(path for path in sent.rglob("*") if path.is_file())
    counts = [max(1, -(-path.stat().st_size // PIECE)) for path in files]
    rounds = max(communicator.all_gather_object(sum(counts)))
    pieces = _pieces(sent, files)
    failure: OSError | None = None
    for _ in range(rounds):
        try:
            piece = next(pieces, None)
        except OSError as error:
            failure, piece = error, None
        for given in communicator.gather_object(piece) or ():
            if given is not None and failure is None:
                failure = _append(target, *given)
    if failure is not None:
        raise failure


def _pieces(folder: Path | None, files: list[Path]) -> Iterator[_Piece]:
    for path in files:
        name = str(path.relative_to(folder or path))
        with path.open("rb") as stream:
            content = stream.read(PIECE)
            yield name, content
            while content := stream.read(PIECE):
                yield name, content


def _append(folder: Path, name: str, content: bytes) -> OSError | None:
    try:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as stream:
            stream.write(content)
    except OSError as error:
        return error
    return None
