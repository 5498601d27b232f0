"""``det.experimental.estimator.init()``: train an estimator of a notebook or script, here or on the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from det_native.client.arguments import Show
from det_native.client.estimator_experiment import EstimatorExperiment
from det_native.errors import DetError
from det_native.experimental.arguments import Mode, any_documented_order
from det_native.experimental.native import Begun, enter, first_environment, replayed_environment, train_by_fit
from det_native.experimental.scripts import asks_for_roles
from det_native.experimental.settings import ConfigInput, Settings, check_settings, placed
from det_native.frameworks import translated
from det_native.public_names import listed
from det_native.runtime import active_host
from det_native.schema.loading import load_config

if TYPE_CHECKING:
    from det_native.client.handles import Experiment
    from det_native.estimator import EstimatorNativeContext
    from det_native.estimator.call import EstimatorCall
    from det_native.estimator.roles.call import UnchangedCall
    from det_native.experimental.origin import Origin

__all__ = ["init"]
__dir__ = listed(__all__)


@any_documented_order(leading=1)
def init(
    config: ConfigInput = None,
    mode: Mode | str | None = None,
    local: bool | None = None,
    test: bool | None = None,
    context_dir: str | os.PathLike[str] = "",
    command: Sequence[str] | None = None,
    master_url: str | None = None,
    *,
    values: Iterable[str] = (),
    include: Iterable[str | os.PathLike[str]] = (),
    show: Show = "view",
    wait: bool | None = None,
) -> EstimatorNativeContext:
    """Begin an experiment with an estimator; ``context.train_and_evaluate()`` then runs it.

    Here too it trains in a process of its own, in which TensorFlow has V1 behaviour: a kernel could never switch back.

    The next call of ``tf.estimator.train_and_evaluate()`` itself makes an experiment too: of code that is not changed,
    which TensorFlow trains and evaluates as ever, here in this process. That call uses the context up, and
    ``context.close()``, or the end of a ``with`` block, ends it without.

    Parameters
    ----------
    config : dict, str or path, optional
        Experiment configuration. What it does not say about length and metric, the call says: ``max_steps`` of the
        TrainSpec (without it, as long as there are data), and ``loss``.
    mode, local, test, context_dir, command, master_url, values, include, show, wait
        See ``det.experimental.keras.init()``.

    Returns
    -------
    EstimatorNativeContext

    Raises
    ------
    ArgumentError
        If arguments contradict each other or name what does not exist.
    ConfigurationError
        Listing everything that is wrong with the configuration.
    UnsupportedFeatureError
        If the configuration asks for what comes with a later version.
    MissingDependencyError
        If TensorFlow is not installed, or has no ``tf.estimator``.
    MasterUnreachableError
        If a master is named and does not answer.

    Examples
    --------
    >>> context = det.experimental.estimator.init(config, local=True)
    >>> optimizer = context.wrap_optimizer(tf.keras.optimizers.legacy.Adagrad(0.05))
    >>> estimator = tf.estimator.DNNClassifier([16], columns, n_classes=3, optimizer=optimizer)
    >>> metrics, exports = context.train_and_evaluate(estimator, train_spec, eval_spec)
    """
    host = active_host()
    if host is not None:
        from det_native.estimator import EstimatorNativeContext

        environment = replayed_environment(host, config)
        context = EstimatorNativeContext(
            environment, on_call=lambda call: host.take_call("train_and_evaluate", call), role=host.role
        )
        context.period_said = context.period_said and _says_period(config)
        context.take_next_call(lambda call: host.take_call("train_and_evaluate", call))
        return context
    begun = Begun.now()
    settings = check_settings(config, mode, local, test, context_dir, command, master_url, values, include, show, wait)
    settings = placed(settings, "tf_estimator")
    environment = first_environment(settings, "tf_estimator" if asks_for_roles(settings.config) else "estimator")
    with translated("det.experimental.estimator.init()"):
        from det_native.estimator import EstimatorNativeContext

    context = EstimatorNativeContext(
        environment,
        on_call=partial(train_by_fit, settings=placed(settings, "estimator"), begun=begun, handle_of=_handle),
        role="local" if settings.place.local else "cluster",
    )
    enter(settings, environment, begun)
    context.take_next_call(
        partial(train_by_fit, fit_here=_unchanged_here, settings=settings, begun=begun, handle_of=_handle)
    )
    return context


def _handle(call: EstimatorCall | UnchangedCall, experiment: Experiment) -> EstimatorExperiment:
    """Return a handle that is unpacked as what TensorFlow's function returns."""
    return EstimatorExperiment(experiment.source, experiment.id, exporters=call.exporters)


def _says_period(config: ConfigInput) -> bool:
    """Return whether the user has said when to evaluate: in what was submitted, the call may have filled it in."""
    try:
        said = load_config(config, local=True, warn=False).min_validation_period
    except (DetError, OSError):  # a file of the kernel's machine
        return True
    return any(said.model_dump().values())


def _unchanged_here(call: UnchangedCall, settings: Settings, origin: Origin) -> Any:
    from det_native.experimental.local.calls import unchanged_here

    return unchanged_here(call, settings, origin)
