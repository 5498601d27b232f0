"""What is to be known of one framework, as plain data: what needs the framework itself is named, and loaded on use."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from det_native.imports import load


@dataclass(frozen=True)
class Description:
    """One framework that trials train with.

    A reference is text such as ``"package.module:name"``. The module that holds a description imports no framework.

    Attributes
    ----------
    name : str
        As manifests and the REST interface have it; it matches ``schema.manifests.FRAMEWORK_NAME``.
    title : str
        As messages have it.
    module : str
        What is imported for it; its ``__version__`` goes into checkpoints.
    install : str
        What ``pip install`` takes to bring `module`.
    api : str
        The package that users import.
    harness : str
        Reference of its ``det_harness.frameworks.base.FrameworkHarness``: how it is warmed up, trains, loads
        checkpoints, and keeps its streams of random numbers.
    checkpoint_format : str
        How the weights are kept, in Determined's words.
    trial_class : str
        Reference of the base of its trial classes; empty where it has none.
    calls : tuple of str
        References of the classes of training calls that its native contexts hand over.
    init : str
        Module whose ``init()`` makes a native context, also found as ``det.experimental.<its last name>``.
    context_calls : frozenset of str
        Training calls that are methods of that context; without any, they are methods of the model.
    variables : tuple of str
        Beginnings of the names of environment variables that it reads while it is imported.
    variables_here : str
        Reference of what returns the environment variables by which a worker imports it as this process has; they go
        with an experiment unless its configuration says otherwise.
    deciding_variables : tuple of str
        Names of the variables that `variables_here` may return, for those who do not import it.
    gradient_means : tuple of str
        By what ranks can average its gradients: what they use by themselves (``torch`` or ``ring``, see
        ``det_harness.ranks``), and ``horovod``, for ``distributed.backend``. Without any it trains on one slot.
    one_slot : str
        Why it trains on one slot, and what trains on several: a sentence without its full stop.
    mixed_precision : bool
        Whether ``optimizations.mixed_precision`` has the model compute in half precision.
    without_effect : mapping
        Fields of the configuration that change nothing with it, each with the reason.
    not_in_one_process : str
        Why ``resources.native_parallel`` is refused: what of it cannot spread its batches over the slots of one
        process. Empty where it can.
    whole_epochs : bool
        Whether an epoch ends with a smaller batch, where it does not come out even.
    running_means : bool
        Whether a row of training metrics has the means over the epoch so far, not the values of its batch; validation
        metrics then are named ``val_...``.
    own_progress : bool
        Whether it shows the progress of a local run by itself.
    own_process : bool
        Whether it must not train in the process of its caller, on one slot or as a quick check either: what it does to
        the process would stay in a kernel.
    roles : bool
        Whether several processes of a trial have roles (``distributed.strategy: tf_config``), by which it trains on
        several slots.
    scripts : bool
        Whether it trains a script that knows nothing of det_native: the call that trains is its own.
    own_length : bool
        Whether that call says how long to train, and what a batch is, so that no configuration has to.
    own_steps : bool
        Whether its code counts steps of its own: a length in epochs or records is in the code's unit, too.
    gpu_package : str
        What ``pip install`` takes, without a version, to bring the framework with what it needs on GPUs of NVIDIA.
    gpu_index : str
        Address of an index with a folder of builds for each CUDA (``cu126``); empty where there is a single build.
    gpu_remedy : str
        Command that puts a build that sees the GPUs in the place of another one; it has ``{python}`` and ``{version}``.
    """

    name: str
    title: str
    module: str
    install: str
    api: str
    harness: str = ""
    checkpoint_format: str = ""
    trial_class: str = ""
    calls: tuple[str, ...] = ()
    init: str = ""
    context_calls: frozenset[str] = frozenset()
    variables: tuple[str, ...] = ()
    variables_here: str = ""
    deciding_variables: tuple[str, ...] = ()
    gradient_means: tuple[str, ...] = ()
    one_slot: str = ""
    mixed_precision: bool = False
    without_effect: Mapping[str, str] = field(default_factory=dict)
    not_in_one_process: str = ""
    whole_epochs: bool = False
    running_means: bool = False
    own_progress: bool = False
    own_process: bool = False
    roles: bool = False
    scripts: bool = False
    own_length: bool = False
    own_steps: bool = False
    gpu_package: str = ""
    gpu_index: str = ""
    gpu_remedy: str = ""

    @property
    def trains(self) -> bool:
        """Whether there is anything yet that it trains."""
        return bool(self.trial_class or self.calls)

    @property
    def trial_class_title(self) -> str:
        """The base of its trial classes as users write it: ``"det.pytorch.PyTorchTrial"``."""
        api = self.api.removeprefix("det_native.")
        owner = api if api == self.api else f"det.{api}"
        return f"{owner}.{self.trial_class.partition(':')[2]}"

    def exchanges_by_horovod(self, backend: str) -> bool:
        """Return whether several slots are connected by Horovod where ``distributed.backend`` has this value."""
        return backend == "horovod" and "horovod" in self.gradient_means

    def gpu_command(self, python: str, version: str) -> str:
        """Return the command that has this framework see the GPUs, of an interpreter; empty where none is known."""
        # A local part such as +cpu says for what the present one was built.
        public = version.partition("+")[0]
        return f"`{self.gpu_remedy.format(python=shlex.quote(python), version=public)}`." if self.gpu_remedy else ""

    def takes(self, payload: object) -> bool:
        """Return whether `payload`, a trial class or a captured call, is one of its; nothing is imported for it."""
        kinds = payload.__mro__ if isinstance(payload, type) else type(payload).__mro__
        wanted = (self.trial_class,) if isinstance(payload, type) else self.calls
        return any(f"{kind.__module__}:{kind.__qualname__}" in wanted for kind in kinds)


def resolve(reference: str) -> object:
    """Return what a reference names, imported if need be."""
    module, _, name = reference.partition(":")
    found: object = getattr(load(module), name)
    return found
