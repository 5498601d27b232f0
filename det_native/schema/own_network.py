"""Whether the trials of an experiment can have the network of their own that its roles need."""

from __future__ import annotations

from det_native.errors import UnsupportedFeatureError
from det_native.schema.config import ExperimentConfig
from det_native.schema.namespaces import why_no_network
from det_native.schema.roles import roles_of


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
