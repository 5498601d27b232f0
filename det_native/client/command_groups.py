"""Groups of commands that also know them by other names, and load each where it is asked for."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, ClassVar

import click


class Commands(UserDict[str, Any]):
    """Commands by name: ``"module:attribute"`` of this package until one is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        command = self.data[name]
        if isinstance(command, str):
            module, _, attribute = command.partition(":")
            command = self.data[name] = getattr(import_module(f"{__package__}.{module}"), attribute)
        found: click.Command = command
        return found


class Group(click.Group):
    """A group that also takes the short and the older names of its commands."""

    other_names: ClassVar[dict[str, str]] = {
        "e": "experiment",
        "exp": "experiment",
        "t": "trial",
        "c": "checkpoint",
        "s": "slot",
        "ls": "list",
        "activate": "resume",
        "cancel": "stop",
    }

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command of a name, or of the one that it stands for."""
        return super().get_command(context, self.other_names.get(name, name))


class ExperimentGroup(Group):
    """Takes Determined's names for what is listed of an experiment, too."""

    elsewhere: ClassVar[Commands] = Commands(
        {
            **dict.fromkeys(("list-trials", "lt"), "trial_commands:list_trials"),
            **dict.fromkeys(("list-checkpoints", "lc"), "checkpoint_commands:list_checkpoints"),
        }
    )

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command of a name, or of the one that it stands for."""
        return self.elsewhere[name] if name in self.elsewhere else super().get_command(context, name)
