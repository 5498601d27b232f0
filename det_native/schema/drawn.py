"""Which curves are drawn: those of single batches in place of means over an epoch so far, which look like saws."""

from __future__ import annotations

from collections.abc import Sequence

from det_native.frameworks import find_framework
from det_native.schema.manifests import Framework
from det_native.schema.metric_names import PER_BATCH, PER_EPOCH, companions
from det_native.schema.rest import MetricCurve
from det_native.schema.states import MetricKind


def has_running_means(framework: Framework) -> bool:
    """Return whether training metrics of a framework are means over the epoch so far."""
    found = find_framework(framework)
    return found is not None and found.running_means


def names_to_read(name: str, framework: Framework) -> list[str]:
    """Return the names of the curves of which one is drawn for a metric."""
    return [name, PER_BATCH + name, PER_EPOCH + name] if has_running_means(framework) else [name]


def drawn(curves: Sequence[MetricCurve], framework: Framework, *, validates: bool = True) -> list[MetricCurve]:
    """Return the curves as they are drawn.

    Rows that stand for validations where nothing validates are not: what they have is among the training metrics.

    The companion of a mean (``batch_loss``, ``epoch_auc``) has its place and its name. What is said of the curve in
    numbers, its `last` value, stays that of the mean: so it is the same as in bars, logs and histories.

    Parameters
    ----------
    framework : str
        That of the experiment.
    validates : bool
        Whether anything validates in it.
    """
    if not validates:
        curves = [curve for curve in curves if curve.kind is not MetricKind.VALIDATION]
    if not has_running_means(framework):
        return list(curves)
    training: dict[int, dict[str, MetricCurve]] = {}
    for curve in curves:
        if curve.kind is MetricKind.TRAINING:
            training.setdefault(curve.trial_id, {})[curve.name] = curve
    found = []
    for curve in curves:
        own = training.get(curve.trial_id, {}) if curve.kind is MetricKind.TRAINING else {}
        instead = companions(own)
        if curve.name in instead.values():
            continue
        if curve.name in instead:
            update = {"name": curve.name, "last": curve.last}
            curve = own[instead[curve.name]].model_copy(update=update)
        found.append(curve)
    return found
