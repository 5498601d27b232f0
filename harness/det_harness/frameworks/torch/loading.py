"""The weights of a checkpoint, back in a trial or in copies of models."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from det_harness.frameworks.torch import trial_state
from det_harness.frameworks.torch.checks import check_trial_class, check_wrapped
from det_harness.trial import rng
from det_native.pytorch import PyTorchTrial, PyTorchTrialContext
from det_native.schema.environment import TrialEnvironment
from det_native.tensorboard.place import writing_to


def load_trial(
    trial_class: type[PyTorchTrial], directory: Path, environment: TrialEnvironment, **arguments: Any
) -> PyTorchTrial:
    """Return a new instance of a trial class, with the weights of a checkpoint in its models.

    Parameters
    ----------
    arguments
        Further ones of the class.
    """
    check_trial_class(trial_class)
    # What the trial opens for event files belongs to no run: it is closed and thrown away.
    with rng.preserved(), tempfile.TemporaryDirectory(prefix="det-events-") as events, writing_to(Path(events)):
        rng.seed_all(environment.trial_seed)
        context = PyTorchTrialContext(environment, owner=trial_class.__name__)
        trial = trial_class(context, **arguments)
    check_wrapped(trial_class.__name__, context)
    trial_state.load_models(directory, context)
    for model in context.models:
        model.eval()
    return trial


def load_models(call: Any, directory: Path) -> Any:
    """Return copies of the models of a captured call, with the weights of a checkpoint: one model, or all in a list."""
    models = trial_state.loaded_copies(directory, call.context, f"the program before {call.name}()")
    return models[0] if len(models) == 1 else models
