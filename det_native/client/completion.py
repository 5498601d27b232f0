"""What a shell completes: experiments, trials, uuids and states, of a master that answers within a moment."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

if TYPE_CHECKING:
    from det_native.client.catalog import Found
    from det_native.schema import rest

SHELLS = ("bash", "zsh", "fish")
#: Name of the variable by which the shell asks ``det`` for completions.
VARIABLE = "_DET_COMPLETE"
#: Somebody waits with a finger on the tab key.
PATIENCE_SECONDS = 1.0
#: Of so many experiments, the newest ones.
MOST = 50


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    r"""Print the script that has SHELL complete what belongs to `det`.

    \b
    bash: eval "$(det completion bash)" in ~/.bashrc
    zsh:  eval "$(det completion zsh)" in ~/.zshrc
    fish: det completion fish > ~/.config/fish/completions/det.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(context.find_root().command, {}, "det", VARIABLE).source())


def complete_experiment(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the experiments whose names begin so, newest first, each with what it is called."""
    return _items(lambda: ((str(one.id), _said(one)) for one in _experiments(context).experiments), incomplete)


def complete_trial(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the trials whose names begin so: those of the experiment that is named, else the experiments."""
    from det_native.schema.trial_names import trial_name

    begun, mark, _ = incomplete.partition(".")

    def trials() -> Iterable[tuple[str, str]]:
        listed = _experiments(context)
        for one in listed.experiments:
            if mark and str(one.id) == begun and listed.source is not None:
                trials = listed.source.trials(one.id)
                return [(trial_name(one.id, trial.shown_number), trial.state.value) for trial in trials]
        return [(trial_name(one.id, 1), _said(one)) for one in listed.experiments]

    return _items(trials, incomplete)


def complete_checkpoint(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the checkpoints of the newest experiments whose uuids begin so."""
    from det_native.schema.states import CheckpointState

    def checkpoints() -> Iterable[tuple[str, str]]:
        listed = _experiments(context)
        for one in listed.experiments:
            for found in listed.source.checkpoints(experiment_id=one.id) if listed.source is not None else ():
                if found.state is CheckpointState.COMPLETED:
                    yield found.uuid, f"batch {found.batch} of experiment {one.id}"

    return _items(checkpoints, incomplete)


def complete_state(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the states of experiments that begin so."""
    from det_native.schema.states import ExperimentState

    words = (state.value for state in ExperimentState if state is not ExperimentState.DELETED)
    return [CompletionItem(word) for word in words if word.lower().startswith(incomplete.lower())]


def _load() -> None:
    from det_native.client.catalog import find_experiments
    from det_native.schema.trial_names import trial_name

    del find_experiments, trial_name


def _experiments(context: click.Context) -> Found:
    from det_native.client.catalog import Found, find_experiments
    from det_native.client.remote.target import is_ssh

    root = context.find_root()
    master = root.params.get("master") or os.environ.get("DET_MASTER") or os.environ.get("DET_MASTER_ADDR")
    # A machine that is reached by SSH takes longer than a tab key may.
    return Found([]) if master and is_ssh(master) else find_experiments(master, MOST)


def _said(one: rest.Experiment) -> str:
    from det_native.client.state_words import experiment_word

    return f"{one.name}: {experiment_word(one)}"


def _items(find: Callable[[], Iterable[tuple[str, str]]], incomplete: str) -> list[CompletionItem]:
    """Return what is found within a moment; nothing where it takes longer, or fails, and never a word of why."""
    found: list[CompletionItem] = []

    def collect() -> None:
        with suppress(Exception):
            for value, said in find():
                if value.startswith(incomplete):
                    found.append(CompletionItem(value, help=" ".join(said.split())))

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        _load()  # it takes a while, of which the master is not to have less
        thread = threading.Thread(target=collect, name="det-completion", daemon=True)
        thread.start()
        thread.join(PATIENCE_SECONDS)
    return list(found)
