"""``det.experimental.pytorch.init()``: train the PyTorch objects of a notebook or script, here or on the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from det_native.errors import of_the_users
from det_native.experimental import document_place
from det_native.experimental.arguments import Mode, any_documented_order
from det_native.experimental.native import (
    Begun,
    enter,
    first_environment,
    note_training,
    replayed_environment,
    submit,
)
from det_native.experimental.settings import ConfigInput, Settings, check_settings
from det_native.frameworks import translated
from det_native.runtime import ProgramHost, active_host

if TYPE_CHECKING:
    from det_native.pytorch.native import PyTorchNativeContext
    from det_native.pytorch.native_call import TorchCall


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
) -> PyTorchNativeContext:
    """Begin an experiment with PyTorch objects of your own, trained by ``context.fit()`` or in a loop of your own.

    Calling it again, in the same kernel too, begins another experiment.

    Parameters
    ----------
    config : dict, str or path, optional
        Experiment configuration: a dictionary, YAML, or the path of a YAML file. What it does not say about length,
        batch size and metric, the call says: its epochs, the loader's batch size, ``val_loss`` (``loss`` without
        validation), with a validation after every epoch. Without it: one trial.
    mode, local, test, context_dir, command, master_url, values, include
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
    >>> model = context.wrap_model(Net(context.get_hparam("units")))
    >>> optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters()))
    >>> for batch in context.train(loader, epochs=5):
    ...     loss = loss_of(model, batch)
    ...     context.backward(loss)
    ...     context.step_optimizer(optimizer)
    ...     context.report(loss=loss)
    """
    host = active_host()
    if host is not None:
        return _replayed(host, config)
    begun = Begun.now()
    settings = check_settings(config, mode, local, test, context_dir, command, master_url, values, include)
    environment = first_environment(settings, "torch")
    with translated("det.experimental.pytorch.init()"):
        from det_native.pytorch.native import PyTorchNativeContext

    context = PyTorchNativeContext(
        environment,
        on_fit=partial(_fit, settings=settings, begun=begun),
        on_train=partial(_train, settings=settings, begun=begun),
        role="local" if settings.place.local else "cluster",
    )
    enter(settings)
    return context


def _replayed(host: ProgramHost, config: ConfigInput) -> PyTorchNativeContext:
    """Return the context of a program that is run again for a trial."""
    from det_harness.inert import InertHandle

    from det_native.pytorch.native import PyTorchNativeContext

    context = PyTorchNativeContext(
        replayed_environment(host, config),
        on_fit=lambda call: host.take_call("fit", call),
        on_train=lambda call: host.take_loop("train", call),
        role=host.role,
    )
    # What stands behind a loop may ask for it: behind one without batches here, or one that was left.
    context.experiment = InertHandle("context.train()")
    return context


def _fit(call: TorchCall, settings: Settings, begun: Begun) -> Any:
    """Run what a call of ``fit()`` asks for; the result is what the user's ``fit()`` returns.

    Parameters
    ----------
    call : TorchCall
    settings : Settings
    begun : Begun
        Where ``init()`` was called.
    """
    record = note_training("fit")
    other = document_place.stand_in(record)
    if other is not None:
        return other
    origin = begun.origin(record)
    if not settings.place.local:
        return submit(call, settings, origin)
    from det_native.experimental.local_torch import fit_torch_here

    try:
        return document_place.done(fit_torch_here(call, settings, origin))
    except Exception as error:  # noqa: BLE001 (raised again)
        __tracebackhide__ = True
        raise of_the_users(error)


def _train(call: TorchCall, settings: Settings, begun: Begun) -> Iterator[Any]:
    """Return the batches of a loop over ``train()``: here all of them, none for the cluster; see `_fit`."""
    record = note_training("train")
    other = document_place.stand_in(record)
    if other is not None:
        call.context.experiment = other
        return iter(())
    origin = begun.origin(record)
    if not settings.place.local:
        call.context.experiment = submit(call, settings, origin)
        return iter(())
    from det_native.experimental.local_torch import batches_here

    return batches_here(call, settings, origin)
