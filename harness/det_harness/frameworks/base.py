"""What the harness does with a framework, and where it is found: each has a subclass, which its description names.

The module of a subclass imports its framework, and the rest of its folder, only inside functions: a description says
where it is, and whoever asks for one thing of it (its random numbers, say) must not pay for all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, ClassVar

from det_harness.trial.after_training import weights_in
from det_native.callsite import left_on_purpose, place_in, runs_after_loop
from det_native.errors import ArgumentError, CheckpointError, TrialDefinitionError, UnsupportedFeatureError
from det_native.frameworks import framework_taking, get_framework, trial_class_titles
from det_native.past_history import PastHistory
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_harness.frameworks.gpus import GpuSight
    from det_harness.program.calls import ProgramSource
    from det_harness.ranks.communicator import Communicator
    from det_harness.trial.services import Controller, Outcome, Services
    from det_native.schema.job import Gang


class LoopController:
    """Runs one trial in a loop of the user's, which asks for its batches.

    Attributes
    ----------
    outcome : Outcome or None
        How the training ended; None while it goes on, and after an exception in the loop's body.
    on_purpose : bool
        Whoever closes the batches knows that the loop was not left by an exception; otherwise the loop's frame tells.
    left_at : (code, int) or None
        Where the loop's frame stood when it was left, see ``callsite.came_through``.
    explained : callable
        Returns a block that says what an exception of the loop's body means.
    """

    explained: Callable[[], AbstractContextManager[None]]

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.on_purpose = False
        self.left_at: tuple[CodeType, int] | None = None
        self._left = False
        self._asker: FrameType | None = None

    def batches(self) -> Iterator[Any]:
        """Yield the batches that are left, to the end, and do between them what is due.

        An iterator that is closed before that has been left by the user's code; it ends the training in order, unless
        an exception left it.
        """
        raise NotImplementedError

    def _leaves(self) -> bool:
        """Whether the loop, whose iterator is being closed, is left in order."""
        self._left = self.on_purpose or left_on_purpose(self._asker)
        if self._left and self._asker is not None:
            self.left_at = place_in(self._asker)
        return self._left

    def _warn_of_code_after_loop(self, services: Services) -> None:
        """Warn where the notebook runs code after the loop that plain code would not run."""
        warning = runs_after_loop(self._asker) if self._asker is not None and not services.communicator.rank else ""
        if warning:
            services.reporter.warning(warning)


class RandomStreams:
    """The global random number generators of a framework; by default it has none.

    Attributes
    ----------
    travel : bool
        Whether their states in the notebook go with a program that is sent: then a captured call draws where the
        program has come to, as the framework by itself does. Others begin with the trial's seed.
    """

    travel: ClassVar[bool] = False

    def seed(self, seed: int, *, own_process: bool) -> None:
        """Seed them. What cannot be put back is seeded only in a process that is a worker's own."""

    def begin(self, seed: int) -> None:
        """Seed those that have no state to be saved as long as they have no seed."""

    def capture(self) -> dict[str, Any]:
        """Return their states, by names that no other framework uses: plain values, and arrays of numpy."""
        return {}

    def apply(self, state: dict[str, Any]) -> None:
        """Put back what `capture` returned; `state` may lack some, and has those of other frameworks too."""


