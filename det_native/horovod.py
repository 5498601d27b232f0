"""How gradients are exchanged, as a context is told by hand: ``HorovodContext``; Horovod itself is not imported."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Self

from det_native.errors import ArgumentError
from det_native.schema.environment import TrialEnvironment
from det_native.trial import TrialContext


@dataclass(frozen=True)
class HorovodContext:
    """What the configuration says about the exchange of gradients, under the names that its fields have.

    Attributes
    ----------
    use : bool
        Whether the trial has several processes.
    aggregation_frequency : int
        Batches whose gradients make one step.
    average_aggregated_gradients, average_training_metrics, gradient_compression : bool
        See ``optimizations`` of the configuration.
    """

    use: bool = False
    aggregation_frequency: int = 1
    average_aggregated_gradients: bool = True
    average_training_metrics: bool = False
    gradient_compression: bool = False

    @classmethod
    def of(cls, env: TrialEnvironment) -> Self:
        """Return what the configuration of a trial says."""
        written = env.config.get("optimizations") or {}
        names = [name for name in cls.__dataclass_fields__ if name in written]
        return cls(use=env.ranks.size > 1, **{name: written[name] for name in names})

    def put_into(self, env: TrialEnvironment) -> TrialEnvironment:
        """Return the environment with these settings in place of the configuration's.

        Raises
        ------
        ArgumentError
            If `use` contradicts the number of processes, or a number makes no sense.
        """
        if self.use != (env.ranks.size > 1):
            raise ArgumentError(
                f"HorovodContext(use={self.use}) contradicts the environment, whose trial has {env.ranks.size} "
                f"process{'es' if env.ranks.size > 1 else ''}; HorovodContext.of(env) fits it."
            )
        if self.aggregation_frequency < 1:
            raise ArgumentError(
                f"HorovodContext: aggregation_frequency={self.aggregation_frequency} must be at least 1."
            )
        settings = asdict(self)
        del settings["use"]
        return replace(
            env, config={**env.config, "optimizations": {**(env.config.get("optimizations") or {}), **settings}}
        )


class HorovodTrialContext(TrialContext):
    """A context made of an environment and, where its configuration does not rule, of how gradients are exchanged.

    Parameters
    ----------
    env : EnvContext
        The facts of the trial.
    hvd_config : HorovodContext, optional
        Taken instead of what the configuration says.

    Attributes
    ----------
    hvd_config : HorovodContext
    """

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        if not isinstance(env, TrialEnvironment):
            raise ArgumentError(
                f"{type(self).__name__}() takes a det.EnvContext, not {type(env).__name__}; "
                f"{type(self).__name__}.from_config(config) makes one of a configuration."
            )
        if hvd_config is not None and not isinstance(hvd_config, HorovodContext):
            raise ArgumentError(
                f"{type(self).__name__}(): hvd_config must be a det_native.horovod.HorovodContext, not "
                f"{type(hvd_config).__name__}."
            )
        super().__init__(env if hvd_config is None else hvd_config.put_into(env))
        self.hvd_config = HorovodContext.of(self.env)

    def use_environment(self, env: TrialEnvironment) -> None:
        """Take the facts of the run, where more is known of it than when the context was made."""
        self.env = env
        self.hvd_config = HorovodContext.of(env)
