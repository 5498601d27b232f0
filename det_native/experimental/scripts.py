"""A script that knows nothing of det_native, named by the ``entrypoint`` of a configuration."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from det_native.client.handles import Experiment
from det_native.errors import ArgumentError, UnsupportedFeatureError
from det_native.experimental.origin import Origin
from det_native.experimental.settings import ConfigInput, Settings, by_master, check_supported
from det_native.frameworks import known_frameworks
from det_native.schema.lengths import UNTOLD
from det_native.schema.loading import load_config
from det_native.schema.manifests import CallKind, Framework
from det_native.schema.roles import STRATEGY

if TYPE_CHECKING:
    from det_native.capture.model import Capture


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


def script_of(settings: Settings) -> list[str] | None:
    """Return the script that the configuration's ``entrypoint`` names, with its arguments; None if it names none."""
    entrypoint = load_config(settings.config, local=True, warn=False).entrypoint
    words = _words(entrypoint or ())
    if words and Path(words[0]).name.startswith("python"):
        words = words[1:]
    return words if words and words[0].endswith(".py") else None


def check_launcher(entrypoint: object) -> None:
    """Refuse an entrypoint that starts a script by a launcher.

    Raises
    ------
    ArgumentError
        With what to write.
    """
    script = launched_script(entrypoint) if isinstance(entrypoint, str | list) else None
    if script is not None:
        raise ArgumentError(
            f"entrypoint: {entrypoint!r} of the configuration starts a script by a launcher. Here the processes of a "
            "trial are started for you, as many as resources.slots_per_trial says: write  "
            f"entrypoint: {script}"
        )


def launched_script(entrypoint: str | list[str]) -> str | None:
    """Return the script, with its arguments, that an entrypoint has a launcher start; None if it has none.

    Parameters
    ----------
    entrypoint : str or list of str
        Such as ``python3 -m determined.launch.torch_distributed -- python3 train.py --lr 0.1``.
    """
    words = _words(entrypoint)
    first = next((place for place, word in enumerate(words) if word.endswith(".py")), 0)
    launcher = [word for word in words[:first] if not Path(word).name.startswith("python")]
    return shlex.join(words[first:]) if launcher else None


def _words(entrypoint: str | Sequence[Any]) -> list[str]:
    """Return the words of an entrypoint.

    Raises
    ------
    ArgumentError
        If a quotation mark is not closed.
    """
    try:
        return shlex.split(entrypoint) if isinstance(entrypoint, str) else [str(word) for word in entrypoint]
    except ValueError as error:
        raise ArgumentError(f"entrypoint: {entrypoint!r} of the configuration cannot be read: {error}.") from None


def train_script(words: list[str], settings: Settings) -> Experiment:
    """Train a script that lies in the context directory.

    Parameters
    ----------
    words : list of str
        Its path there, and its arguments.
    settings : Settings

    Raises
    ------
    ArgumentError
        If there is no such script.
    """
    folder = settings.context_dir or Path.cwd()
    script = folder / words[0]
    if not script.is_file():
        raise ArgumentError(f"entrypoint names the script {words[0]!r}, but there is no such file in {folder}.")
    settings = replace(settings, command=(str(script), *words[1:]))
    if settings.place.local:
        settings = by_master(settings, f"The script {words[0]}")
    framework = next(one.name for one in known_frameworks() if one.scripts)
    written = load_config(settings.config, local=True, warn=False).entrypoint
    loaded = load_config(
        settings.config,
        framework=framework,
        defaults={"searcher.metric": "loss", "searcher.max_length": {"batches": UNTOLD.units}},
        trains=written,
    )
    slots = loaded.resources.slots_per_trial
    if slots > 1 and loaded.distributed.strategy != STRATEGY:
        raise UnsupportedFeatureError(
            f"resources.slots_per_trial: {slots}, and entrypoint names the script {words[0]}, which has 1 slot here. "
            f"Where it calls tf.estimator.train_and_evaluate(), distributed.strategy: {STRATEGY} gives it a process "
            "with a role for each slot. For other training call init() or create() of det_native.experimental in it, "
            f"with this configuration but without entrypoint, and run it: python {words[0]}."
        )
    check_supported(loaded, settings, framework)
    if settings.place.notice:
        print(settings.place.notice)
    from det_native.experimental.cluster import train_by_master

    return train_by_master("train_and_evaluate", None, loaded, framework, settings, ScriptOrigin(None))


def asks_for_roles(config: ConfigInput) -> bool:
    """Return whether a configuration asks for processes with roles; one that is not valid is told of elsewhere."""
    from det_native.errors import ConfigurationError

    try:
        return load_config(config, local=True, warn=False).distributed.strategy == "tf_config"
    except ConfigurationError:
        return False