class FrameworkHarness:
    """What the harness asks of a framework. A framework overrides what it does differently, or at all."""

    # The name of the framework; set where it is made.
    streams = RandomStreams()
    name: str = ""

    def warm_up(self, device: str) -> None:
        """Import what every worker needs; compute nothing and leave no thread: workers are forked from this process.

        Parameters
        ----------
        device : str
            ``"cuda"`` keeps to what touches no GPU.
        """

    def prepare_process(self) -> None:
        """Set up the process of a worker for good, before anything of the user's runs; never the user's own process."""

    def joined(
        self, gang: Gang | None, config: Mapping[str, Any], folder: Path, source: ProgramSource | None
    ) -> AbstractContextManager[Communicator]:
        """Join the processes of a trial for the block; gives what connects them.

        Parameters
        ----------
        gang : Gang or None
            None where there is nobody to join.
        config : mapping
            The experiment configuration.
        folder : Path
            That of the whole run.
        source : ProgramSource or None
            Says which code is the user's, for messages.
        """
        from det_harness.ranks.group import joined

        return joined(gang, self.name, config, source=source)

    def calls_taken(self) -> AbstractContextManager[None]:
        """Have training calls that are not det_native's reach the program's host in the block."""
        return nullcontext()

    def use_threads(self, threads: int) -> None:
        """Compute with so many threads from now on."""

    def gpu_sight(self) -> GpuSight | None:
        """Return what the framework sees of the GPUs that this process may use; None where it cannot be asked."""
        return None

    def check(self, trial_class: type) -> None:
        """Refuse a trial class that cannot be trained."""

    def controller_class(self) -> Any:
        """Return what trains a trial class by itself; what a trial class may name instead is a subclass of it."""
        return None

    def note_end(self, call: Any, directory: Path) -> None:
        """Make of the kernel what a training leaves beside its objects; its last checkpoint is in `directory`."""

    def begins_with_seed(self, payload: Any) -> bool:
        """Whether the training of a trial class, or of a captured call, begins with random numbers of its seed."""
        return isinstance(payload, type) or not self.streams.travel

    def build(self, call: Any) -> None:
        """Make what the objects of a captured call lack until their first batch, where the call itself would.

        The random numbers for it are drawn from the global streams, which stand afterwards as after the call of a
        plain run.
        """

    def controller(self, payload: Any, services: Services) -> Controller:
        """Return what trains a trial class, or a captured call, in a loop that is not the user's."""
        raise untrainable(payload)

    def loop(self, call: Any, services: Services) -> LoopController:
        """Return what trains a captured call in the user's own loop."""
        raise untrainable(call)

    def begin_loop(self, context: Any, frame: FrameType | None) -> None:
        """Take the snapshot of a loop of the user's own that begins; `frame` is the loop's."""

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
        """Return what a trial class or a captured call makes, with the weights of the checkpoint in `directory`."""
        raise untrainable(payload)

    def loadable_path(self, directory: Path, load: Callable[[], Any], made: Path) -> Path:
        """Return what the framework's own functions load the trained model from; by default the folder of the weights.

        Parameters
        ----------
        directory : Path
            The files of a checkpoint.
        load : callable
            Returns what :meth:`load` does for it.
        made : Path
            An existing folder for what has to be written first.
        """
        return weights_in(directory)

    def at_home(self, loaded: Any) -> Any:
        """Return what `load` gave in a program that has run again, as an object of this process's own classes."""
        return loaded

    def moved(self, loaded: Any, map_location: Any) -> Any:
        """Return a loaded model on the device that ``map_location`` of ``torch.load()`` says."""
        raise ArgumentError("map_location= is for PyTorch; this checkpoint is of another framework. Leave it out.")

    def load_tagged(self, directory: Path, tags: list[str]) -> Any:
        """Return the SavedModel of a checkpoint by its tags."""
        raise ArgumentError("tags= is for SavedModels of an Estimator; this checkpoint has none. Leave it out.")

    @property
    def export_formats(self) -> tuple[str, ...]:
        """The formats that a loaded model can be exported in."""
        return ()

    def export(self, loaded: Any, directory: Path, target: Path, format: str, options: Mapping[str, Any]) -> Path:
        """Write a loaded model in one of :attr:`export_formats`; return the file or folder."""
        raise NotImplementedError

    def load_into(self, call: Any, directory: Path) -> list[str]:
        """Put weights, optimizers and counters of a checkpoint into the objects of a captured call, or change nothing.

        They are those that local training would have left; callbacks, and what they lead to, too. Random streams and
        files stay as they are.

        Returns
        -------
        list of str
            A sentence for each object that the training has changed and that stays as it was.

        Raises
        ------
        CheckpointError
            If weights do not fit; the rest is put in place all the same, and the sentences are notes of the error.
        """
        raise without_objects(self.name)

    def note_names(self, call: Any) -> None:
        """Look at what functions and callbacks of a captured call lead to in the program, before it trains elsewhere.

        :meth:`load_into` gives that what the training has made of it.
        """

    def past_result(self, call: Any, history: PastHistory, experiment: Any) -> Any:
        """Return what a captured call has returned that was made before."""
        return experiment

    def load_into_objects(self, target: Any, optimizer: Any, directory: Path, environment: TrialEnvironment) -> None:
        """Put them into objects that the user names.

        Parameters
        ----------
        target
            A model, or several in a list or dictionary.
        optimizer
            An optimizer or several, None for that of the model.
        directory : Path
            The checkpoint's files.
        environment : TrialEnvironment
            The trial that the checkpoint is of.

        Raises
        ------
        ArgumentError
            If they are none of this framework's.
        CheckpointError
            If something does not fit.
        """
        raise without_objects(self.name)


