"""A directory with an ``entrypoint``, trained from the command line: no cell and no script makes the call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

from det_native.client.connect import connect
from det_native.client.handles import Experiment
from det_native.errors import ArgumentError, MissingDependencyError
from det_native.experimental.creation import entrypoint_of, train_class
from det_native.experimental.origin import Origin
from det_native.experimental.scripts import train_entrypoint
from det_native.experimental.settings import ConfigInput, Settings, check_settings, check_supported
from det_native.experimental.trials import find_trial_class
from det_native.experimental.unimported import framework_in_text
from det_native.experimental.worker_environment import can_import, have_it_as_here
from det_native.schema.loading import load_config
from det_native.schema.manifests import CallKind, Cell, Framework, Program
from det_native.schema.yaml_text import parse_yaml

if TYPE_CHECKING:
    from det_native.capture.model import Capture


@dataclass(frozen=True)
class DirectoryOrigin(Origin):
    """A call that no code of the user's makes: the worker is given a program of one cell, and the directory.

    Attributes
    ----------
    entrypoint : str
        ``"module:Class"``.
    """

    has_code: ClassVar[bool] = False
    entrypoint: str = ""

    def why_no_program(self) -> str:
        """Return an empty text: the program is made here, of the directory."""
        return ""

    def capture(self, kind: CallKind, payload: Any, framework: Framework, settings: Settings) -> Capture:
        """Return the program; the files are those of the context directory."""
        from det_native.capture.model import Capture

        source = f"import det_native as det\n\ndet.experimental.create({self.entrypoint!r})\n"
        cell = Cell(number=None, cell_id=None, source=source, reason="trains the entrypoint of the configuration")
        return Capture(Program(kind="cells", framework=framework, cells=(cell,)))


def create_from_directory(
    config: Path,
    directory: Path,
    *,
    changes: Sequence[str] = (),
    local: bool = False,
    test: bool = False,
    master_url: str | None = None,
) -> Experiment:
    """Train the ``entrypoint`` of a configuration file.

    Parameters
    ----------
    config : Path
        YAML or JSON.
    directory : Path
        Working directory of the code, sent whole.
    changes : sequence of str
        Fields that differ from the file, as ``"dotted.path=value"``; the value is YAML.
    local, test, master_url
        See ``det.experimental.create()``.

    Returns
    -------
    Experiment
        At once for the cluster, after the training for a local one.

    Raises
    ------
    ArgumentError
        If a change cannot be read, or the configuration names nothing that can be trained.
    MissingDependencyError
        If the class needs a package that neither this Python nor the workers have, or its text does not say for which
        framework it is. A class whose packages the workers alone have is left to them to check.
    """
    given: ConfigInput = changed(config, changes) if changes else config
    settings = check_settings(given, None, local, test, str(directory), None, master_url, (), (), "none")
    experiment = train_entrypoint(settings)
    if experiment is not None:
        return experiment
    named = entrypoint_of(settings)
    origin = DirectoryOrigin(None, entrypoint=named)
    if not local:
        try:
            find_trial_class(named, settings.context_dir)
        except (ModuleNotFoundError, MissingDependencyError) as error:
            return _submit_unimported(named, settings, origin, error)
    return train_class(named, settings, origin)


def _submit_unimported(named: str, settings: Settings, origin: Origin, error: Exception) -> Experiment:
    """Submit what needs a package that is not here: the workers may have it, and check the program before it begins."""
    framework = framework_in_text(named, settings.context_dir or Path.cwd())
    if framework is None:
        raise error
    loaded = load_config(settings.config, local=False, framework=framework.name, trains=named)
    check_supported(loaded, settings, framework.name)
    from det_native.experimental.cluster import submit

    cause = error if isinstance(error, ModuleNotFoundError) else error.__context__
    package, _, module = (getattr(cause, "name", None) or "").partition(".")
    if not loaded.environment.packages:
        session = connect(settings.master_url)
        # A module that a package lacks here is missing there, too, where the package is of the same version.
        if not can_import(session, package) or (module and have_it_as_here(session, package)):
            raise error
    print(f"{named} is not checked here, but on the workers only: {error}")
    return submit("create", None, loaded, framework.name, settings, origin)


def changed(config: Path, changes: Sequence[str]) -> dict[str, Any]:
    """Return the configuration of a file with some fields set.

    Raises
    ------
    ArgumentError
        If one is not of the form ``path=value``, or lies in what is no section.
    """
    try:
        found = parse_yaml(config.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{config} cannot be used: {error}") from error
    if not isinstance(found, dict):
        raise ArgumentError(f"{config} must hold a mapping of fields, not {type(found).__name__}.")
    for change in changes:
        path, separator, text = change.partition("=")
        if not separator or not path:
            raise ArgumentError(f"--config {change}: write PATH=VALUE, such as searcher.max_trials=4.")
        *sections, name = path.split(".")
        section = found
        for each in sections:
            section = section.setdefault(each, {})
            if not isinstance(section, dict):
                raise ArgumentError(f"--config {change}: {each} is no section of {config}.")
        try:
            section[name] = parse_yaml(text)
        except yaml.YAMLError as error:
            raise ArgumentError(f"--config {change}: the value cannot be used: {error}") from error
    return found
