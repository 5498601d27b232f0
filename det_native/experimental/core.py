"""``det.experimental.core.init()``: train in a loop of your own with any framework, here or on the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from det_native.client.arguments import Show
from det_native.experimental.arguments import Mode, any_documented_order
from det_native.experimental.loops import loops_of, note_replayed, replayed_loops
from det_native.experimental.native import Begun, enter, first_environment, replayed_environment
from det_native.experimental.settings import ConfigInput, check_settings, placed
from det_native.public_names import listed
from det_native.runtime import active_host

if TYPE_CHECKING:
    from det_native.core.native import CoreNativeContext

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
) -> CoreNativeContext:
    """Begin an experiment that trains in a loop of your own with any framework, scikit-learn, XGBoost or JAX say.

    Calling it again, in the same kernel too, begins another experiment.

    Parameters
    ----------
    config : dict, str or path, optional
        Experiment configuration: a dictionary, YAML, or the path of a YAML file. What it does not say about length and
        metric, the loop says: its epochs, and what it reports first. Without it: one trial.
    mode, local, test, context_dir, command, master_url, values, include, show, wait
        See ``det.experimental.keras.init()``.

    Returns
    -------
    CoreNativeContext

    Raises
    ------
    ArgumentError
        If arguments contradict each other or name what does not exist.
    ConfigurationError
        Listing everything that is wrong with the configuration.
    UnsupportedFeatureError
        If the configuration asks for what comes with a later version.
    MasterUnreachableError
        If a master is named and does not answer.

    Examples
    --------
    >>> context = det.experimental.core.init(config)
    >>> for epoch in context.epochs(10):
    ...     model.partial_fit(x, y, classes=[0, 1])
    ...     context.report(loss=log_loss(y, model.predict_proba(x)))
    """
    from det_native.core.native import CoreNativeContext

    host = active_host()
    if host is not None:
        context = CoreNativeContext(replayed_environment(host, config), **replayed_loops(host, config))
        note_replayed(context, config)
        return context
    begun = Begun.now()
    settings = check_settings(config, mode, local, test, context_dir, command, master_url, values, include, show, wait)
    settings = placed(settings, "core")
    environment = first_environment(settings, "core")
    context = CoreNativeContext(environment, **loops_of(settings, begun))
    enter(settings, environment, begun)
    return context
