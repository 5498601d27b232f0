"""Wrong things typed on purpose: one clear error each, at once, before a master is started or anything trains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from journey_kernel import Notebook, Script

pytestmark = pytest.mark.slow

PREPARED = """
import numpy as np
import tensorflow as tf
import det_native as det
from det_native.experimental import create
from det_native.experimental.keras import init

x, y = np.zeros((64, 4), "float32"), np.zeros(64, "int64")

def model_of(context, *metrics, compiled=True):
    model = context.wrap_model(tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)]))
    if compiled:
        model.compile("sgd", "mse", metrics=list(metrics))
    return model

class Tiny(det.pytorch.PyTorchTrial):
    pass

class Complete(Tiny):
    __init__ = train_batch = evaluate_batch = lambda *_: None
    build_training_data_loader = build_validation_data_loader = lambda *_: None

steps = {"batches": 4}
config = {"searcher": {"metric": "error", "max_length": steps}, "hyperparameters": {"global_batch_size": 4}}
"""

# What is typed, the kind of error, and parts of its message.
WRONG: dict[str, tuple[str, str, list[str]]] = {
    "a misspelt field": (
        "init({'searcher': {'metric': 'val_loss', 'max_lenght': steps}, 'hyperparametres': {}})",
        "ConfigurationError",
        ["searcher.max_lenght: is not a field", "Did you mean searcher.max_length?", "Did you mean hyperparameters?"],
    ),
    "wrong types": (
        "init({'hyperparameters': {'global_batch_size': 'many'}, 'max_restarts': 'often'})",
        "ConfigurationError",
        ["max_restarts: must be a whole number, not the text 'often'", "global_batch_size: must be a number"],
    ),
    "a configuration that is no file": ("init('nowhere.yaml')", "ConfigurationError", ["there is no such file"]),
    "broken YAML": ("init('searcher: {metric: [')", "ConfigurationError", ["line 1, column 21", "is not YAML"]),
    "a misspelt mode": ("init(mode='clutser')", "ArgumentError", ["must be 'cluster' or 'local'", "not 'clutser'"]),
    "local and cluster": (
        "init(local=True, mode='cluster')",
        "ArgumentError",
        ["mode='cluster' and local=True contradict each other", "Leave one of them out."],
    ),
    "local as text": ("init(local='yes')", "ArgumentError", ["local must be True or False, not 'yes'"]),
    "a misspelt argument": ("init(lokal=True)", "SignatureError", ["no argument 'lokal'", "Did you mean local?"]),
    "a misspelt hyperparameter": (
        "init({'hyperparameters': {'units': 8, 'rate': 0.1}}, local=True).get_hparam('unit')",
        "ValueError",
        ["hyperparameters.unit is not in the configuration; it has: rate, units.", "Did you mean units?"],
    ),
    "the number of a local run": ("init(local=True).get_trial_id()", "ValueError", ["it has no trial id"]),
    "no such folder": ("init(context_dir='missing')", "ArgumentError", ["context_dir='missing'", "does not exist"]),
    "no such script": ("init(command=['train.py'])", "ArgumentError", ["'train.py'", "no such file"]),
    "no such file": ("init(include=['nothing.py'])", "ArgumentError", ["include: there is no", "nothing.py"]),
    "an array for its name": ("init(values=[x])", "ArgumentError", ["names of variables, such as values=['x_train']"]),
    "a value that is not there": (
        "model_of(init(values=['nothing'])).fit(x, y)",
        "CaptureError",
        ["values='nothing': there is no such name in the notebook"],
    ),
    "slots of one process": (
        "init({'resources': {'slots_per_trial': 2, 'native_parallel': True}})",
        "UnsupportedFeatureError",
        ["resources.native_parallel: true is refused", "a process for each slot"],
    ),
    "another trial's weights in the kernel": (
        "init({'searcher': {'metric': 'val_loss', 'source_trial_id': 3}}, local=True)",
        "UnsupportedFeatureError",
        ["searcher.source_trial_id: 3 is a checkpoint of the cluster, and this run is local", "leave local=True out"],
    ),
    "a searcher that does not exist": (
        "init({'searcher': {'name': 'singel'}})",
        "ConfigurationError",
        ["not 'singel'", "Did you mean single?"],
    ),
    "no model": ("init().wrap_model('model')", "TrialDefinitionError", ["wrap_model() takes a tf.keras.Model"]),
    "fit before compile": (
        "model_of(init(), compiled=False).fit(x, y)",
        "TrialDefinitionError",
        ["The model is not compiled. Call model.compile(...) before fit()."],
    ),
    "no validation data": (
        "model_of(init({'searcher': {'metric': 'val_loss'}})).fit(x, y)",
        "TrialDefinitionError",
        ["'val_loss', but fit() has no validation data", "Pass validation_data"],
    ),
    "a metric without val_": (
        "model_of(init({'searcher': {'metric': 'mae'}}), 'mae').fit(x, y, validation_data=(x, y))",
        "TrialDefinitionError",
        ["set it to 'val_mae'"],
    ),
    "a metric that is not compiled": (
        "model_of(init({'searcher': {'metric': 'val_acc'}}), 'accuracy').fit(x, y, validation_data=(x, y))",
        "TrialDefinitionError",
        ["searcher.metric is 'val_acc'", "val_loss, val_accuracy"],
    ),
    # A training that has begun is recorded, however it ends.
    "the same, here": (
        "import os; os.environ['DET_RECORD'] = 'off'\n"
        "model_of(init({'searcher': {'metric': 'val_acc'}}, local=True), 'mse').fit(x, y, validation_split=0.5)",
        "TrialDefinitionError",
        ["searcher.metric is 'val_acc'", "val_loss, val_mse"],
    ),
    "lengths that differ": ("model_of(init()).fit(x, y[:9])", "InvalidDataError", ["x has 64; y has 9 records"]),
    "half an epoch": (
        "model_of(init()).fit(x, y, epochs=2.5)",
        "ArgumentError",
        ["epochs must be a whole number, not 2.5"],
    ),
    "numbers as text": (
        "model_of(init()).fit(x, y, epochs='3', batch_size='a', validation_split='x')",
        "ArgumentError",
        ["epochs must be a whole number, not '3'", "batch_size must be", "validation_split must be a number, not 'x'"],
    ),
    "no number of epochs": (
        "model_of(init()).fit(x, y, epochs=None)",
        "ArgumentError",
        ["epochs must be a whole number"],
    ),
    "steps in parts": ("model_of(init()).fit(x, y, steps_per_epoch=2.7)", "ArgumentError", ["steps_per_epoch must be"]),
    "what is no callback": (
        "model_of(init()).fit(x, y, callbacks=[3])",
        "ArgumentError",
        ["callbacks must be instances of tf.keras.callbacks.Callback, not 3"],
    ),
    "a function for a class": ("create(model_of, config)", "TrialDefinitionError", ["this is function"]),
    "no such module": ("create('modells:Line', config)", "ArgumentError", ["there is no module 'modells'"]),
    "nothing to compare by": (
        "create(Complete, {})",
        "ConfigurationError",
        ["searcher.metric: is missing", "searcher.max_length: is missing", "global_batch_size: is missing"],
    ),
    "a class without methods, here": (
        "create(Tiny, config, local=True)",
        "TrialDefinitionError",
        ["Tiny", "build_training_data_loader"],
    ),
    "a class without methods": ("create(Tiny, config)", "TrialDefinitionError", ["Tiny", "train_batch"]),
    "a master whose token is not known": (
        "init(master_url='http://127.0.0.1:9')",
        "AuthenticationError",
        ["There is no token for the master at http://127.0.0.1:9: set DET_TOKEN."],
    ),
    "a master that is not there": (
        "import os; os.environ['DET_TOKEN'] = 'x'; init(master_url='http://127.0.0.1:9')",
        "MasterUnreachableError",
        ["No master answers at http://127.0.0.1:9"],
    ),
    "a name of a later version": (
        "det.experimental.init_native",
        "UnsupportedNameError",
        ["comes with a later version"],
    ),
}


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which no master has ever run."""
    return tmp_path_factory.mktemp("empty-home")


