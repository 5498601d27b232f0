"""What the ``entrypoint`` of a configuration is, and how what is no Trial class is trained: a script, or a command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from det_native.client.handles import Experiment
from det_native.core.command import CommandCall, is_python, launched, script_of, words_of
from det_native.errors import ArgumentError, UnsupportedFeatureError
from det_native.experimental.origin import Origin
from det_native.experimental.settings import ConfigInput, Settings, by_master, check_supported
from det_native.frameworks import known_frameworks
from det_native.schema.lengths import UNTOLD
from det_native.schema.loading import load_config
from det_native.schema.manifests import CallKind, Framework, Program
from det_native.schema.roles import STRATEGY

if TYPE_CHECKING:
    from det_native.capture.model import Capture

_CLASS = re.compile(r"[\w.]+:\w+")
_LOSS = {"searcher.metric": "loss", "searcher.max_length": {"batches": UNTOLD.units}}


@dataclass(frozen=True)
class ScriptOrigin(Origin):
    """A call that a script makes on the worker, whatever that is: nothing of it has run here."""

    has_code: ClassVar[bool] = False

    def why_no_program(self) -> str:
        """Return an empty text: the script is the program."""
        return ""

    def capture(self, kind: CallKind, payload: Any, framework: Framework, settings: Settings) -> Capture:
        """Return the script and its arguments; the files are those of the context directory."""
        from det_native.capture.call import capture_call

        return capture_call(kind, framework=framework, context_dir=settings.context_dir, command=settings.command)


@dataclass(frozen=True)
class CommandOrigin(ScriptOrigin):
    """A command that a worker starts.

    Attributes
    ----------
    words : tuple of str
    """

    words: tuple[str, ...] = ()

    def capture(self, kind: CallKind, payload: Any, framework: Framework, settings: Settings) -> Capture:
        """Return the command; the files are those of the context directory."""
        from det_native.capture.model import Capture

        return Capture(Program(kind="command", framework=framework, command=self.words))


def entrypoint_words(entrypoint: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the words of an entrypoint, empty if there is none or a single one that names a Trial class.

    Raises
    ------
    ArgumentError
        If a quotation mark is not closed, or a list is empty.
    """
    if entrypoint is None or trial_class_in(entrypoint):
        return ()
    try:
        words = words_of(entrypoint)
    except ValueError as error:
        raise ArgumentError(f"entrypoint: {entrypoint!r} of the configuration cannot be read: {error}.") from None
    if not words:
        raise ArgumentError(f"entrypoint: {entrypoint!r} of the configuration names nothing.")
    return words


def trial_class_in(entrypoint: str | Sequence[str] | None) -> str | None:
    """Return the Trial class that an entrypoint names, by itself or for a launch layer of Determined.

    Examples
    --------
    >>> trial_class_in("python3 -m determined.launch.torch_distributed --trial model_def:MyTrial")
    'model_def:MyTrial'
    """
    if isinstance(entrypoint, str) and _CLASS.fullmatch(entrypoint):
        return entrypoint
    try:
        words = launched(words_of(entrypoint or ()))
    except ValueError:
        return None
    named = words is not None and len(words) == 2 and words[0] == "--trial" and _CLASS.fullmatch(words[1])
    return words[1] if words is not None and named else None


def train_entrypoint(settings: Settings) -> Experiment | None:
    """Train the script or the command that a configuration names; None if its entrypoint is neither.

    Raises
    ------
    ArgumentError
        If there is no such script, or a command cannot be started.
    """
    loaded = load_config(settings.config, local=True, warn=False)
    words = entrypoint_words(loaded.entrypoint)
    if not words:
        return None
    # A process with a role of TF_CONFIG is one of the worker's own.
    in_role = loaded.distributed.strategy == STRATEGY and len(words) > 1 and is_python(words[0])
    script = words[1:] if in_role and words[1].endswith(".py") else words
    return _train_script(list(script), settings) if script[0].endswith(".py") else _train_command(words, settings)


def _train_script(words: list[str], settings: Settings) -> Experiment:
    """Train a script that lies in the context directory, in the worker's own process."""
    folder = settings.context_dir or Path.cwd()
    script = folder / words[0]
    if not script.is_file():
        raise _missing(words[0], folder)
    settings = replace(settings, command=(str(script), *words[1:]))
    if settings.place.local:
        settings = by_master(settings, f"The script {words[0]}")
    framework = next(one.name for one in known_frameworks() if one.scripts)
    written = load_config(settings.config, local=True, warn=False).entrypoint
    loaded = load_config(settings.config, framework=framework, defaults=_LOSS, trains=written)
    slots = loaded.resources.slots_per_trial
    if slots > 1 and loaded.distributed.strategy != STRATEGY:
        raise UnsupportedFeatureError(
            f"resources.slots_per_trial: {slots}, and entrypoint names the script {words[0]}, which has 1 slot here. "
            f"Where it calls tf.estimator.train_and_evaluate(), distributed.strategy: {STRATEGY} gives it a process "
            f"with a role for each slot. A command has all of them, and starts processes itself: entrypoint: torchrun "
            f"{words[0]}"
        )
    return _submit("train_and_evaluate", loaded, framework, settings, ScriptOrigin(None))


def _train_command(words: tuple[str, ...], settings: Settings) -> Experiment:
    """Train by a command, which a worker starts in the context directory."""
    call = CommandCall(words)
    folder = settings.context_dir or Path.cwd()
    if settings.place.local:
        settings = by_master(settings, f"The command {call.title}")
    _check_script(call, folder)
    written = load_config(settings.config, local=True, warn=False).entrypoint
    loaded = load_config(settings.config, framework=CommandCall.framework, defaults=_LOSS, trains=written)
    origin = CommandOrigin(None, words=words)
    return _submit("command", loaded, CommandCall.framework, replace(settings, context_dir=folder.resolve()), origin)


def _submit(kind: CallKind, loaded: Any, framework: Framework, settings: Settings, origin: Origin) -> Experiment:
    check_supported(loaded, settings, framework)
    if settings.place.notice:
        print(settings.place.notice)
    from det_native.experimental.cluster import train_by_master

    return train_by_master(kind, None, loaded, framework, settings, origin)


def _check_script(call: CommandCall, folder: Path) -> None:
    """Refuse a command whose script is not there; say what is not known of one that trains by itself."""
    script = script_of(call.words)
    if script is not None and not (folder / script).is_file():
        raise _missing(script, folder)
    if script is not None and "train_and_evaluate(" in (folder / script).read_text(encoding="utf-8", errors="replace"):
        print(
            f"{script} calls train_and_evaluate(): a command has no metrics of that. For those, write  "
            f"entrypoint: {script}"
        )


def _missing(script: str, folder: Path) -> ArgumentError:
    return ArgumentError(f"entrypoint names the script {script!r}, but there is no such file in {folder}.")


def asks_for_roles(config: ConfigInput) -> bool:
    """Return whether a configuration asks for processes with roles; one that is not valid is told of elsewhere."""
    from det_native.errors import ConfigurationError

    try:
        return load_config(config, local=True, warn=False).distributed.strategy == "tf_config"
    except ConfigurationError:
        return False
