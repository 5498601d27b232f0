"""Experiments are created: what is wrong with one is said before it is stored."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Connection

from det_native._version import PROTOCOL
from det_native.errors import (
    ArgumentError,
    ConfigurationError,
    NotFoundError,
    ProtocolMismatchError,
    UnsupportedFeatureError,
)
from det_native.master.flow.after import check_after
from det_native.master.flow.context import Context, tell_experiment
from det_native.master.flow.fitting import check_fits
from det_native.master.flow.jobs import check_framework, check_horovod
from det_native.master.flow.places_of_checkpoints import check_writable, stored, with_masters_storage
from det_native.master.flow.warm_start import check_earlier, check_source
from det_native.master.store import bundles, checkpoints, experiments, secrets
from det_native.master.store.encoding import check_text
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.effects import refuse_unsupported
from det_native.schema.lengths import Length, Unit
from det_native.schema.loading import load_config
from det_native.schema.manifests import BundleManifest, Framework
from det_native.schema.namespaces import why_no_network
from det_native.schema.roles import roles_of
from det_native.schema.searcher import SingleSearcher
from det_native.search.make import check_search


@dataclass(frozen=True)
class Forked:
    """The experiment whose program a new one runs, and what people have written of it, where the new one is silent."""

    experiment_id: int
    description: str = ""
    labels: tuple[str, ...] = ()
    project: str = ""


@dataclass(frozen=True)
class Idempotency:
    """A client's key for a request, and the hash of the request's body."""

    key: str
    digest: str

    @classmethod
    def of(cls, key: str | None, asked: object) -> Self | None:
        """Return that of a request for what is `asked`, a value for JSON; None without a key."""
        text = json.dumps(asked, sort_keys=True)
        return None if key is None else cls(key, hashlib.sha256(text.encode()).hexdigest())


def create(
    context: Context,
    owner: str,
    body: rest.ExperimentCreate,
    idempotency: Idempotency | None,
    *,
    forked: Forked | None = None,
) -> tuple[rest.Experiment, bool]:
    """Store a new experiment; return it, and whether it is new (False for a repeat of an idempotency key).

    Raises
    ------
    ConfigurationError, UnsupportedFeatureError
        If the configuration is not valid, or asks for what this version does not run.
    ArgumentError
        If a trial could never run on this machine, or what it comes after has failed already.
    MissingDependencyError
        If it needs Horovod or a framework, and there is none.
    ProtocolMismatchError
        If the client speaks another protocol.
    NotFoundError
        If there is no such bundle, or not the checkpoint or trial that its trials are to begin with.
    CheckpointError
        If its trials cannot begin with that.
    RequestError
        If the idempotency key came with another body before.
    """
    config = _checked(context, owner, body)
    with context.database.write() as transaction:
        if idempotency is not None:
            known = experiments.created_with(transaction.connection, owner, idempotency.key, idempotency.digest)
            if known is not None:
                return experiments.get(transaction.connection, known, owner), False
        bundle, source = _fitting_bundle(context, transaction.connection, owner, body, config)
        shown = stored(config, context.places, owner)
        new = experiments.NewExperiment(
            owner=owner,
            name=config.title,
            config={**shown, "notify": secrets.hide(transaction, owner, shown["notify"])},
            bundle_id=body.bundle_id,
            framework=bundle.program.framework,
            metric=config.metric,
            smaller_is_better=config.smaller_is_better,
            report=body.report,
            idempotency=(idempotency.key, idempotency.digest) if idempotency else None,
            test=body.test,
            description=forked.description if forked is not None else config.description or "",
            labels=forked.labels if forked is not None else tuple(dict.fromkeys(config.labels)),
            project=forked.project if forked is not None else (config.project or "").strip("/"),
            forked_from=None if forked is None else forked.experiment_id,
        )
        experiment_id = experiments.create(transaction, new)
        uses = bundle.program.earlier_checkpoints | ({source.uuid} if source else set())
        checkpoints.note_uses(transaction, experiment_id, uses)
        return tell_experiment(transaction, experiment_id), True


def check(context: Context, owner: str, body: rest.ExperimentCreate) -> None:
    """Raise what :func:`create` would now, and store nothing."""
    config = _checked(context, owner, body)
    with context.database.read() as connection:
        _fitting_bundle(context, connection, owner, body, config)


def _checked(context: Context, owner: str, body: rest.ExperimentCreate) -> ExperimentConfig:
    check_protocol(body.protocol)
    config = _configuration(body, _framework(context, body.bundle_id))
    config = with_masters_storage(config, context.places)
    check_network(config)
    check_search(config)
    check_writable(config, context.places, owner)
    return config


def check_protocol(protocol: int) -> None:
    """Refuse what a client of another protocol sends.

    Raises
    ------
    ProtocolMismatchError
    """
    if protocol != PROTOCOL:
        raise ProtocolMismatchError(
            f"The client speaks protocol {protocol}, this master {PROTOCOL}. Restart the older of the two: "
            "the kernel, or the master with `det down` and `det up`."
        )


def _fitting_bundle(
    context: Context, connection: Connection, owner: str, body: rest.ExperimentCreate, config: ExperimentConfig
) -> tuple[BundleManifest, rest.Checkpoint | None]:
    """Return the bundle of an experiment, and the checkpoint that its configuration has it begin with, if any."""
    bundle = bundles.get(connection, body.bundle_id)
    check_framework(bundle)
    refuse_unsupported(config, bundle.program.framework)
    check_fits(config.resources, context.slots)
    check_horovod(config, bundle)
    source = check_source(connection, config, owner, bundle.program.framework)
    check_earlier(connection, bundle.program, owner)
    check_after(connection, config.after, owner)
    return bundle, source


def _framework(context: Context, bundle_id: str) -> Framework | None:
    """Return the framework of a bundle; None if there is no such bundle, which is told later."""
    with context.database.read() as connection:
        try:
            return bundles.get(connection, bundle_id).program.framework
        except NotFoundError:
            return None


def readable(raw: dict[str, Any], framework: Framework | None, *, local: bool = False) -> ExperimentConfig:
    """Return a configuration as it came.

    Raises
    ------
    ConfigurationError, ArgumentError
        If it is not valid.
    """
    check_text(raw)
    try:
        return load_config(raw, local=local, framework=framework, warn=False)
    except ConfigurationError:
        raise
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"The configuration cannot be read: {error}") from error


def _configuration(body: rest.ExperimentCreate, framework: Framework | None) -> ExperimentConfig:
    config = readable(body.config, framework)
    refuse_unsupported(config)  # before anything is made of it; what hangs on the framework is looked at later
    if not config.metric:
        raise ArgumentError("searcher.metric is missing: name the validation metric that trials are compared by.")
    config = config.with_some_seed()
    return testing_config(config) if body.test else config


def check_network(config: ExperimentConfig) -> None:
    """Refuse an experiment whose trials need a network of their own if this machine allows none.

    Raises
    ------
    UnsupportedFeatureError
    """
    if len(roles_of(config.model_dump(mode="json"))) < 2 or config.distributed.trusted_network:
        return
    why = why_no_network()
    if why:
        raise UnsupportedFeatureError(
            f"The processes of distributed.roles are in a network of their own, which is not allowed here: {why}. "
            "TensorFlow's servers listen on every address of a machine, and run whatever they are sent: set "
            "distributed.trusted_network: true if all who reach this machine may do that."
        )


def testing_config(config: ExperimentConfig) -> ExperimentConfig:
    """Return the configuration of a quick check: one batch, one validation, one checkpoint."""
    one_batch = Length(unit=Unit.BATCHES, units=1)
    searcher = SingleSearcher(
        metric=config.searcher.metric,
        smaller_is_better=config.smaller_is_better,
        max_length=one_batch,
        source_trial_id=config.searcher.source_trial_id,
        source_checkpoint_uuid=config.searcher.source_checkpoint_uuid,
        source_optimizer=config.searcher.source_optimizer,
    )
    # The last checkpoint is what comes into the notebook, so that the cells below go on.
    kept = {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 1}
    return config.model_copy(
        update={
            "name": f"[test-mode] {config.title}".rstrip(),
            "searcher": searcher,
            "scheduling_unit": 1,
            "min_validation_period": one_batch,
            "min_checkpoint_period": Length(unit=Unit.BATCHES, units=0),
            "perform_initial_validation": False,
            "max_restarts": 0,
            "checkpoint_storage": config.checkpoint_storage.model_copy(update=kept),
        }
    )