@pytest.fixture(scope="module")
def typed(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str], empty_home: Path
) -> Iterator[Notebook]:
    """A notebook of a user who has not submitted anything yet."""
    notebook = Notebook(tmp_path_factory.mktemp("typed"), {**environment, "DET_HOME": str(empty_home)})
    notebook.run(PREPARED)
    yield notebook
    notebook.close()


@pytest.mark.parametrize("name", WRONG)
def test_one_clear_error_at_once(typed: Notebook, empty_home: Path, name: str) -> None:
    source, kind, parts = WRONG[name]
    ran = typed.run(source, fails=True)
    assert ran.error.startswith(f"{kind}: ")
    for part in parts:
        assert part in ran.error
    assert not ran.stdout, "the error is all there is to read"
    assert not ran.stderr
    message = ran.error.count("\n") + 1
    assert len(ran.traceback.splitlines()) <= message + (12 if kind == "TypeError" else 16)
    if kind != "TypeError":
        assert "/det_native/" not in ran.traceback
        assert "/det_harness/" not in ran.traceback
    assert ran.seconds < 60, "it waits for nothing"
    assert not (empty_home / "runtime.json").exists(), "no master was started for this"


@pytest.mark.parametrize(
    ("framework", "use", "extra"),
    [
        ("tensorflow", "det.experimental.keras.init()", "keras"),
        pytest.param("tensorflow", "det.keras.TFKerasNativeContext", "keras", marks=pytest.mark.long),
        ("torch", "det.pytorch.PyTorchTrial", "torch"),
    ],
)
def test_a_framework_that_is_not_installed(
    script: Script, tmp_path: Path, framework: str, use: str, extra: str
) -> None:
    # What Python does for an entry of None is what it does for a module that is not there.
    (tmp_path / "use.py").write_text(
        f"import sys\nsys.modules[{framework!r}] = None\nimport det_native as det\n{use}\n"
    )
    done = script("use.py", folder=tmp_path, fails=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("det_native.errors.MissingDependencyError: ")
    assert f'run  pip install "det-native[{extra}]"' in last
