"""What completion shows, and what is said where people guess a name."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import det_native as det

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["", ".errors", ".experimental", ".pytorch", ".keras", ".estimator", ".tensorboard"]
INITS = [".experimental.core", ".experimental.pytorch", ".experimental.keras", ".experimental.estimator"]
CONTEXTS = {
    "torch": "pytorch.context:PyTorchTrialContext",
    "torch loop": "pytorch.native:PyTorchNativeContext",
    "keras": "keras.context:TFKerasNativeContext",
    "keras trial": "keras.trial_context:TFKerasTrialContext",
    "estimator": "estimator.native:EstimatorNativeContext",
    "core loop": "core.native:CoreNativeContext",
}


@pytest.fixture(scope="module", autouse=True)
def _frameworks() -> None:
    """What the names need, imported before a test does: TensorFlow sets variables of the environment for good."""
    import_module("tensorflow")


def context_class(name: str) -> Any:
    module, _, kind = CONTEXTS[name].partition(":")
    return getattr(import_module(f"det_native.{module}"), kind)


@pytest.mark.parametrize("name", [*PACKAGES, *INITS])
def test_completion_of_a_package_shows_its_public_names_only(name: str) -> None:
    package = import_module(f"det_native{name}")
    shown = dir(package)
    if hasattr(package, "__all__"):
        assert shown == sorted(package.__all__)
    # Imports of seconds; tests/core/trainers has these.
    assert [each for each in shown if each not in ("lightning", "transformers") and not hasattr(package, each)] == []
    assert not {"TYPE_CHECKING", "annotations", "Any", "sys", "load", "os", "frameworks"} & set(shown)


@pytest.mark.parametrize("name", CONTEXTS)
def test_completion_of_a_context_shows_names_that_are_there(name: str) -> None:
    context = context_class(name).from_config({"hyperparameters": {"global_batch_size": 4}})
    shown = dir(context)
    assert set(shown) - {*vars(context), *object.__dir__(context)} == set()
    assert {"get_hparam", "distributed", "log", "experimental"} <= set(shown)
    assert not {"use_environment", "role", "metric_said", "enter_batch", "_public"} & set(shown)
    assert not {"caches", "metrics", "_owner"} & set(dir(context.experimental))


def test_completion_of_a_context_shows_every_method_of_the_documents() -> None:
    texts = [*ROOT.glob("docs/*.md"), ROOT / "README.md", *ROOT.glob("notebooks/*.ipynb")]
    used = {name for text in texts for name in re.findall(r"\bcontext\.([a-z]\w*)\(", text.read_text())}
    shown = {name for kind in CONTEXTS for name in dir(context_class(kind).from_config({}))}
    assert {"train", "wrap_model"} <= used
    assert used - shown == set()


def test_completion_shows_what_a_users_own_context_adds() -> None:
    def shuffled(self: Any) -> None:
        """Shuffle."""

    own = type("Mine", (context_class("torch"),), {"shuffled": shuffled, "__module__": "__main__"})
    assert {"shuffled", "wrap_model"} <= set(dir(own.from_config({})))


@pytest.mark.parametrize("package", ["keras", "estimator"])
def test_init_of_a_package_of_classes_says_where_it_is(package: str) -> None:
    with pytest.raises(AttributeError, match=rf"det\.experimental\.{package}\.init\(\)"):
        getattr(det, package).init()


@pytest.mark.parametrize("place", [det, det.experimental])
def test_init_without_a_framework_names_them(place: Any) -> None:
    with pytest.raises(AttributeError) as raised:
        place.init()
    for framework in ("pytorch", "keras", "estimator", "core"):
        assert f"det.experimental.{framework}.init()" in str(raised.value)


def test_continue_is_a_word_of_pythons_own() -> None:
    experiment: Any = det.Experiment(None, 1)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match=r"experiment\.continue_\(epochs=10\)"):
        getattr(experiment, "continue")
    with pytest.raises(AttributeError, match=r"'Experiment' object has no attribute 'forked'"):
        experiment.forked  # noqa: B018 (the access is the test)
