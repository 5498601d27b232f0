"""``det.pytorch.init()`` and ``det.pytorch.Trainer``: a PyTorchTrial that the code itself makes and trains."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.imports import load
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.trial import PyTorchTrial
from det_native.schema.environment import Ranks, TrialEnvironment

if TYPE_CHECKING:
    from det_native.core.context import Context
    from det_native.core.distributed import DistributedContext

POLICIES = ("best", "all", "none")


class TrainUnit(ABC):
    """A length of a training: :class:`Batch` or :class:`Epoch`.

    Parameters
    ----------
    value : int
        How many, at least 1.
    """

    def __init__(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ArgumentError(f"det.pytorch.{type(self).__name__}({value!r}): give a whole number of at least 1.")
        self.value = value

    @abstractmethod
    def batches(self, epoch_length: int) -> int:
        """Return it in batches.

        Parameters
        ----------
        epoch_length : int
            The batches of an epoch on each slot.
        """

    def should_stop(self, step_num: int) -> bool:
        """Return whether it is reached after so many of its units."""
        return step_num >= self.value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, TrainUnit) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self), self.value))


class Batch(TrainUnit):
    """So many batches on each slot."""

    def batches(self, epoch_length: int) -> int:
        """Return the number."""
        return self.value


class Epoch(TrainUnit):
    """So many passes over the training data."""

    def batches(self, epoch_length: int) -> int:
        """Return it in batches."""
        return self.value * epoch_length


@dataclass(frozen=True)
class Lengths:
    """What ``Trainer.fit()`` is told; None where it is not."""

    max_length: TrainUnit | None = None
    validation_period: TrainUnit | None = None
    checkpoint_period: TrainUnit | None = None
    reporting_period: TrainUnit | None = None
    checkpoint_policy: Literal["best", "all", "none"] | None = None
    step_zero_validation: bool | None = None


class TrainerContext(PyTorchRunContext):
    """The context of ``det.pytorch.init()``.

    Attributes
    ----------
    core : det.core.Context
        What the trial reports by; a ``core`` API beside the Trainer.
    """

    def __init__(self, environment: TrialEnvironment, core: Context) -> None:
        super().__init__(environment)
        self.core = core


@contextmanager
def init(
    *arguments: Any,
    hparams: Mapping[str, Any] | None = None,
    exp_conf: Mapping[str, Any] | None = None,
    distributed: DistributedContext | None = None,
    aggregation_frequency: int | None = None,
    enable_tensorboard_logging: bool = True,
) -> Iterator[TrainerContext]:
    """Give the context for a PyTorchTrial that the code makes by itself, for the block.

    Random numbers are those of the trial's seed in the block, and go on after it as before. In an experiment whose
    ``entrypoint`` is the script, hyperparameters and configuration are the trial's. The source is
    ``determined.pytorch.init`` of 0.38.

    Parameters
    ----------
    hparams : mapping, optional
        Hyperparameters outside of an experiment.
    exp_conf : mapping, optional
        The configuration outside of an experiment; its ``hyperparameters`` are those of `hparams`, where these are not
        given.
    distributed : DistributedContext, optional
        The processes of the trial, where the script has connected them. Behind a launch layer it is found.
    aggregation_frequency : int, optional
        How many batches are added up for a step of the optimizer; ``optimizations.aggregation_frequency`` by default.
    enable_tensorboard_logging : bool
        No effect: TensorBoard's files are written where code asks for it.

    Raises
    ------
    ArgumentError
        If an argument makes no sense.

    Examples
    --------
    >>> with det.pytorch.init(hparams={"lr": 0.1}) as context:
    ...     trainer = det.pytorch.Trainer(MyTrial(context), context)
    ...     trainer.fit(max_length=det.pytorch.Epoch(10), validation_period=det.pytorch.Epoch(1))
    """
    from det_native import core

    if arguments:
        raise ArgumentError(
            "det.pytorch.init() is for det.pytorch.Trainer, with its arguments by name (hparams=...). An experiment "
            "with objects of your own begins with det.experimental.pytorch.init(config)."
        )
    for name, value in (("hparams", hparams), ("exp_conf", exp_conf)):
        if value is not None and not isinstance(value, Mapping):
            raise ArgumentError(f"det.pytorch.init({name}={value!r:.40}): give a dictionary.")
    with core.init(distributed=distributed if distributed is not None else _of_launch_layer()) as context:
        environment = _environment(context, hparams, exp_conf, aggregation_frequency)
        rng = load("det_harness.trial.rng")
        with rng.preserved():
            rng.seed_all(environment.trial_seed)
            yield TrainerContext(environment, context)


class Trainer:
    """Trains a PyTorchTrial that the code has made.

    Parameters
    ----------
    trial : PyTorchTrial
    context : TrainerContext
        That of ``det.pytorch.init()``, which the trial was made with.

    Raises
    ------
    ArgumentError
        If one of them is something else.
    """

    def __init__(self, trial: PyTorchTrial, context: TrainerContext) -> None:
        if not isinstance(trial, PyTorchTrial):
            raise ArgumentError(
                f"Trainer({trial!r:.60}): give an object of a PyTorchTrial class, made with the context of "
                "det.pytorch.init()."
            )
        if not isinstance(context, TrainerContext):
            raise ArgumentError("Trainer(trial, context): give the context of `with det.pytorch.init() as context:`.")
        self._trial = trial
        self._context = context

    def configure_profiler(
        self, enabled: bool, sync_timings: bool = True, begin_on_batch: int = 0, end_after_batch: int | None = None
    ) -> None:
        """Measure what the processes use of their machine; the other arguments have no effect."""
        self._profile(enabled)

    def fit(
        self,
        checkpoint_period: TrainUnit | None = None,
        validation_period: TrainUnit | None = None,
        max_length: TrainUnit | None = None,
        reporting_period: TrainUnit | None = None,
        checkpoint_policy: Literal["best", "all", "none"] | None = None,
        latest_checkpoint: str | None = None,
        step_zero_validation: bool | None = None,
        test_mode: bool = False,
        profiling_enabled: bool = False,
    ) -> None:
        """Train to the end.

        What is not given, the configuration of the experiment says. A trial that is continued goes on from its latest
        checkpoint.

        Parameters
        ----------
        checkpoint_period : TrainUnit, optional
            A checkpoint after every so many; always at the end.
        validation_period : TrainUnit, optional
            A validation after every so many; always at the end.
        max_length : TrainUnit, optional
            How long. A stage of a search is as long as the search says.
        reporting_period : TrainUnit, optional
            Metrics of the training are gathered for so many batches at most; 100 by default.
        checkpoint_policy : {"best", "all", "none"}
            After which validations there is a checkpoint, too; ``"best"`` by default.
        latest_checkpoint : str, optional
            The checkpoint that the training goes on from, if not from that of the trial.
        step_zero_validation : bool
            A validation before the training; False by default.
        test_mode : bool
            One batch, one validation and one checkpoint.
        profiling_enabled : bool
            See :meth:`configure_profiler`.

        Raises
        ------
        ArgumentError
            If an argument makes no sense.
        TrialDefinitionError
            If the class breaks a rule of the API, or nothing says how long to train.
        """
        given = {
            "checkpoint_period": checkpoint_period,
            "validation_period": validation_period,
            "max_length": max_length,
            "reporting_period": reporting_period,
        }
        for name, unit in given.items():
            if unit is not None and not isinstance(unit, TrainUnit):
                raise ArgumentError(f"Trainer.fit({name}={unit!r}): give det.pytorch.Batch(n) or det.pytorch.Epoch(n).")
        if checkpoint_policy is not None and checkpoint_policy not in POLICIES:
            raise ArgumentError(
                f"Trainer.fit(checkpoint_policy={checkpoint_policy!r}): give one of {', '.join(POLICIES)}."
            )
        if profiling_enabled:
            self._profile(True)
        lengths = Lengths(
            **given,
            checkpoint_policy=checkpoint_policy,
            step_zero_validation=step_zero_validation,
        )
        load("det_harness.frameworks.torch.trainer").train(
            self._trial, self._context, lengths, latest_checkpoint, test=test_mode
        )

    def _profile(self, enabled: bool) -> None:
        if enabled:
            self._context.core.profiler.on()
        else:
            self._context.core.profiler.off()


def load_trial_from_checkpoint_path(
    path: str | os.PathLike[str],
    trial_class: type[PyTorchTrial] | None = None,
    trial_kwargs: Mapping[str, Any] | None = None,
    torch_load_kwargs: Mapping[str, Any] | None = None,
) -> PyTorchTrial:
    """Return a trial that was trained, with the weights of a checkpoint in its models.

    Parameters
    ----------
    path : str or path
        A folder that ``checkpoint.download()`` has filled.
    trial_class : type
        Its class. A checkpoint of ``det.experimental.create()`` is loaded by ``checkpoint.load()``, which knows it.
    trial_kwargs : mapping, optional
        Arguments of the class besides the context.
    torch_load_kwargs : mapping, optional
        No effect: the weights are loaded to the processor.

    Raises
    ------
    ArgumentError
        If there is no class, or the folder has no checkpoint.
    CheckpointError
        If the weights do not fit the models.
    """
    from det_native.schema.manifests import CheckpointManifest

    if not (isinstance(trial_class, type) and issubclass(trial_class, PyTorchTrial)):
        raise ArgumentError(
            "load_trial_from_checkpoint_path(path, trial_class): give the PyTorchTrial class that was trained. What "
            "det.experimental.create() has trained is loaded by checkpoint.load()."
        )
    folder = Path(path)
    try:
        manifest = CheckpointManifest.model_validate_json((folder / "manifest.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"{folder} has no checkpoint: give a folder that checkpoint.download() has filled."
        ) from error
    environment = TrialEnvironment(config={}, hparams=manifest.hparams, managed=False)
    loading = load("det_harness.frameworks.torch.loading")
    trial: PyTorchTrial = loading.load_trial(trial_class, folder, environment, **dict(trial_kwargs or {}))
    return trial


def _environment(
    core: Context, hparams: Mapping[str, Any] | None, exp_conf: Mapping[str, Any] | None, frequency: int | None
) -> TrialEnvironment:
    """Return the facts of the trial: the experiment's, or what the arguments say outside of any."""
    from det_native.schema.loading import load_config
    from det_native.schema.sampling import sample_hyperparameters

    environment = core.run.services.environment
    if core.info is None:
        loaded = load_config(dict(exp_conf or {}), local=True)
        sampled = sample_hyperparameters(loaded.hyperparameters, environment.trial_seed)
        config = loaded.model_dump(mode="json")
        if "max_length" not in ((exp_conf or {}).get("searcher") or {}):
            config["searcher"]["max_length"] = None  # the default is for experiments
        environment = replace(environment, config=config, hparams={**sampled, **dict(hparams or {})})
    if frequency is not None:
        optimizations = {**(environment.config.get("optimizations") or {}), "aggregation_frequency": frequency}
        environment = replace(environment, config={**environment.config, "optimizations": optimizations})
    place = core.distributed
    ranks = Ranks(place.rank, place.size, place.local_rank, place.local_size, place.cross_size)
    return replace(environment, ranks=ranks)


def _of_launch_layer() -> DistributedContext | None:
    """Return the processes that a launch layer has started, connected by PyTorch; None where there are no others."""
    import torch.distributed as distributed

    from det_native.core import DistributedContext

    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        return None
    if not distributed.is_initialized():
        import torch

        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return DistributedContext.from_torch_distributed()


def no_length() -> TrialDefinitionError:
    """Return the error for a training whose length nobody has said."""
    return TrialDefinitionError(
        "Nothing says how long to train: give Trainer.fit(max_length=det.pytorch.Epoch(10)), or searcher.max_length in "
        "the configuration."
    )
