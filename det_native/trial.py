"""What the trial packages (pytorch, keras, estimator) share: the Trial base class and their contexts' common part."""

from __future__ import annotations

import difflib
import logging
from typing import Any, ClassVar, Literal, Protocol, Self

from det_native.errors import ArgumentError, TrialDefinitionError, UnsupportedFeatureError, shown_shortly
from det_native.logged.context import LoggingContext
from det_native.schema.environment import Ranks, TrialEnvironment

logger = logging.getLogger("det_native")

# Who runs a program: a user who trains here, a user who submits, a worker, or a checkpoint being loaded.
Role = Literal["local", "cluster", "worker", "load"]


class Exchange(Protocol):
    """What connects the processes of a trial."""

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the values of all processes, by rank."""


class DistributedContext:
    """Place of this process among the processes of its trial, and what they exchange (``context.distributed``).

    Every process has to make each call that exchanges something, in the same order; what is exchanged is pickled.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._exchange: Exchange | None = None

    def connect(self, exchange: Exchange) -> None:
        """Say what connects the processes (for controllers)."""
        self._exchange = exchange

    @property
    def rank(self) -> int:
        """The rank of this process in the trial, from 0."""
        return self._ranks.rank

    @property
    def size(self) -> int:
        """The number of slots of the trial."""
        return self._ranks.size

    @property
    def local_rank(self) -> int:
        """The rank of this process on its machine, from 0."""
        return self._ranks.local_rank

    @property
    def local_size(self) -> int:
        """The number of processes of the trial on this machine."""
        return self._ranks.local_size

    @property
    def cross_size(self) -> int:
        """The number of machines of the trial."""
        return self._ranks.agents

    def allgather(self, stuff: Any) -> list[Any]:
        """Return what all processes have given, by rank, in each of them.

        Raises
        ------
        UnsupportedFeatureError
            If the trial has several slots, and its framework does not exchange values.
        """
        if self._exchange is not None:
            return self._exchange.all_gather_object(stuff)
        if self.size > 1:
            raise UnsupportedFeatureError(
                "context.distributed exchanges values between slots in a PyTorchTrial, and in fit() and loops of "
                "det.experimental.pytorch, once their training is prepared; here it does not."
            )
        return [stuff]

    def gather(self, stuff: Any) -> list[Any] | None:
        """Return what all processes have given, by rank, in the first one, and None in the others."""
        found = self.allgather(stuff)
        return found if self.rank == 0 else None

    def broadcast(self, stuff: Any) -> Any:
        """Return what the first process has given, in each of them; what the others give has no effect."""
        return self.allgather(stuff if self.rank == 0 else None)[0]

    def allgather_local(self, stuff: Any) -> list[Any]:
        """Return what the processes of this machine have given, by rank, in each of them."""
        first = self.rank - self.local_rank
        return self.allgather(stuff)[first : first + self.local_size]

    def gather_local(self, stuff: Any) -> list[Any] | None:
        """Return what the processes of this machine have given, in the first one of them, and None in the others."""
        found = self.allgather_local(stuff)
        return found if self.local_rank == 0 else None

    def broadcast_local(self, stuff: Any) -> Any:
        """Return what the first process of this machine has given, in each process of the machine."""
        return self.allgather_local(stuff if self.local_rank == 0 else None)[0]

    def get_rank(self) -> int:
        """Return the rank of this process in the trial, from 0."""
        return self._ranks.rank

    def get_local_rank(self) -> int:
        """Return the rank of this process on its machine, from 0."""
        return self._ranks.local_rank

    def get_size(self) -> int:
        """Return the number of slots of the trial."""
        return self._ranks.size

    def get_num_agents(self) -> int:
        """Return the number of machines of the trial."""
        return self._ranks.agents


