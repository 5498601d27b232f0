"""What messages say: the JSON of a webhook, and the sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_native.schema.notify import EventName
from det_native.schema.states import ExperimentState

#: Of an error, so much of its message is told.
_ERROR_CHARACTERS = 500
_ENDS = {
    ExperimentState.COMPLETED: "has completed",
    ExperimentState.CANCELED: "was stopped",
    ExperimentState.ERROR: "has failed",
}


def body_of(
    event: EventName,
    experiment: Mapping[str, Any],
    *,
    time: str,
    master: Mapping[str, str],
    trial: Mapping[str, Any] | None = None,
    metric: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a message says, as JSON.

    Parameters
    ----------
    experiment, trial : mapping
        As REST shows them.
    time : str
        When it happened.
    master : mapping
        Its machine and its address.
    metric : mapping, optional
        ``name``, ``value`` and ``batch``.
    """
    error = (trial or {}).get("error") or experiment.get("error")
    body: dict[str, Any] = {
        "event": event,
        "time": time,
        "experiment": {
            "id": experiment["id"],
            "name": experiment["name"],
            "state": experiment["state"],
            "labels": list(experiment.get("labels") or ()),
            "best_validation": experiment.get("best_validation"),
            "metric": experiment.get("metric") or None,
        },
        "trial": None if trial is None else {"id": trial["id"], "number": trial.get("number"), "state": trial["state"]},
        "metric": None if metric is None else dict(metric),
        "error": _line(error) if event == "failure" and error else None,
        "master": dict(master),
    }
    return body | {"text": text_of(body)}


def text_of(body: Mapping[str, Any]) -> str:
    """Return the sentence of a message."""
    experiment, trial, metric = body["experiment"], body["trial"], body["metric"]
    name = f"Experiment {experiment['id']}"
    if experiment["name"] not in ("", name):
        name += f" ({experiment['name']})"
    of_trial = "" if trial is None else f", trial {trial['number'] or trial['id']},"
    value = "" if metric is None else f"{metric['name']} = {_number(metric.get('value'))}"
    match body["event"]:
        case "end":
            best = _best(experiment)
            return f"{name} {_ENDS[ExperimentState(experiment['state'])]}{best}."
        case "failure":
            error = f": {body['error']}" if body["error"] else "."
            return f"{name}{of_trial} has failed{error}"
        case "nan":
            return f"{name}{of_trial} has a metric that is not a number: {metric['name']}, at batch {metric['batch']}."
        case "plateau":
            return f"{name}{of_trial} has not become better since batch {metric['batch']}: {value}."
        case "best":
            return f"{name} has a new best {value}."
        case _:
            return f"This is a test message of det_native on {body['master']['host']}."


def body_of_test(time: str, master: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of a message by which somebody tries out where messages go."""
    body: dict[str, Any] = {"event": "test", "time": time, "experiment": None, "trial": None, "metric": None}
    text = f"This is a test message of det_native on {master['host']}."
    return {**body, "error": None, "master": dict(master), "text": text}


def subject_of(body: Mapping[str, Any]) -> str:
    """Return the subject of an e-mail: one short line."""
    return "[det] " + " ".join(str(body["text"]).split())[:150]


def _best(experiment: Mapping[str, Any]) -> str:
    value = experiment.get("best_validation")
    return "" if value is None or not experiment.get("metric") else f", best {experiment['metric']} {_number(value)}"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(error: Mapping[str, Any]) -> str:
    message = " ".join(str(error.get("message") or "").split())
    shown = message if len(message) <= _ERROR_CHARACTERS else message[:_ERROR_CHARACTERS] + "…"
    return f"{error.get('type') or 'Error'}: {shown}" if shown else str(error.get("type") or "Error")
