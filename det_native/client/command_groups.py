"""Groups of commands that also know them by other names."""

from __future__ import annotations

from typing import ClassVar

import click

from det_native.client.checkpoint_commands import checkpoint as checkpoint_group
from det_native.client.trial_commands import trial as trial_group


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

    elsewhere: ClassVar[dict[str, click.Group]] = {
        "list-trials": trial_group,
        "lt": trial_group,
        "list-checkpoints": checkpoint_group,
        "lc": checkpoint_group,
    }

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command of a name, or of the one that it stands for."""
        if name in self.elsewhere:
            return self.elsewhere[name].get_command(context, "list")
        return super().get_command(context, name)
