"""What people write of an experiment: what a change of it comes to."""

from __future__ import annotations

from typing import Any

from det_native.errors import ArgumentError
from det_native.schema import rest


def changed_values(change: rest.ExperimentChange, experiment: rest.Experiment) -> dict[str, Any]:
    """Return the facts of an experiment that a change sets, by name, as they are then.

    Raises
    ------
    ArgumentError
        If it would have an empty name or label.
    """
    values: dict[str, Any] = {}
    if change.name is not None:
        values["name"] = change.name.strip()
        if not values["name"]:
            raise ArgumentError("name: an experiment needs a name of more than spaces.")
    for field in ("description", "notes", "archived"):
        if (given := getattr(change, field)) is not None:
            values[field] = given
    if change.project is not None:
        values["project"] = "/".join(part.strip() for part in change.project.split("/") if part.strip())
    if change.labels is not None or change.add_labels or change.remove_labels:
        kept = experiment.labels if change.labels is None else change.labels
        added = [*kept, *change.add_labels]
        labels = [label.strip() for label in added]
        if not all(labels):
            raise ArgumentError("labels: a label of nothing but spaces cannot be seen.")
        removed = {label.strip() for label in change.remove_labels}
        values["labels"] = [label for label in dict.fromkeys(labels) if label not in removed]
    return values
