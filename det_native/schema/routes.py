"""The REST interface: every route of the master, declared once.

The master registers its handlers with these (``master/api/serving.py``), Python clients call them
(``Session.call(routes.GET_TRIAL, trial_id=3)``), and the description of the interface is made of both
(``GET /api/v1/openapi.json``). The name of a route, in lower case, is its operation there and the name of its handler.

To add a route: an entry here, and a function with ``@serve(routes.NAME)`` in ``master/api/routes/``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import NoneType
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote, urlencode

from pydantic import BaseModel, TypeAdapter

from det_native.schema import (
    clocks,
    datasets,
    importance,
    kernel_runs,
    life,
    manifests,
    notebook_runs,
    outputs,
    page,
    queue,
    registry,
    rest,
    schedules,
    space,
    summaries,
)
from det_native.schema import experiment_table as table
from det_native.schema import notify_rest as notify
from det_native.schema import worker_environment as environment
from det_native.schema.bodies import API

OPENAPI = f"{API}/openapi.json"
#: Headers of the answer of LIST_EXPERIMENTS: how many there are on all pages, `after` of the next page, and a remark.
TOTAL, NEXT, NOTICE = "X-Total-Count", "X-Next", "X-Notice"

BODY_LIMIT = 8 << 20
# A manifest lists every file of a directory.
MANIFEST_LIMIT = 24 << 20
PACK_LIMIT = 4 << 30

_NUMBER, _SHA256, _UUID = r"[0-9]{1,18}", r"[0-9a-f]{64}", r"[0-9A-Za-z-]{1,64}"
#: What the parameters of a path look like.
PATTERNS = {
    "bundle_id": _SHA256,
    "experiment_id": _NUMBER,
    "medium_id": _NUMBER,
    "name": r"[^/]{1,1000}",
    "number": _NUMBER,
    "path": r"(?s:.+)",
    "run_id": r"[0-9A-HJKMNP-TV-Z]{26}",
    "schedule_id": _NUMBER,
    "sha256": _SHA256,
    "trial_id": _NUMBER,
    "uuid": _UUID,
    "version": _NUMBER,
}
_PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")

Body = TypeVar("Body")
Answer = TypeVar("Answer")
Content = Iterable[bytes] | bytes


class Access(Enum):
    """Who may call a route, besides the user with the token."""

    PUBLIC = "everybody, without a token"
    USER = "nobody else"
    FRONT_END = "a browser that is signed in at the master's page, and JupyterLab through its server's extension"
    SESSION = "a browser that is signed in at the master's page"
    RUN = "the run in its path, with the token of that run"


PUBLIC, USER, FRONT_END, SESSION, RUN = Access


@dataclass(frozen=True, kw_only=True, eq=False)
class Route(Generic[Body, Answer]):
    """A route of the master.

    Attributes
    ----------
    path : str
        From ``/api/v1`` on, as FastAPI writes it.
    query : tuple of str
        Names of the parameters of its query; the handler says what is valid.
    body : type
        A model; ``bytes`` where the content is no JSON, NoneType where there is none.
    answer : type
        A model, or a list of them; ``bytes`` where it is no JSON, NoneType where it is empty.
    doc : str
        What it does, for the description of the interface.
    refusals : tuple of int
        The statuses with which it refuses, besides those that all routes have.
    status : int
        The status where it does not refuse.
    repeatable : bool
        Whether a request may be sent twice without harm, so that clients repeat it after a failure.
    body_limit : int
        How many bytes the body may have.
    tag : str
        Under which heading it is described.
    """

    method: str
    path: str
    query: tuple[str, ...] = ()
    body: type[Body]
    answer: type[Answer]
    access: Access
    doc: str
    refusals: tuple[int, ...] = ()
    status: int = 200
    repeatable: bool = False
    body_limit: int = BODY_LIMIT
    tag: str = ""

    def address(self, **parameters: Any) -> str:
        """Return the path with its parameters, and the query; parameters that are None are left out of that.

        Raises
        ------
        TypeError
            If the route has no such parameter, or one of its path is missing.
        """
        names = _PARAMETER.findall(self.path)
        if not set(names) <= parameters.keys() <= {*names, *self.query}:
            raise TypeError(f"{self.method} {self.path} has other parameters than {', '.join(parameters) or 'none'}")
        path = _PARAMETER.sub(lambda match: _quoted(match[1], parameters[match[1]]), self.path)
        query = {name: _written(value) for name, value in parameters.items() if name not in names and value is not None}
        return f"{path}?{urlencode(query, doseq=True)}" if query else path

    def match(self, path: str) -> re.Match[str] | None:
        """Return the match of a decoded path, with the parameters as its groups; None if it is of another route."""
        return self._pattern.fullmatch(path)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(_PARAMETER.sub(lambda match: f"(?P<{match[1]}>{PATTERNS[match[1]]})", self.path))

    def write(self, body: Body | bytes) -> Content:
        """Return a body as it is sent. Fields that were not set are left out: an older master may not know them."""
        if not isinstance(body, BaseModel):
            return cast(Content, body)
        return json.dumps(body.model_dump(mode="json", exclude_unset=True, warnings=False), allow_nan=False).encode()

    def read(self, content: bytes) -> Answer:
        """Return the answer that was sent.

        Raises
        ------
        ValidationError
            If it is none of this route.
        """
        if self.answer is bytes:
            return cast(Answer, content)
        return self._adapter.validate_json(content or b"null")

    @cached_property
    def _adapter(self) -> TypeAdapter[Answer]:
        return TypeAdapter(self.answer)


def find_route(method: str, path: str) -> Route[Any, Any] | None:
    """Return the route of a request, by its decoded path; None if there is no such route."""
    return next((route for route in ROUTES.values() if route.method == method and route.match(path)), None)


def _quoted(name: str, value: object) -> str:
    return quote(str(value), safe="/" if name == "path" else "")


def _written(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _make(
    request: str, body: type[Body], answer: type[Answer], access: Access, refusals: tuple[int, ...], **fields: Any
) -> Route[Body, Answer]:
    method, _, address = request.partition(" ")
    path, _, query = address.partition("?")
    if "{" in path:  # what is named there may be missing
        refusals = (404, *refusals)
    first = path.split("/")[1]
    return Route(
        method=method,
        path=f"{API}{path}",
        query=tuple(query.split("&")) if query else (),
        body=body,
        answer=answer,
        access=access,
        refusals=refusals,
        **{"tag": _TAGS.get(first, first), "status": 204 if answer is NoneType else 200, **fields},
    )


def _call(request: str, answer: type[Answer], access: Access, *refusals: int, **fields: Any) -> Route[None, Answer]:
    return _make(request, NoneType, answer, access, refusals, **fields)


def _send(
    request: str, body: type[Body], answer: type[Answer], access: Access, *refusals: int, **fields: Any
) -> Route[Body, Answer]:
    return _make(request, body, answer, access, refusals, **fields)


def _upload(
    request: str, answer: type[Answer], access: Access, *refusals: int, **fields: Any
) -> Route[Content, Answer]:
    return _make(request, cast(Any, bytes), answer, access, refusals, **fields)


# The headings of routes that are not named after what their path begins with.
_TAGS = {
    "blobs": "bundles",
    "configuration-schema": "experiments",
    "health": "master",
    "introduction": "master",
    "messages": "notify",
    "session": "page",
    "settings": "notify",
    "trial-summaries": "experiments",
    **{f"experiment-{part}": "experiments" for part in ("groups", "list", "names", "rows", "views")},
}

# fmt: off
# What a request sends, what it is answered, who may send it, and with which statuses it is refused (404 wherever the
# path has a parameter; 401, 403, 413, 422, 500, 503 and 507 everywhere).
# The master
GET_HEALTH = _call("GET /health", rest.Health, PUBLIC, doc="Say that the master lives. Public.")
INTRODUCE_MASTER = _call("GET /introduction?nonce", rest.Introduction, PUBLIC, 409,
    doc="Prove to a client over plain TCP that this is the master of its token. Public.")
INTRODUCE_CLIENT = _send("POST /introduction", rest.ClientProof, rest.Health, PUBLIC, 409,
    doc="Take the proof of a client that it knows the token: all further requests of its connection are the user's.")
GET_MASTER = _call("GET /master", rest.MasterInfo, FRONT_END, doc="Say who the master is and what it has.")
CLEAN_DATABASE = _call("POST /master/clean?days", rest.Cleaned, USER,
    doc="Give the room back that the database takes and does not use.")
SHUT_DOWN = _call("POST /master/shutdown?kill", rest.Health, USER, status=202, doc="End the master.")

# The workers' Python
ASK_ENVIRONMENT = _send(
    "POST /environment", environment.EnvironmentQuestion, environment.EnvironmentAnswer, USER, 409, repeatable=True,
    doc="Say which of these modules the workers can import, and in which versions; nothing is imported for it.")

# Data sets
FIND_MISSING_DATA = _send(
    "POST /data/missing", datasets.WantedFiles, datasets.MissingFiles, USER, 400, repeatable=True,
    body_limit=MANIFEST_LIMIT,
    doc="Say which files are not here, and how much of them has arrived.")
FIND_DATA = _send("POST /data/find", datasets.Sizes, datasets.FoundFiles, USER, 400, repeatable=True,
    doc="Say which files of these sizes are here.")
PUT_DATA = _upload("POST /data/contents", datasets.Received, USER, 400, 409, body_limit=PACK_LIMIT,
    doc="Take pieces of files, each where the last one ended; what arrives is kept, however the request ends.")
LIST_DATA = _call("GET /data", list[datasets.DataSetInfo], FRONT_END, doc="Return the named sets.")
CREATE_DATA = _send(
    "POST /data", datasets.DataSetCreate, datasets.DataSetInfo, USER, 400, 409, body_limit=MANIFEST_LIMIT,
    doc="Give files that are here a name; those that had it before go.")
REMOVE_DATA = _call("DELETE /data/{name}", list[datasets.DataSetInfo], USER, 409,
    doc="Remove a set and the files that no other has; return those that are left.")

# Bundles and their blobs
FIND_MISSING = _send(
    "POST /blobs/missing", rest.HashList, rest.HashList, USER, 400, repeatable=True, body_limit=MANIFEST_LIMIT,
    doc="Say which blobs are not here yet.")
PUT_BLOBS = _upload("POST /blobs", rest.HashList, USER, 400, body_limit=PACK_LIMIT,
    doc="Store packed blobs, any number of them in one body.")
GET_BLOB = _call("GET /blobs/{sha256}", bytes, FRONT_END, doc="Return the raw content of a blob.")
CREATE_BUNDLE = _send(
    "POST /bundles", manifests.BundleManifest, rest.BundleCreated, USER, 400, 409, repeatable=True,
    body_limit=MANIFEST_LIMIT,
    doc="Keep a bundle's manifest; its paths must stay in their folder, and its blobs must be here.")
GET_BUNDLE = _call("GET /bundles/{bundle_id}", manifests.BundleManifest, FRONT_END, doc="Return a bundle's manifest.")
GET_BUNDLE_CREATED = _call("GET /bundles/{bundle_id}/created", rest.BundleCreated, USER,
    doc="Say whether a bundle is here and has passed the check; all that an unchanged directory costs to submit "
    "again.")
CHECK_BUNDLE = _call("POST /bundles/{bundle_id}/check", rest.BundleChecked, USER, repeatable=True,
    doc="Load a bundle in a fresh process, without running its cells; a pass is remembered.")

# Experiments: finding
LIST_EXPERIMENTS = _call(
    "GET /experiments?query&state&name&label&project&metric&since&archived&order_by&limit&before&after",
    list[rest.Experiment], FRONT_END, 400,
    doc="Return experiments, newest first unless told otherwise; headers say how many there are, and the next page.")
LIST_TRIAL_SUMMARIES = _call("GET /trial-summaries?experiment_id&best", list[summaries.TrialSummary], FRONT_END,
    doc="Return hyperparameters and metrics of the trials of experiments: of each metric the last value and extremes.")
LIST_EXPERIMENT_IDS = _call(
    "GET /experiment-list?order_by&rows&hparams&metric&query&state&label&project&since&archived", table.ExperimentList,
    FRONT_END, 400,
    doc="Return the ids of all experiments that a query holds for, in order, and the first of their rows.")
LIST_EXPERIMENT_ROWS = _call("GET /experiment-rows?id&hparams&metric", list[table.ExperimentRow], FRONT_END,
    doc="Return rows of these experiments; those that are gone are left out.")
LIST_EXPERIMENT_GROUPS = _call(
    "GET /experiment-groups?by&measure&query&state&label&project&since&archived", table.ExperimentGroups, FRONT_END,
    400,
    doc="Return groups of the experiments that a query holds for, with mean, deviation and the best of a measure.")
LIST_EXPERIMENT_NAMES = _call("GET /experiment-names", table.ExperimentNames, FRONT_END,
    doc="Return what a query may name: metrics, hyperparameters, labels, projects, with how many experiments have it.")
LIST_EXPERIMENT_VIEWS = _call("GET /experiment-views", list[table.ExperimentView], FRONT_END,
    doc="Return the views of the table of experiments that were saved, by name.")
SAVE_EXPERIMENT_VIEW = _send("PUT /experiment-views", table.ExperimentViewBody, list[table.ExperimentView], FRONT_END,
    doc="Save a view in the place of one of the same name; return all views.")
DELETE_EXPERIMENT_VIEW = _call("DELETE /experiment-views?name", list[table.ExperimentView], FRONT_END, 404,
    doc="Delete a view; return those that are left.")

# Experiments: one
CREATE_EXPERIMENT = _send(
    "POST /experiments", rest.ExperimentCreate, rest.Experiment, USER, 400, 404, 409, 426, status=201,
    doc="Create an experiment and begin it. A repeat with the same Idempotency-Key returns the first one.")
GET_EXPERIMENT = _call("GET /experiments/{experiment_id}", rest.ExperimentDetail, FRONT_END,
    doc="Return an experiment with its capture report.")
CHANGE_EXPERIMENT = _send(
    "PATCH /experiments/{experiment_id}", rest.ExperimentChange, rest.Experiment, FRONT_END, 400, 409,
    doc="Change what people write of an experiment; priority, weight or max_slots of one that goes on, for which "
    "trials\n"
    "may make room, or get some.")
KILL_EXPERIMENT = _call("POST /experiments/{experiment_id}/kill", rest.Experiment, FRONT_END, repeatable=True,
    doc="End an experiment now, without a checkpoint; its trials become CANCELED.")
KEEP_NOTEBOOK = _make(
    "PUT /experiments/{experiment_id}/notebook", cast(Any, bytes), rest.Experiment, USER, (400,), repeatable=True,
    body_limit=PACK_LIMIT, doc="Keep the executed notebook whose training call began an experiment.")
GET_NOTEBOOK = _call("GET /experiments/{experiment_id}/notebook", bytes, FRONT_END,
    doc="Return the executed notebook whose training call began an experiment, as far as it had come.")
STOP_EXPERIMENT = _call("POST /experiments/{experiment_id}/stop", rest.Experiment, FRONT_END, repeatable=True,
    doc="End an experiment: its workers checkpoint first; its trials become CANCELED.")
PAUSE_EXPERIMENT = _call("POST /experiments/{experiment_id}/pause", rest.Experiment, FRONT_END, 409, repeatable=True,
    doc="Pause an experiment: its workers checkpoint and end, and nothing starts until it is resumed.")
RESUME_EXPERIMENT = _call("POST /experiments/{experiment_id}/resume", rest.Experiment, FRONT_END, 409, repeatable=True,
    doc="Go on with a paused experiment; its trials continue from their checkpoints.")
GET_EXPERIMENT_CURVES = _call(
    "GET /experiments/{experiment_id}/curves?metric&kind&trials&buckets&only&first&last", list[rest.MetricCurve],
    FRONT_END,
    doc="Return the curves of the best trial and the newest ones, each down-sampled to at most `buckets` points.\n\n"
    "Of a stretch of batches the points are the finer, the shorter it is.\n"
    "Where there are very many curves (trials times metrics) each has fewer points, so that an answer stays small.")
LIST_TRIALS = _call("GET /experiments/{experiment_id}/trials", list[rest.Trial], FRONT_END,
    doc="Return the trials of an experiment, oldest first.")
LIST_CHECKPOINTS = _call("GET /experiments/{experiment_id}/checkpoints", list[rest.Checkpoint], FRONT_END,
    doc="Return the checkpoints of an experiment by trial and batch, deleted ones included.")
DELETE_EXPERIMENT = _call("DELETE /experiments/{experiment_id}", life.Deletion, FRONT_END, 409,
    doc="Delete an experiment that has ended, with its checkpoints, files, output and metrics; tell what that frees.")
FORK_EXPERIMENT = _send(
    "POST /experiments/{experiment_id}/fork", life.ExperimentFork, rest.Experiment, FRONT_END, 400, 409, status=201,
    doc="Submit the program of an experiment with another configuration.")
CONTINUE_EXPERIMENT = _send(
    "POST /experiments/{experiment_id}/continue", life.ExperimentContinuation, rest.Experiment, FRONT_END, 400, 409,
    status=201,
    doc="Submit an experiment that goes on from a checkpoint of this one, and trains so much longer.")
SET_GC_POLICY = _send("PUT /experiments/{experiment_id}/gc-policy", life.Retention, life.Retained, FRONT_END, 400,
    doc="Change how many checkpoints of an experiment stay; what is superfluous then goes.")
GET_DELETION = _call("GET /experiments/{experiment_id}/deletion", life.Deletion, FRONT_END,
    doc="Tell what the deletion of an experiment would free, and what stands in its way; nothing is deleted.")
GET_IMPORTANCE = _call("GET /experiments/{experiment_id}/importance?metric", importance.Importance, FRONT_END,
    doc="Return how much each hyperparameter explains of a metric, over the trials that have ended.")
GET_CLOCK = _call("GET /trials/{trial_id}/clock?points", clocks.TrialClock, FRONT_END,
    doc="Return when a trial had done how many batches, and after which its epochs ended.")
GET_CLOCKS = _call(
    "GET /experiments/{experiment_id}/clocks?trials&only&points", list[clocks.TrialClock], FRONT_END, tag="trials",
    doc="Return the clocks of those trials of which `/curves` has the curves.")
GET_CONFIGURATION_SCHEMA = _call("GET /configuration-schema", dict[str, Any], FRONT_END,
    doc="Return the JSON schema of a configuration: its fields with their defaults and what is valid.")

# Trials
GET_TRIAL = _call("GET /trials/{trial_id}", rest.Trial, FRONT_END, doc="Return a trial.")
GET_METRICS = _call("GET /trials/{trial_id}/metrics?kind&after_batch&limit", list[rest.MetricRow], FRONT_END,
    doc="Return metrics rows in order of batches; fewer than `limit` where they are very long, none at the end.")
GET_SERIES = _call("GET /trials/{trial_id}/series?name&kind&buckets", rest.MetricSeries, FRONT_END,
    doc="Return one metric down-sampled to at most `buckets` points, minimum and maximum kept.")
GET_CURVES = _call("GET /trials/{trial_id}/curves?kind&buckets&first&last", list[rest.MetricCurve], FRONT_END,
    doc="Return every metric down-sampled to at most `buckets` points, minimum and maximum kept; of fewer rows, all."
    "\n\nOf a stretch of batches the points are the finer, the shorter it is.")
GET_EPOCHS = _call("GET /trials/{trial_id}/epochs", list[rest.EpochRow], FRONT_END,
    doc="Return what the framework's own history has of each epoch; of Keras only, and of none before this route was.")
GET_SYSTEM = _call("GET /trials/{trial_id}/system?points", list[rest.SystemSample], FRONT_END,
    doc="Return what the processes of a trial used of their machines, by time.")
GET_MEDIA = _call("GET /trials/{trial_id}/media?kind&name&after&limit", list[outputs.Medium], FRONT_END,
    doc="Return the pictures, tables, texts and histograms that a trial has logged, in the order of their ids.")
GET_MEDIUM_CONTENT = _call("GET /trials/{trial_id}/media/{medium_id}/content", bytes, FRONT_END,
    doc="Return what a trial has logged; nothing in it runs where a browser shows it, by the headers of every answer.")
GET_LOGS = _call("GET /trials/{trial_id}/logs?after&limit&last&before", list[rest.LogLine], FRONT_END,
    doc="Return log lines, oldest first; the first `limit` ones, or the last ones.")
LIST_TRIAL_ARTIFACTS = _call("GET /trials/{trial_id}/artifacts", list[outputs.Artifact], FRONT_END,
    doc="Return the files that the code of a trial has written, by path.\n\n"
    "Where a run has ended without saying so, the answer waits until the master has looked for what it wrote.")
GET_ARTIFACT_CONTENT = _call("GET /trials/{trial_id}/artifacts/content?path&sha256&offset", bytes, FRONT_END, 409,
    doc="Return the content of a file that the code of a trial has written, or what of it is missing.")
LIST_TRIAL_CHECKPOINTS = _call("GET /trials/{trial_id}/checkpoints", list[rest.Checkpoint], FRONT_END,
    doc="Return the checkpoints of a trial by batch, deleted ones included.")

# Checkpoints
GET_CHECKPOINT = _call("GET /checkpoints/{uuid}", rest.Checkpoint, FRONT_END,
    doc="Return a checkpoint; it may be deleted.")
CHANGE_CHECKPOINT = _send("PATCH /checkpoints/{uuid}", registry.CheckpointChange, rest.Checkpoint, FRONT_END, 400, 409,
    doc="Change what is noted of a checkpoint, and whether it is pinned: a pinned one is never collected.")
DELETE_CHECKPOINT = _call("DELETE /checkpoints/{uuid}", rest.Checkpoint, FRONT_END, 409, 424,
    doc="Delete a checkpoint, if nothing needs it: neither registered nor pinned, nobody's source, nor of a live "
    "trial.")
GET_CHECKPOINT_INSTEAD = _call("GET /checkpoints/{uuid}/instead", rest.Checkpoint, USER,
    doc="Return the checkpoint of the same trial that is best had instead of a damaged one; its files are verified.")
GET_VERSIONS_OF_CHECKPOINT = _call("GET /checkpoints/{uuid}/models", list[registry.ModelVersion], FRONT_END,
    doc="Return the versions of models that a checkpoint is.")
VERIFY_CHECKPOINT = _call(
    "POST /checkpoints/{uuid}/verify", registry.CheckpointVerified, FRONT_END, 424, repeatable=True,
    doc="Read all files of a checkpoint in its storage, and say whether they are what was saved.")
GET_CHECKPOINT_FILE = _call("GET /checkpoints/{uuid}/files/{path:path}?offset", bytes, FRONT_END, 409, 424,
    doc="Return a file of a checkpoint, or what of it is left. Only files that the manifest names exist.")

# The model registry
CREATE_MODEL = _send("POST /models", registry.ModelCreate, registry.Model, FRONT_END, 400, 409, status=201,
    doc="Add a model to the registry.")
LIST_MODELS = _call(
    "GET /models?sort_by&order_by&name&description&label&archived&limit&offset", list[registry.Model], FRONT_END, 400,
    doc="Return models.")
GET_MODEL = _call("GET /models/{name}", registry.Model, FRONT_END, 400, doc="Return a model.")
CHANGE_MODEL = _send("PATCH /models/{name}", registry.ModelChange, registry.Model, FRONT_END, 400, 409,
    doc="Change a model.")
DELETE_MODEL = _call("DELETE /models/{name}?versions", NoneType, FRONT_END, 400, 409, doc="Delete a model.")
REGISTER_VERSION = _send(
    "POST /models/{name}/versions", registry.VersionCreate, registry.ModelVersion, FRONT_END, 400, 409, status=201,
    doc="Make a checkpoint the next version of a model. It is not collected then.")
LIST_VERSIONS = _call("GET /models/{name}/versions?order_by", list[registry.ModelVersion], FRONT_END, 400,
    doc="Return the versions of a model, newest first by default.")
GET_VERSION = _call("GET /models/{name}/versions/{version}", registry.ModelVersion, FRONT_END, 400,
    doc="Return a version of a model.")
CHANGE_VERSION = _send(
    "PATCH /models/{name}/versions/{version}", registry.VersionChange, registry.ModelVersion, FRONT_END, 400,
    doc="Change a version of a model: its stage, say.")
DELETE_VERSION = _call("DELETE /models/{name}/versions/{version}", NoneType, FRONT_END, 400,
    doc="Delete a version of a model; its checkpoint is as all others then.")

# Events
STREAM_EVENTS = _call("GET /events?experiment_id&after&tail", bytes, FRONT_END, 404,
    doc="Stream what happened after an event, then what happens; whoever was cut off continues with Last-Event-ID.")

# Runs of notebooks on the master's machine, and schedules
LIST_NOTEBOOK_RUNS = _call("GET /notebook-runs", list[notebook_runs.NotebookRun], FRONT_END,
    doc="Return the runs of notebooks on the master's machine, newest first.")
STOP_NOTEBOOK_RUN = _call("POST /notebook-runs/{number}/stop", notebook_runs.NotebookRun, FRONT_END, repeatable=True,
    doc="Stop a run of a notebook, and the experiments that it waits for.")
GET_RUN_NOTEBOOK = _call("GET /notebook-runs/{number}/notebook", bytes, FRONT_END,
    doc="Return the executed notebook of a run, as far as it has come.")
CREATE_SCHEDULE = _send(
    "POST /schedules", schedules.ScheduleCreate, schedules.Schedule, USER, 400, 404, 409, 426, status=201,
    doc="Have an experiment submitted at a time, or again and again; it is checked as if it were submitted now.")
LIST_SCHEDULES = _call("GET /schedules?all", list[schedules.Schedule], FRONT_END,
    doc="Return the schedules that submit still, newest first.")
GET_SCHEDULE = _call("GET /schedules/{schedule_id}", schedules.Schedule, USER, doc="Return a schedule.")
CANCEL_SCHEDULE = _call("DELETE /schedules/{schedule_id}", schedules.Schedule, FRONT_END, 409,
    doc="Have a schedule submit nothing more; what it has submitted goes on.")
PAUSE_SCHEDULE = _call("POST /schedules/{schedule_id}/pause", schedules.Schedule, FRONT_END, 409,
    doc="Have a schedule submit nothing until it is resumed.")
RESUME_SCHEDULE = _call("POST /schedules/{schedule_id}/resume", schedules.Schedule, FRONT_END, 409,
    doc="Have a paused schedule submit again.")
GET_QUEUE = _call("GET /queue?limit", queue.Queue, FRONT_END,
    doc="Return the experiments that have not ended, in the order of the scheduler.")

# The disk
GET_SPACE = _call("GET /space?max_age", space.Space, FRONT_END, doc="Say what takes the disk, by kind.")
GET_SPACE_SETTINGS = _call("GET /space/settings", space.SpaceSettings, USER,
    doc="Return the budget and what is kept for how long.")
PUT_SPACE_SETTINGS = _send("PUT /space/settings", space.SpaceSettings, space.SpaceSettings, USER, 400,
    doc="Change the budget, or what is kept for how long; fields that are left out stay.")
CLEAN_SPACE = _send("POST /space/clean", space.CleanWanted, space.CleanDone, FRONT_END, 400,
    doc="Delete what nobody needs of these kinds, or say what would go.")

# Notifications
GET_NOTIFY = _call("GET /settings/notify", notify.NotifySettings, USER,
    doc="Return who is told of all experiments; webhooks and secrets are shown as references.")
PUT_NOTIFY = _send("PUT /settings/notify", notify.NotifySettings, notify.NotifyKept, USER, 400,
    doc="Set who is told of all experiments; a reference that was shown stands for what it was made of.")
DELETE_NOTIFY = _call("DELETE /settings/notify", notify.NotifySettings, USER,
    doc="Have nobody told of all experiments; what configurations say holds on.")
TRY_NOTIFY = _call("POST /settings/notify/test", notify.NotifyTests, USER,
    doc="Send a test message to everybody who is told of all experiments, and say who has taken it.")
LIST_MESSAGES = _call("GET /messages?limit", list[notify.MessageInfo], FRONT_END,
    doc="Return the newest messages, newest first.")

# Signing in at the master's page
OPEN_PAGE = _send("POST /page", page.PageAsk, page.PageCode, USER, 409,
    doc="Return a code with which a browser signs in once; a port for browsers of this machine is opened if need be.")
GET_SESSION = _call("GET /session", page.SessionInfo, SESSION, 409,
    doc="Say that the browser is signed in, and for how long if it asks nothing more.")
SIGN_IN = _send("POST /session", page.SignIn, page.SignedIn, PUBLIC, 429,
    doc="Begin the session of a browser, by the code of a link. Public.")
SIGN_OUT = _call("DELETE /session", NoneType, SESSION, 409, doc="End the session of the browser that asks.")
MAKE_TICKET = _send("POST /session/ticket", page.TicketAsk, page.Ticket, SESSION, 400, 409,
    doc="Return the address with which a link downloads a file, once.")

# Workers
RECORD_KERNEL_RUN = _send(
    "POST /kernel-runs", kernel_runs.KernelRun, kernel_runs.KernelRunRecorded, USER, 400, 404, 409, 426,
    repeatable=True, body_limit=MANIFEST_LIMIT,
    doc="Record a run that has begun in a process of the user's: an experiment of one trial. A repeat changes nothing.")
POST_REPORTS = _send("POST /runs/{run_id}/reports", rest.ReportBatch, rest.ReportsAccepted, RUN, 400, 409,
    doc="Store reports. A repeat changes nothing; a gap is refused, and so is a run that is not current any more.")
GET_BEST = _call("GET /runs/{run_id}/best", rest.BestMetric, RUN, 409,
    doc="Return the best value of the searcher's metric over the whole experiment so far.")

# fmt: on
#: All routes by the names of their operations.
ROUTES: dict[str, Route[Any, Any]] = {
    name.lower(): value for name, value in list(globals().items()) if isinstance(value, Route)
}