def harness_of(name: str) -> FrameworkHarness:
    """Return the harness of a framework by its name.

    Raises
    ------
    MissingDependencyError
        If this Python does not know the framework.
    """
    return _made(get_framework(name).harness, name)


def harness_for(payload: Any) -> FrameworkHarness:
    """Return the harness of the framework that a trial class or a captured call is of.

    Raises
    ------
    UnsupportedFeatureError
        If it is of none.
    """
    description = framework_taking(payload)
    if description is None:
        raise untrainable(payload)
    return _made(description.harness, description.name)


@cache
def _made(reference: str, framework: str) -> FrameworkHarness:
    module, _, name = reference.partition(":")
    harness: FrameworkHarness = getattr(import_module(module), name)()
    harness.name = framework
    return harness


def controller_class_of(trial_class: Any, harness: FrameworkHarness) -> Any:
    """Return what trains a trial class: the framework's own controller, or a subclass that the trial class names.

    Raises
    ------
    TrialDefinitionError
        If it names something else.
    """
    found, usual = trial_class.trial_controller_class, harness.controller_class()
    if not isinstance(found, type) or not issubclass(found, usual):
        raise TrialDefinitionError(
            f"{trial_class.__name__}.trial_controller_class is {found!r}; leave it out, or set it to a subclass of "
            f"{usual.__module__}.{usual.__name__}."
        )
    return found


def check_methods(trial_class: type, methods: Iterable[str]) -> None:
    """Refuse a trial class that lacks methods, or has one of these with arguments."""
    missing = sorted(getattr(trial_class, "__abstractmethods__", ()))
    if missing:
        lacks = ", ".join(f"{one}()" for one in missing)
        raise TrialDefinitionError(f"{trial_class.__name__} lacks {lacks}; define it in the class.")
    for method in methods:
        function = inspect.getattr_static(trial_class, method)
        if inspect.isfunction(function) and len(inspect.signature(function).parameters) != 1:
            raise TrialDefinitionError(
                f"{trial_class.__name__}.{method}{inspect.signature(function)} must take (self) only; hyperparameters "
                "are in self.context."
            )


def without_objects(framework: str) -> UnsupportedFeatureError:
    """Return the error for a framework whose models are no objects of a process."""
    return UnsupportedFeatureError(
        f"load_into() puts weights into Keras models and PyTorch modules, and an experiment of {framework} has "
        "neither: experiment.top_checkpoint().load() makes its model with the weights."
    )


def untrainable(payload: Any) -> UnsupportedFeatureError:
    """Return the error for what no framework trains in this version."""
    name = payload.__name__ if isinstance(payload, type) else type(payload).__name__
    return UnsupportedFeatureError(
        f"This version of det_native cannot train {name}: create() takes a subclass of {trial_class_titles()}."
    )


def with_notes(error: CheckpointError, sentences: Iterable[str]) -> CheckpointError:
    """Return an error that has sentences as notes."""
    for sentence in sentences:
        error.add_note(sentence)
    return error
