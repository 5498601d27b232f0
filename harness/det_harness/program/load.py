"""Checkpoints back in the user's process: the program is replayed up to its training call, and weights are loaded."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn

from det_harness.frameworks.base import harness_for, harness_of
from det_harness.program.calls import CallMatcher
from det_harness.program.earlier import Files, HostOfCalls, OtherCalls
from det_harness.program.made_up import MadeUpValues
from det_harness.program.runner import ProgramRunner, ProgramStop
from det_harness.program.suppress import suppressed_output
from det_native.errors import CheckpointError, TrialDefinitionError
from det_native.frameworks import framework_taking
from det_native.runtime import hosted
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import BundleManifest, CheckpointManifest
from det_native.storage.paths import check_relative

ReadBlob = Callable[[str], bytes]


def load_checkpoint(
    bundle: BundleManifest,
    read_blob: ReadBlob,
    directory: Path,
    manifest: CheckpointManifest,
    environment: TrialEnvironment,
    files: Files,
) -> Any:
    """Rebuild the user's objects from the code of an experiment, and load a checkpoint's weights into them.

    The cells (or the script) run as far as the training call, in a module of their own and in a temporary folder with
    the bundle's files; nothing is trained. What they print and show is kept back, unless they fail. The working
    directory, ``sys.modules`` and the import path are afterwards what they were before.

    Parameters
    ----------
    files : callable
        Gives a folder with the files of the checkpoint of an earlier training of the program, for a block.

    Returns
    -------
    PyTorchTrial, tf.keras.Model, torch.nn.Module or list of torch.nn.Module

    Raises
    ------
    CheckpointError
        If the checkpoint does not fit the code.
    BundleCheckError
        If the code was sent from another minor version of Python.
    Exception
        Whatever the user's code raises.
    """
    with tempfile.TemporaryDirectory(prefix="det-load-") as work:
        with _own_modules(bundle):
            _unpack(bundle, read_blob, Path(work))
            if _mentions_determined(bundle, Path(work)):
                importlib.import_module("det_native.compat")
            runner = ProgramRunner(bundle, read_blob, Path(work))
            host = LoadHost(environment, runner.calls, directory, read_blob=read_blob, files=files)
            takes = harness_of(bundle.program.framework).calls_taken()
            with suppressed_output(), hosted(host), takes:
                runner.run(private=False)
        if host.failure is not None:
            raise host.failure
        if not host.loaded:
            raise CheckpointError(f"The code of checkpoint {manifest.uuid} made no model.")
        # The sources of its modules are still there.
        return harness_of(bundle.program.framework).at_home(host.result)


class LoadHost(HostOfCalls):
    """Loads the weights at the program's recorded call, and stops the program; a ``runtime.ProgramHost``.

    Parameters
    ----------
    files : callable
        Gives a folder with the files of the checkpoint of an earlier training, for a block.
    """

    role: Literal["worker", "load"] = "load"

    def __init__(
        self,
        environment: TrialEnvironment,
        calls: CallMatcher,
        directory: Path,
        *,
        read_blob: ReadBlob,
        files: Files,
    ) -> None:
        self.environment = environment
        self.result: Any = None
        self.loaded = False
        self.failure: Exception | None = None
        self._directory = directory
        self._calls = calls
        self._others = OtherCalls(calls, MadeUpValues(calls.source), read_blob, files)

    def reached(self, payload: Any) -> None:
        """Load; what goes wrong is kept, as the user's code around the call may hide it."""
        try:
            self.result = load_weights(payload, self._directory, self.environment)
            self.loaded = True
        except Exception as error:
            self.failure = error
            raise

    def take_call(self, kind: str, payload: Any) -> Any:
        """Take the recorded call, and stop the program there; any other call gives what it has trained before."""
        if not self._calls.is_recorded(kind):
            return self._others.result(payload, self._calls.earlier)
        self._stop_at(payload)

    def _stop_at(self, payload: Any) -> NoReturn:
        self._calls.taken = True
        self.reached(payload)
        raise ProgramStop

    def take_loop(self, kind: str, payload: Any) -> Callable[[], Iterator[Any]]:
        """Take the recorded loop, and stop the program there; any other loop has no batches."""
        if self._calls.is_recorded(kind):
            self._stop_at(payload)
        earlier, cell = self._calls.earlier, self._calls.cell

        def begin() -> Iterator[Any]:
            if self._calls.cell != cell:
                self.take_call(kind, payload)
            else:
                self._others.result(payload, earlier)
            return iter(())

        return begin


def load_weights(payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
    """Load a checkpoint's weights into what a training call was given.

    Parameters
    ----------
    payload : type or FitCall
        A subclass of PyTorchTrial, of which an instance is made; a captured ``fit`` of a Keras model; or a captured
        call of ``det.experimental.pytorch``, of whose models copies are made.

    Returns
    -------
    PyTorchTrial, tf.keras.Model, torch.nn.Module or list of torch.nn.Module
        Of several wrapped models the list of all, in the order in which they were wrapped.
    """
    if framework_taking(payload) is None:
        raise TrialDefinitionError(f"A checkpoint cannot be loaded into {payload!r}.")
    return harness_for(payload).load(payload, directory, environment)


def _mentions_determined(bundle: BundleManifest, folder: Path) -> bool:
    """Whether the code may need the alias, which every worker has."""
    modules = (folder / entry.path for entry in bundle.files if entry.path.endswith(".py"))
    sources = [*(cell.source.encode() for cell in bundle.program.cells), *(module.read_bytes() for module in modules)]
    return any(b"determined" in source for source in sources)


def _unpack(bundle: BundleManifest, read_blob: ReadBlob, folder: Path) -> None:
    for link in bundle.links:  # of data that did not travel: as they lie here, if they still do
        check_relative(link.path)
        here = Path.cwd() / link.path
        if here.is_file() and here.stat().st_size == link.size:
            (folder / link.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / link.path).symlink_to(here)
    for entry in bundle.files:
        check_relative(entry.path)
        target = folder / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read_blob(entry.sha256))
        target.chmod(entry.mode)


@contextmanager
def _own_modules(bundle: BundleManifest) -> Iterator[None]:
    """Let the program import its own copies of local modules, whatever this process has imported under their names."""
    names = {entry.path.split("/")[0].removesuffix(".py") for entry in bundle.files if entry.path.endswith(".py")}

    def take() -> dict[str, ModuleType]:
        found = [name for name in list(sys.modules) if name.partition(".")[0] in names]
        return {name: sys.modules.pop(name) for name in found}

    before = take()
    try:
        yield
    finally:
        take()
        sys.modules.update(before)
