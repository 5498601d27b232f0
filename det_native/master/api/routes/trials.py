"""Trials: their metrics and times, logs, files and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response, StreamingResponse

from det_native.errors import NotFoundError, RequestError
from det_native.master.api.answers import (
    LARGEST,
    ExperimentId,
    FirstBatch,
    LastBatch,
    TheOwner,
    TheService,
    TheShared,
    TrialId,
    kinds_of,
    list_json,
    reply_text,
    stretch,
)
from det_native.master.api.serving import serve
from det_native.master.store import (
    artifacts,
    checkpoints,
    clocks,
    epochs,
    experiments,
    logs,
    media,
    metrics,
    series,
    system,
    trials,
)
from det_native.schema import rest, routes
from det_native.schema.clocks import TrialClock
from det_native.schema.downloads import attachment
from det_native.schema.drawn import drawn
from det_native.schema.manifests import Sha256
from det_native.schema.outputs import MIME_TYPES, NAME_LENGTH, Artifact, MediaKind, Medium
from det_native.schema.states import MetricKind
from det_native.schema.system_samples import MOST_SAMPLES
from det_native.storage.blobs import BlobStore

Kind = Annotated[MetricKind, Query(description="What the rows measure.")]


@serve(routes.GET_TRIAL)
def get_trial(trial_id: TrialId, service: TheService, owner: TheOwner) -> rest.Trial:
    with service.database.read() as connection:
        return trials.get(connection, trial_id, owner)


@serve(routes.GET_METRICS)
def get_metrics(
    trial_id: TrialId,
    service: TheService,
    owner: TheOwner,
    kind: Kind = MetricKind.TRAINING,
    after_batch: Annotated[int, Query(ge=-1, le=LARGEST, description="Only later rows; -1 for all.")] = -1,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 10_000,
) -> Response:
    with service.database.read() as connection:
        return reply_text(
            metrics.rows_json(connection, trial_id, kind, owner=owner, after_batch=after_batch, limit=limit)
        )


@serve(routes.GET_SERIES)
async def get_series(
    trial_id: TrialId,
    service: TheService,
    shared: TheShared,
    owner: TheOwner,
    name: Annotated[str, Query(min_length=1, max_length=1000, description="Name of a metric.")],
    kind: Kind = MetricKind.TRAINING,
    buckets: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    def read() -> bytes:
        with service.database.read() as connection:
            found = series.read(connection, trial_id, kind, name, points=buckets, owner=owner)
        return found.model_dump_json().encode()

    return await shared.answer(("series", owner, trial_id, kind, name, buckets), read)


@serve(routes.GET_CURVES)
async def get_curves(
    trial_id: TrialId,
    service: TheService,
    shared: TheShared,
    owner: TheOwner,
    kind: Annotated[MetricKind | None, Query(description="What the metrics measure; both kinds by default.")] = None,
    buckets: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    first: FirstBatch = 0,
    last: LastBatch = LARGEST,
) -> Response:
    within = stretch(first, last)

    def read() -> bytes:
        with service.database.read() as connection:
            trial = trials.get(connection, trial_id, owner)
            experiment = experiments.get(connection, trial.experiment_id)
            found = series.curves(connection, trial_id, kinds_of(kind), points=buckets, within=within)
        return list_json(drawn(found, experiment.framework, validates=experiment.validates)).encode()

    return await shared.answer(("curves", owner, trial_id, kind, buckets, within), read)


@serve(routes.GET_EPOCHS)
def get_epochs(trial_id: TrialId, service: TheService, owner: TheOwner) -> list[rest.EpochRow]:
    with service.database.read() as connection:
        return epochs.read(connection, trial_id, owner=owner)


@serve(routes.GET_SYSTEM)
def get_system(
    trial_id: TrialId,
    service: TheService,
    owner: TheOwner,
    points: Annotated[
        int | None, Query(ge=1, le=MOST_SAMPLES, description="Merge neighbours to about so many of each process.")
    ] = None,
) -> list[rest.SystemSample]:
    with service.database.read() as connection:
        return system.read(connection, trial_id, points=points, owner=owner)


@serve(routes.GET_MEDIA)
def get_media(
    trial_id: TrialId,
    service: TheService,
    owner: TheOwner,
    kind: Annotated[
        MediaKind | None, Query(description="Only pictures, tables, texts, histograms, or what cells show.")
    ] = None,
    name: Annotated[str | None, Query(min_length=1, max_length=NAME_LENGTH, description="Only of this name.")] = None,
    after: Annotated[int, Query(ge=0, le=LARGEST, description="Only those with a larger id.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> list[Medium]:
    with service.database.read() as connection:
        return media.read(connection, trial_id, owner=owner, kind=kind, name=name, after=after, limit=limit)


@serve(routes.GET_MEDIUM_CONTENT, description="The content, by its mime type.")
def get_medium_content(
    trial_id: TrialId,
    medium_id: Annotated[int, Path(ge=1, le=LARGEST, description="Id of a medium.")],
    service: TheService,
    owner: TheOwner,
) -> Response:
    with service.database.read() as connection:
        medium = media.get(connection, trial_id, medium_id, owner)
        name = trials.name_of(connection, trial_id)
    if medium.sha256 not in service.blobs:
        raise NotFoundError(f"The content of {medium.name!r} of trial {name} is not there any more.")
    return StreamingResponse(
        (bytes(block) for block in service.blobs.blocks(medium.sha256)),
        media_type=MIME_TYPES.get(medium.format, "application/octet-stream"),
    )


@serve(routes.GET_LOGS)
def get_logs(
    trial_id: TrialId,
    service: TheService,
    owner: TheOwner,
    after: Annotated[int, Query(ge=0, le=LARGEST, description="Only lines with a larger id.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    last: Annotated[int | None, Query(ge=1, le=10_000, description="The last so many lines, not the first.")] = None,
    before: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="With `last`: only lines with a smaller id, for paging back.")
    ] = None,
) -> list[rest.LogLine]:
    with service.database.read() as connection:
        if last is not None:
            return logs.last(connection, trial_id, last, owner=owner, line_id=after, before=before)
        return logs.after(connection, trial_id, owner=owner, line_id=after, limit=limit)


@serve(routes.LIST_TRIAL_ARTIFACTS)
def list_trial_artifacts(trial_id: TrialId, service: TheService, owner: TheOwner) -> list[Artifact]:
    service.files_left.wait(trial_id)
    with service.database.read() as connection:
        return artifacts.of_trial(connection, trial_id, owner=owner)


@serve(routes.GET_ARTIFACT_CONTENT)
def get_artifact_content(
    trial_id: TrialId,
    service: TheService,
    owner: TheOwner,
    path: Annotated[str, Query(min_length=1, max_length=NAME_LENGTH, description="Path of a file of the list.")],
    sha256: Annotated[
        Sha256 | None, Query(description="Of the content that is expected; 409 if the file has changed since.")
    ] = None,
    offset: Annotated[int, Query(ge=0, le=LARGEST, description="Bytes that have arrived already.")] = 0,
) -> Response:
    with service.database.read() as connection:
        artifact = artifacts.get(connection, trial_id, path, owner=owner)
        name = trials.name_of(connection, trial_id)
    return file_response(service.blobs, artifact, offset, trial=name, expected=sha256)


@serve(routes.LIST_TRIAL_CHECKPOINTS)
def list_trial_checkpoints(trial_id: TrialId, service: TheService, owner: TheOwner) -> list[rest.Checkpoint]:
    with service.database.read() as connection:
        trials.get(connection, trial_id, owner)
        return checkpoints.of_trial(connection, trial_id, owner)


def file_response(
    blobs: BlobStore, artifact: Artifact, offset: int, *, trial: str, expected: str | None = None
) -> Response:
    """Answer with the content of a file that the code of a trial has written, from `offset` on.

    `trial` is what people call it.

    Raises
    ------
    NotFoundError
        If its content was not kept.
    RequestError
        409 if it has changed since, or its content is lost.
    """
    title = f"{artifact.path!r} of trial {trial}"
    if artifact.sha256 is None:
        raise NotFoundError(f"The content of {title} was not kept. {artifact.note}".strip())
    if expected is not None and expected != artifact.sha256:
        raise RequestError(409, f"The training has written {title} anew since; ask for the list of its files again.")
    if artifact.sha256 not in blobs:
        raise RequestError(409, f"The content of {title} is lost: it was damaged or removed in {blobs.uri}.")
    begin = min(offset, artifact.size)
    return StreamingResponse(
        _from(blobs.blocks(artifact.sha256), begin),
        media_type="application/octet-stream",
        headers={"Content-Length": str(artifact.size - begin), "Content-Disposition": attachment(artifact.path)},
    )


def _from(blocks: Iterator[bytes | bytearray | memoryview], offset: int) -> Iterator[bytes]:
    for block in blocks:
        if offset >= len(block):
            offset -= len(block)
        else:
            yield bytes(block[offset:])
            offset = 0


Points = Annotated[int, Query(ge=2, le=5000, description="At most so many points of each trial.")]


@serve(routes.GET_CLOCK)
def get_clock(trial_id: TrialId, service: TheService, owner: TheOwner, points: Points = 1000) -> TrialClock:
    with service.database.read() as connection:
        trials.get(connection, trial_id, owner)
        (found,) = clocks.read(connection, [trial_id], points=points)
    return found


@serve(routes.GET_CLOCKS)
async def get_clocks(
    experiment_id: ExperimentId,
    service: TheService,
    shared: TheShared,
    owner: TheOwner,
    newest: Annotated[int, Query(ge=1, le=1000, alias="trials", description="Of how many trials at most.")] = 50,
    only: Annotated[list[int] | None, Query(description="Of these trials alone; may be given often.")] = None,
    points: Points = 300,
) -> Response:
    chosen = None if only is None else tuple(only)

    def read() -> bytes:
        with service.database.read() as connection:
            experiment = experiments.get(connection, experiment_id, owner)
            shown = trials.chosen(connection, experiment, newest, chosen)
            return list_json(clocks.read(connection, shown, points=points)).encode()

    return await shared.answer(("clocks of trials", owner, experiment_id, newest, chosen, points), read)
