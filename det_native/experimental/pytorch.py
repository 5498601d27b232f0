"""``det.experimental.pytorch.init()``: train the PyTorch objects of a notebook or script, here or on the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from det_native.client.arguments import Show
from det_native.experimental.arguments import Mode, any_documented_order
from det_native.experimental.loops import loops_of, note_replayed, replayed_loops
from det_native.experimental.native import Begun, enter, first_environment, replayed_environment, train_by_fit
from det_native.experimental.settings import ConfigInput, Settings, check_settings, placed
from det_native.frameworks import translated
from det_native.public_names import listed
from det_native.runtime import ProgramHost, active_host

if TYPE_CHECKING:
    from det_native.experimental.origin import Origin
    from det_native.pytorch.native import PyTorchNativeContext
    from det_native.pytorch.native_call import TorchCall

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
) -> PyTorchNativeContext:
    """Begin an experiment with PyTorch objects of your own, trained by ``context.fit()`` or in a loop of your own.

    Calling it again, in the same kernel too, begins another experiment.

    Parameters
    ----------
    config : dict, str or path, optional
        Experiment configuration: a dictionary, YAML, or the path of a YAML file. What it does not say about length,
        batch size and metric, the call says: its epochs, the loader's batch size, ``val_loss`` (``loss`` without
        validation), with a validation after every epoch. Without it: one trial.
    mode, local, test, context_dir, command, master_url, values, include, show, wait
        See ``det.experimental.keras.init()``.

    Returns
    -------
    PyTorchNativeContext

    Raises
    ------
    ArgumentError
        If arguments contradict each other or name what does not exist.
    ConfigurationError
        Listing everything that is wrong with the configuration.
    UnsupportedFeatureError
        If the configuration asks for what comes with a later version.
    MissingDependencyError
        If PyTorch is not installed.
    MasterUnreachableError
        If a master is named and does not answer.

    Examples
    --------
    >>> context = det.experimental.pytorch.init(config, local=True)
    >>> model, optimizer, loader = context.wrap(model, torch.optim.Adam(model.parameters()), loader)
    >>> for epoch in context.epochs(5):
    ...     for x, y in loader:
    ...         optimizer.zero_grad()
    ...         loss = loss_of(model(x), y)
    ...         loss.backward()
    ...         optimizer.step()
    ...     context.report(loss=loss)
    """
    host = active_host()
    if host is not None:
        return _replayed(host, config)
    begun = Begun.now()
    settings = check_settings(config, mode, local, test, context_dir, command, master_url, values, include, show, wait)
    settings = placed(settings, "torch")
    environment = first_environment(settings, "torch")
    with translated("det.experimental.pytorch.init()"):
        from det_native.pytorch.native import PyTorchNativeContext

    context = PyTorchNativeContext(
        environment,
        on_fit=partial(train_by_fit, fit_here=_fit_here, settings=settings, begun=begun),
        **loops_of(settings, begun),
    )
    enter(settings, environment, begun)
    return context


def _replayed(host: ProgramHost, config: ConfigInput) -> PyTorchNativeContext:
    """Return the context of a program that is run again for a trial."""
    from det_native.pytorch.native import PyTorchNativeContext

    environment, on_fit = replayed_environment(host, config), partial(host.take_call, "fit")
    context = PyTorchNativeContext(environment, on_fit=on_fit, **replayed_loops(host, config))
    note_replayed(context, config)
    return context


def _fit_here(call: TorchCall, settings: Settings, origin: Origin) -> Any:
    from det_native.experimental.local.loops import fit_torch_here

    return fit_torch_here(call, settings, origin)
