"""Submitting: capture what a training call needs, send it, have it checked, and create the experiment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import det_native.display  # noqa: F401 (handles show themselves by what it registers)
from det_native._version import PROTOCOL
from det_native.capture import submitted
from det_native.capture.bundle import assemble
from det_native.capture.bundle_rows import count_cells
from det_native.capture.call import notebook_folder
from det_native.capture.log import current_log, running_execution
from det_native.capture.model import Bundle, Capture
from det_native.capture.stored import Stored
from det_native.client import rendering
from det_native.client.addresses import named_master
from det_native.client.connect import connect, locate
from det_native.client.datasets import stored_sizes
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.last import note_begun
from det_native.client.persistence import over_cuts
from det_native.client.remote.target import is_ssh
from det_native.client.replayed_source import recording
from det_native.client.session import Session
from det_native.client.upload import forget_bundle, note_checked, upload_bundle
from det_native.display.environment import in_notebook
from det_native.display.report import ShownReport, counted, show_report
from det_native.display.text import title_of
from det_native.errors import BundleCheckError, DetError, MasterUnreachableError, NotFoundError, Problem
from det_native.experimental.choice import choice
from det_native.experimental.origin import Origin
from det_native.experimental.proof import NotedInputs, proof_of
from det_native.experimental.settings import Settings, complete_for_fit
from det_native.experimental.worker_environment import fit_to_workers
from det_native.frameworks import get_framework, resolve
from det_native.home.files import FilesOfCall
from det_native.home.result import note_result
from det_native.schema import rest, routes
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CallKind, Framework
from det_native.schema.sampling import sample_hyperparameters
from det_native.trial import Trial

CHECK_SECONDS = 600.0


def submit_fit(call: Any, settings: Settings, origin: Origin) -> Experiment:
    """Submit a captured call of ``fit()``, or of the ``train()`` of a user's own loop.

    Raises
    ------
    TrialDefinitionError
        If the call cannot give the searcher's metric.
    """
    config = complete_for_fit(settings, call)
    environment: TrialEnvironment = call.context.env
    sample = _sample(config) | environment.hparams
    call.check(replace(environment, config=config.model_dump(mode="json"), hparams=sample))
    if hasattr(call, "not_here"):  # what completing the configuration has read, a worker reads
        call.not_here()
    if config.reproducibility.experiment_seed is None:  # the one that init() has drawn, and seeded this process by
        config = config.with_seed(environment.config["reproducibility"]["experiment_seed"])
    folder = Path(settings.context_dir).expanduser() if settings.context_dir else notebook_folder()
    noted = proof_of(call, replace(environment, config=config.model_dump(mode="json")), origin.early, folder=folder)
    return submit(call.kind, call, config, call.framework, settings, origin, noted)


def train_by_master(
    kind: CallKind,
    trial_class: type[Trial] | None,
    config: ExperimentConfig,
    framework: Framework,
    settings: Settings,
    origin: Origin,
) -> Experiment:
    """Submit what makes its own model, see :func:`submit`; what was to be local is waited for, in a program."""
    experiment = submit(kind, trial_class, config, framework, settings, origin)
    if settings.place.by_master and origin.has_code:
        from det_native.home.waiting import wait_for_result

        __tracebackhide__ = True
        wait_for_result(experiment, settings.show)
    return experiment


def submit(
    kind: CallKind,
    payload: Any,
    config: ExperimentConfig,
    framework: Framework,
    settings: Settings,
    origin: Origin,
    noted: NotedInputs | None = None,
) -> Experiment:
    """Submit one training call and return its experiment at once.

    Parameters
    ----------
    kind : {"fit", "train", "create", "train_and_evaluate"}
    payload : FitCall, TorchCall or type
        What is trained.
    config : ExperimentConfig
        Complete.
    framework : str
    settings : Settings
    origin : Origin
    noted : NotedInputs, optional
        What the call was given here.

    Raises
    ------
    CaptureError
        If cells, values or files that the call needs cannot be sent, or do not load in a fresh process.
    MasterError
        If the master cannot be started or reached, or refuses.
    """
    begun = time.time()
    if named_master(settings.master_url):
        connect(settings.master_url)  # an address that is wrong is told before the work of capturing
    capture = origin.capture(kind, payload, framework, settings)
    if capture.program.kind == "cells" and noted is not None:  # of a script nothing is used afterwards
        capture.history.proof, capture.history.proof_values = noted.proof, noted.values
        capture.notes.warnings += noted.proof.sentences
    here = master_name(settings)
    capture.history.earlier = [one for one in capture.history.earlier if one.master == here]
    capture.history.answers = [answers for answers in capture.history.answers if answers.master == here]
    config = config.with_variables(_variables_here(framework))
    experiment = send_capture(capture, config, framework, settings)
    program = capture.program  # of a script, places are the same in all that it submits
    submitted.note_recorded(origin.record, experiment, here, program.init if program.kind == "script" else None)
    if payload is not None and origin.has_code:  # else nothing in this process reads what is written
        model_dir = getattr(getattr(payload, "estimator", None), "model_dir", None)
        searched_here = settings.place.by_master and config.searcher.name != "single" and not settings.place.test
        trained = payload if isinstance(payload, type) or not searched_here else None
        note_result(experiment, trained, FilesOfCall(begun, model_dir or ""), running_execution())
    return experiment


def master_name(settings: Settings) -> str:
    """Return what tells one master from another; empty for that of this machine."""
    return named_master(settings.master_url) or ""


def _variables_here(framework: Framework) -> dict[str, str]:
    """Return the variables by which the workers import the framework as this process has."""
    description = get_framework(framework)
    if not description.variables_here:
        return {}
    try:
        return cast(Callable[[], dict[str, str]], resolve(description.variables_here))()
    except ModuleNotFoundError:  # it is on the workers only
        return {name: os.environ[name] for name in description.deciding_variables if name in os.environ}


def send_capture(capture: Capture, config: ExperimentConfig, framework: Framework, settings: Settings) -> Experiment:
    """Send what was captured, have it checked, and create its experiment; see :func:`submit`."""
    stored = stored_at(settings.master_url)
    bundle = assemble(
        capture,
        context_dir=settings.context_dir,
        protocol=PROTOCOL,
        stored=stored,
        elsewhere=bool(named_master(settings.master_url)),
    )
    bundle = for_master(bundle, settings.master_url)
    shown = show_report(bundle.report, bundle.warnings, contents=_contents(bundle))
    try:
        shown.say("Starting a master ..." if locate(settings.master_url) is None else "Asking the master ...")
        session = connect(settings.master_url, framework=framework)
        fitted = fit_to_workers(session, bundle, capture.packages, config.environment.packages)
        bundle = fitted.bundle
        shown.add(fitted.rows, fitted.warnings)
        detail = send(session, config, bundle, shown, test=settings.place.test)
    except BaseException:
        shown.failed("It ended here; the error says why.")
        raise
    experiment = Experiment(recording(HttpSource(session)), detail.id)
    note_begun(experiment)
    choice().note(detail.id, master_name(settings))
    if settings.show == "view" and in_notebook():
        shown.say("")
        with suppress(DetError):  # it is submitted, whatever becomes of the master at this moment
            rendering.current().follow(experiment, "view")
        return experiment
    live = "" if settings.master_url else f"det.attach({detail.id}) shows it live, "
    shown.say(f"{title_of(detail.id, detail.name)} is submitted. {live}experiment.wait() waits for its end.")
    return experiment


def stored_at(master_url: str | None) -> Stored:
    """Return what tells which contents the store of a master has; none of one that does not run, or is too old."""

    def ask(sizes: Sequence[int]) -> dict[int, set[str]]:
        try:
            return stored_sizes(connect(master_url, start=is_ssh(named_master(master_url) or "")), sizes)
        except (MasterUnreachableError, NotFoundError):
            return {}

    return ask


def for_master(bundle: Bundle, master_url: str | None) -> Bundle:
    """Return the bundle for a master; for one behind SSH, where another interpreter lies at the place of this one,
    without that place.
    """
    if not is_ssh(named_master(master_url) or ""):
        return bundle
    interpreter = bundle.manifest.interpreter.model_copy(update={"executable": ""})
    return replace(bundle, manifest=bundle.manifest.model_copy(update={"interpreter": interpreter}))


def _contents(bundle: Bundle) -> str:
    """Return what is sent, counted: ``5 of 9 cells, 1 value, 2 files``."""
    program, log = bundle.manifest.program, current_log()
    cells = count_cells(program)
    executed = len({execution.cell for execution in log.executions}) if log is not None else 0
    script = program.command_line if program.kind == "command" else "".join(program.command[:1])
    words = [script or f"{cells} of {counted(max(executed, cells), 'cell')}"]
    values, files = len(bundle.manifest.values), len(bundle.manifest.files)
    return ", ".join([*words, *(counted(n, what) for n, what in ((values, "value"), (files, "file")) if n)])


def send(
    session: Session, config: ExperimentConfig, bundle: Bundle, shown: ShownReport, *, test: bool
) -> rest.Experiment:
    """Send a program with its configuration, and once more if the master has lost what it had a moment ago."""
    try:
        return _send(session, config, bundle, shown, test=test)
    except NotFoundError:
        forget_bundle(session, bundle.manifest.id)
        return _send(session, config, bundle, shown, test=test)


def _send(
    session: Session, config: ExperimentConfig, bundle: Bundle, shown: ShownReport, *, test: bool
) -> rest.Experiment:
    shown.say("Sending what the master does not have yet ...")
    created = upload_bundle(session, bundle)
    shown.update()
    # Where an environment is to be made first, that takes minutes: its trials tell what does not load there.
    if not created.checked and not bundle.manifest.packages:
        shown.say("Checking it in a fresh process ...")
        _check(session, created.id)
        note_checked(session, created.id)
    return _create(session, config, created.id, bundle, test=test)


def _check(session: Session, bundle_id: str) -> None:
    """Have the bundle loaded in a fresh process.

    Raises
    ------
    BundleCheckError
        Listing what is missing there.
    """
    checked = over_cuts(session, lambda: session.call(routes.CHECK_BUNDLE, bundle_id=bundle_id, timeout=CHECK_SECONDS))
    for notice in checked.notices:
        print(notice)
    if not checked.ok:
        raise BundleCheckError(
            "What would be sent does not load in a fresh process:",
            [Problem(found.where, found.what, found.remedy) for found in checked.problems],
        )


def _create(
    session: Session, config: ExperimentConfig, bundle_id: str, bundle: Bundle, *, test: bool
) -> rest.Experiment:
    body = rest.ExperimentCreate(
        protocol=PROTOCOL,
        config=config.model_dump(mode="json"),
        bundle_id=bundle_id,
        report=[rest.CaptureRow.model_validate(row.model_dump()) for row in bundle.report],
        test=test,
    )
    return session.call(routes.CREATE_EXPERIMENT, body, key=uuid4().hex)


def _sample(config: ExperimentConfig) -> dict[str, Any]:
    return sample_hyperparameters(config.hyperparameters, config.reproducibility.experiment_seed or 0)
