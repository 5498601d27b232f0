"""The context of a ``TFKerasTrial``."""

from __future__ import annotations

from typing import Any, ClassVar

from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.horovod import HorovodContext
from det_native.keras.base_context import TFKerasContext
from det_native.keras.context import check_model
from det_native.schema.environment import TrialEnvironment
from det_native.trial import Role


class TFKerasTrialContext(TFKerasContext):
    """What a ``TFKerasTrial`` asks about its trial, and the wrappers of its model and data.

    Parameters
    ----------
    env : EnvContext
        The facts of the trial.
    hvd_config : HorovodContext, optional
        How gradients are exchanged, instead of what the configuration says.

    Attributes
    ----------
    model : tf.keras.Model or None
        The wrapped model; of several the last.
    wrapped_datasets : int
        How many Datasets were wrapped.
    fit_arguments : dict
        What :meth:`configure_fit` was given.
    """

    _public: ClassVar[tuple[str, ...]] = (
        "configure_fit",
        "wrap_model",
    )

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        super().__init__(env, hvd_config)
        self.role: Role = "worker"
        self.experiment: Any = None
        self.model: Any = None
        self.wrapped_datasets = 0
        self.fit_arguments: dict[str, Any] = {}

    def wrap_model(self, model: Any) -> Any:
        """Name the model that is trained; call it right after the model is made, before ``compile``.

        Parameters
        ----------
        model : tf.keras.Model

        Returns
        -------
        tf.keras.Model
            The same object.

        Raises
        ------
        TrialDefinitionError
            If it is not a tf.keras model, is wrapped already, or is compiled already, or another one is wrapped.
        """
        check_model(model)
        if self.env.managed and self.model is model:
            raise TrialDefinitionError(
                f"wrap_model() was called twice for the model '{model.name}': call it once, right after it is made."
            )
        if self.env.managed and self.model is not None:
            raise TrialDefinitionError(
                "wrap_model() was called for two models: a TFKerasTrial trains one, the one that build_model() returns."
            )
        self.model = model
        return model

    def wrap_dataset(self, dataset: Any, shard_dataset: bool = True) -> Any:
        """See ``TFKerasContext.wrap_dataset``."""
        wrapped = super().wrap_dataset(dataset, shard_dataset)
        self.wrapped_datasets += 1
        return wrapped

    def configure_fit(
        self,
        verbose: Any = None,
        class_weight: Any = None,
        workers: int | None = None,
        use_multiprocessing: bool | None = None,
        max_queue_size: int | None = None,
        shuffle: Any = None,
        validation_steps: int | None = None,
    ) -> None:
        """Set arguments of Keras's ``fit``; what is None stays as it is, so that it may be called several times.

        Parameters
        ----------
        verbose : optional
            What is printed: 0 for nothing.
        class_weight : dict, optional
            Weight of the loss by class.
        workers, use_multiprocessing, max_queue_size : optional
            How the batches of a Sequence are made.
        shuffle : bool, optional
            Whether arrays and Sequences are shuffled each epoch; True by default.
        validation_steps : int, optional
            Batches of one validation, of a Dataset without end.

        Raises
        ------
        ArgumentError
            If a number makes no sense.
        """
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        for name, least in (("workers", 0), ("max_queue_size", 1), ("validation_steps", 1)):
            if name in given and given[name] < least:
                raise ArgumentError(f"configure_fit(): {name}={given[name]} must be at least {least}.")
        self.fit_arguments |= given

    def release_model(self, model: Any) -> None:
        """Do nothing: the model of a trial class is plain Keras."""
