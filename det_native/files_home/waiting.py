"""Code that reads what a training on the cluster writes: the training's end is waited for, and its files come first."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType
from typing import Any

from det_native.capture.path_texts import Role
from det_native.capture.syntax import tree_of
from det_native.capture.transform import transform
from det_native.client import rendering
from det_native.client.waiting import interrupt_is_told, patiently
from det_native.errors import DetError, FilesNotHereError, MasterError, NotFoundError, shown_shortly
from det_native.files_home import registry
from det_native.files_home.bringing import bring, bring_ended
from det_native.files_home.commands import command_lines
from det_native.files_home.patterns import concerns
from det_native.files_home.registry import PendingFiles, is_from_before
from det_native.files_home.uses import Lookup, PathReader, PathUse

_Reads = list[tuple[PendingFiles, PathUse]]


def before_cell(source: str, namespace: Mapping[str, Any], again: str) -> None:
    """Bring what a cell reads of what trainings write, and what has come meanwhile; see :func:`bring_read`.

    Parameters
    ----------
    source : str
        Of the cell.
    namespace : mapping of str
        The notebook's.
    again : str
        How to come back to it once the waiting was interrupted.
    """
    if registry.pending():
        bring_ended()
        bring_read(reads_of_cell(source, namespace.get), again)


def reads_of_cell(source: str, lookup: Lookup) -> _Reads:
    """Return the files of trainings that a cell may read, each with how."""
    several = registry.pending()
    if not several:
        return []
    transformed = transform(source)
    try:
        body = tree_of(transformed.source).body + tree_of(transformed.repeated).body
    except SyntaxError:
        return []
    return reads_of([body], lookup, several, command_lines(source, transformed))


def reads_of(
    pieces: Iterable[Sequence[ast.stmt]],
    lookup: Lookup,
    several: Sequence[PendingFiles],
    commands: Iterable[str] = (),
) -> _Reads:
    """Return the same for pieces of code, and for lines that are commands."""
    found: _Reads = []
    given = frozenset[type]().union(*(files.given for files in several))
    trainers = frozenset[CodeType]().union(*(files.trainers for files in several))
    reader = PathReader(os.getcwd(), given, trainers, [owner for files in several for owner in files.owners])
    try:
        for statements in pieces:
            reader.read(statements, lookup)
        for command in commands:
            reader.read_command(command, lookup)
    except Exception as error:  # noqa: BLE001 (objects of users may raise anything; their code is to run all the same)
        numbers = ", ".join(str(files.experiment.id) for files in several)
        warnings.warn(
            f"Which files this code reads cannot be told ({type(error).__name__}: {error}). If it reads files of "
            f"experiment {numbers}, call det.experiment({several[0].experiment.id}).wait() before.",
            stacklevel=2,
        )
    for use in dict.fromkeys(reader.uses):
        if use.role is not Role.WRITTEN and not use.given:
            for files in several:
                trains = reader.trains or files.call in reader.calls
                if files.expects(use, trains=trains) or (not trains and _has_written(files, use)):
                    found.append((files, use))
    return found


def bring_read(reads: _Reads, again: str) -> None:
    """Wait for trainings of which files are read, and bring these.

    Parameters
    ----------
    reads : list of (PendingFiles, PathUse)
    again : str
        How to come back to it once the waiting was interrupted.

    Raises
    ------
    FilesNotHereError
        If a file has stayed on the cluster, and another one of its name from before is here.
    MasterError
        If the master does not answer.
    KeyboardInterrupt
        If the waiting was interrupted; the experiment goes on.
    """
    for files in dict.fromkeys(files for files, _ in reads):
        uses = [use for other, use in reads if other is files]
        name = (uses[0].text.strip(".") and uses[0].text) or "files here"
        try:
            if not files.ended:
                _wait(files, name, again)
                bring(files)
        except NotFoundError:
            registry.end(files)
            continue
        except MasterError as error:
            advice = f"det.forget({name!r}) goes on with what is here."
            error.args = (f"{error.args[0]}\n{advice}", *error.args[1:])
            raise
        _tell(files, uses)


def _wait(files: PendingFiles, name: str, again: str) -> None:
    experiment = files.experiment
    line = rendering.current().line_in_place()
    if patiently(experiment.source, experiment.detail, line.say).state.terminal:
        return
    line.say(
        f"Waiting for experiment {experiment.id}, which writes {name}. To stop waiting, interrupt the cell (Ctrl-C or "
        "the stop button): the experiment goes on."
    )
    try:
        with interrupt_is_told():
            experiment.wait(show=files.show)
    except KeyboardInterrupt:
        line.say(f"No longer waiting for experiment {experiment.id}.")
        sentence = (
            f"Experiment {experiment.id} goes on. {again}, or call det.forget({name!r}) to go on without the file."
        )
        raise shown_shortly(KeyboardInterrupt(sentence)) from None
    except MasterError:
        raise
    except DetError:  # it has failed: what it had written until then is what plain code would have left
        line.say(f"Experiment {experiment.id} has failed; its files are as it left them.")


def _tell(files: PendingFiles, uses: Sequence[PathUse]) -> None:
    """Say of files that are read what is not as the code expects it; refuse what is certainly wrong."""
    experiment, said = files.experiment, []
    for use in uses:
        stayed = [path for path in files.stayed if concerns(use.pattern, path)]
        stale = (path for path in stayed if path == use.pattern and is_from_before(path, files.submitted))
        certain = next(stale, None)
        if certain is not None:
            raise _refusal(files, use, certain, f"is not here ({files.stayed[certain]})")
        if files.search and is_from_before(use.pattern, files.submitted):
            raise _refusal(files, use, use.pattern, "is of each of its trials, a search, and stays there")
        if stayed and use.pattern != str(files.folder):
            said.append(f"{use.text} of experiment {experiment.id} is not here: {files.stayed[stayed[0]]}.")
        elif files.search:
            said.append(_of_search(files, use))
        elif any(use.text == folder for _, folder in files.owners) and not files.has_filled(use.pattern):
            said.append(
                f"{use.text} has no files of experiment {experiment.id}: name a folder in {files.folder} to have them "
                f"there. det.experiment({experiment.id}).artifacts has what there is."
            )
        elif use.pattern not in files.arrived and is_from_before(use.pattern, files.submitted):
            said.append(f"{use.text} is from before experiment {experiment.id}, which has not written it.")
    for sentence in dict.fromkeys(said):
        if sentence not in files.told:
            files.told.add(sentence)
            rendering.current().line_in_place().say(sentence)


def _refusal(files: PendingFiles, use: PathUse, path: str, why: str) -> FilesNotHereError:
    number, name = files.experiment.id, os.path.relpath(path, files.folder)
    return FilesNotHereError(
        f"{use.text} of experiment {number} {why}, and the file of that name here is from before. In a cell of its "
        f"own, det.experiment({number}).artifacts[{name!r}].download(overwrite=True) brings it{_whose(files)}, and "
        f"det.forget({use.text!r}) lets the file that is here be read."
    )


def _whose(files: PendingFiles) -> str:
    return " from the best trial" if files.search else ""


def _of_search(files: PendingFiles, use: PathUse) -> str:
    number = files.experiment.id
    return (
        f"Each trial of experiment {number}, a search, writes its own files, and none comes here by itself "
        f"({use.text}): det.experiment({number}).artifacts.download() brings those of the best trial."
    )


def _has_written(files: PendingFiles, use: PathUse) -> bool:
    """Whether the training has written what a piece of code uses, by what its worker says so far."""
    if not use.call or files.search or files.passes_over(use):
        return False
    return any(concerns(use.pattern, path) for path in files.written())
