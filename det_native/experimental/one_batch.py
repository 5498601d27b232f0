"""``det.experimental.test_one_batch()``: the old name of a quick check."""
# ruff: noqa: PT028 (it is no test of ours)

from __future__ import annotations

import warnings
from typing import Any

from det_native.client.handles import Experiment
from det_native.errors import ArgumentError
from det_native.experimental.creation import create
from det_native.experimental.settings import ConfigInput
from det_native.trial import Trial


def test_one_batch(
    controller_cls: Any = None,
    native_context_cls: Any = None,
    trial_class: type[Trial] | str | None = None,
    config: ConfigInput = None,
) -> Experiment:
    """Train a Trial class on one batch here, validate on one batch, and save one checkpoint.

    Deprecated: ``create(trial_class, config, local=True, test=True)`` is the same.

    Parameters
    ----------
    controller_cls, native_context_cls
        Have no effect; they are there for code that was written for Determined.
    trial_class : type or str
        See ``create()``.
    config : dict, str or path, optional
        Experiment configuration.

    Raises
    ------
    ArgumentError
        If there is no `trial_class`.
    """
    warnings.warn(
        "test_one_batch() is deprecated: call create(trial_class, config, local=True, test=True).",
        DeprecationWarning,
        stacklevel=2,
    )
    if trial_class is None:
        raise ArgumentError("test_one_batch() takes the Trial class as trial_class=...")
    return create(trial_class, config, local=True, test=True)


test_one_batch.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test of its own