class TrialContext(LoggingContext):
    """What user code may ask about the trial it runs in.

    Parameters
    ----------
    environment : TrialEnvironment
        The facts of the trial.

    Attributes
    ----------
    stop_requested : bool
        What ``get_stop_requested`` returns; a loop reads it after each batch.
    """

    _public: ClassVar[tuple[str, ...]] = (
        "distributed",
        "env",
        "from_config",
        "get_data_config",
        "get_experiment_config",
        "get_experiment_id",
        "get_global_batch_size",
        "get_hparam",
        "get_hparams",
        "get_per_slot_batch_size",
        "get_stop_requested",
        "get_trial_id",
        "get_trial_seed",
        "set_stop_requested",
    )

    def __init__(self, environment: TrialEnvironment) -> None:
        self.env = environment
        self.distributed = DistributedContext(environment.ranks)
        self.stop_requested = False

    def use_environment(self, env: TrialEnvironment) -> None:
        """Take the facts of the run, where more is known of it than when the context was made."""
        self.env = env

    @classmethod
    def from_config(cls, config: dict[str, Any] | str) -> Self:
        """Make a context outside any run, for tests and for loading: wrappers pass through.

        Parameters
        ----------
        config : dict or str
            An experiment configuration, as for ``create()``.

        Raises
        ------
        ConfigurationError
            If the configuration is not valid.
        """
        from det_native.schema.loading import load_config
        from det_native.schema.sampling import sample_hyperparameters

        loaded = load_config(config, local=True)
        seed = loaded.reproducibility.experiment_seed or 0
        return cls(
            TrialEnvironment(
                config=loaded.model_dump(mode="json"),
                hparams=sample_hyperparameters(loaded.hyperparameters, seed),
                trial_seed=seed,
                managed=False,
            )
        )

    def get_experiment_config(self) -> dict[str, Any]:
        """Return the experiment configuration with all defaults filled in."""
        return self.env.config

    def get_data_config(self) -> dict[str, Any]:
        """Return the ``data`` section of the configuration, ``{}`` if there is none."""
        return self.env.config.get("data") or {}

    def get_experiment_id(self) -> int:
        """Return the experiment's id.

        Raises
        ------
        ValueError
            In a local run, which has no id on a master.
        """
        return self._known(self.env.experiment_id, "experiment")

    def get_trial_id(self) -> int:
        """Return the trial's id.

        Raises
        ------
        ValueError
            In a local run, which has no id on a master.
        """
        return self._known(self.env.trial_id, "trial")

    def get_trial_seed(self) -> int:
        """Return the seed of the trial's random number generators, the same on every rank."""
        return self.env.trial_seed

    def get_hparams(self) -> dict[str, Any]:
        """Return the value of every hyperparameter of this trial."""
        return dict(self.env.hparams)

    _warned_batch_size: ClassVar[bool] = False

    def get_hparam(self, name: str) -> Any:
        """Return the value of one hyperparameter of this trial.

        Raises
        ------
        ValueError
            If the configuration has no such hyperparameter; the message lists those it has.
        """
        if name not in self.env.hparams:
            known = ", ".join(sorted(self.env.hparams)) or "none"
            close = difflib.get_close_matches(str(name), self.env.hparams, n=1)
            meant = f" Did you mean {close[0]}?" if close else ""
            raise shown_shortly(
                ValueError(f"hyperparameters.{name} is not in the configuration; it has: {known}.{meant}")
            )
        if name == "global_batch_size" and not TrialContext._warned_batch_size:
            TrialContext._warned_batch_size = True
            logger.warning(
                "get_hparam('global_batch_size') is the batch size over all slots; use "
                "context.get_per_slot_batch_size() for the batches of this process."
            )
        return self.env.hparams[name]

    def get_global_batch_size(self) -> int:
        """Return the records per batch over all slots (rounded down to a multiple of the slots)."""
        return self._batch_size(self.env.global_batch_size if self._has_batch_size() else None)

    def get_per_slot_batch_size(self) -> int:
        """Return the records per batch in this process."""
        return self._batch_size(self.env.per_slot_batch_size if self._has_batch_size() else None)

    def get_stop_requested(self) -> bool:
        """Return whether the user's code asked for an early end."""
        return self.stop_requested

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Ask for an early end: the trial finishes its batch, checkpoints and ends as COMPLETED.

        Raises
        ------
        ArgumentError
            If `stop_requested` is not a boolean.
        """
        if not isinstance(stop_requested, bool):
            raise ArgumentError(f"stop_requested must be True or False, not {stop_requested!r}.")
        self.stop_requested = stop_requested

    def _has_batch_size(self) -> bool:
        return "global_batch_size" in self.env.hparams

    def _batch_size(self, value: int | None) -> int:
        if value is None:
            raise TrialDefinitionError(
                "hyperparameters.global_batch_size is not in the configuration; set it to the records per batch."
            )
        return value

    def _known(self, value: int | None, what: str) -> int:
        if value is None:
            raise shown_shortly(ValueError(f"This is a local run: it has no {what} id."))
        return value


class ControllerClass:
    """The value of ``trial_controller_class``: what trains such a trial, imported when it is first looked at.

    Parameters
    ----------
    framework : str
        The name of its framework.
    """

    def __init__(self, framework: str) -> None:
        self._framework = framework

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return the class."""
        from det_native.frameworks.description import resolve

        harness_of: Any = resolve("det_harness.frameworks.base:harness_of")
        return harness_of(self._framework).controller_class()


class Trial:
    """Base of the trial classes that users write (``PyTorchTrial``, ``TFKerasTrial``, ``EstimatorTrial``)."""

    trial_context_class: ClassVar[type[TrialContext]] = TrialContext
    #: What trains it. A trial class may name a subclass of its framework's own.
    trial_controller_class: ClassVar[Any] = None

    def __init__(self, context: TrialContext) -> None:
        """Initialise the trial; subclasses make their models and optimizers here."""
