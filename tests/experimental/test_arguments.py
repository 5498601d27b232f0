"""What ``mode``, ``local`` and ``test`` mean together, in every documented order."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import det_native as det
from det_native.errors import ArgumentError, SignatureError
from det_native.experimental.arguments import (
    NAMES_OF_CREATE,
    NAMES_OF_INIT,
    Mode,
    Place,
    any_documented_order,
    arrange,
    resolve,
)

CLUSTER = (False, False)
CLUSTER_TEST = (False, True)
LOCAL = (True, False)
MINIMAL = (True, True)


@pytest.mark.parametrize(
    ("mode", "local", "test", "expected"),
    [
        (None, None, None, CLUSTER),
        (None, False, False, CLUSTER),
        (None, None, True, CLUSTER_TEST),
        (None, False, True, CLUSTER_TEST),
        (None, True, None, LOCAL),
        (None, True, False, LOCAL),
        (None, True, True, MINIMAL),
        ("cluster", None, None, CLUSTER),
        (Mode.CLUSTER, False, None, CLUSTER),
        (Mode.CLUSTER, None, True, CLUSTER_TEST),
        ("Cluster", None, False, CLUSTER),
        ("local", None, None, MINIMAL),
        (Mode.LOCAL, None, None, MINIMAL),
        (Mode.LOCAL, True, None, MINIMAL),
        ("LOCAL", True, True, MINIMAL),
        ("local", None, True, MINIMAL),
    ],
)
def test_table(mode: Any, local: bool | None, test: bool | None, expected: tuple[bool, bool]) -> None:
    place = resolve(mode, local, test)
    assert (place.local, place.test) == expected


@pytest.mark.parametrize(
    ("mode", "local", "test", "named"),
    [
        ("cluster", True, None, ("mode='cluster'", "local=True")),
        ("local", False, None, ("mode='local'", "local=False")),
        ("local", True, False, ("mode='local'", "test=False")),
        ("remote", None, None, ("mode", "'remote'")),
        (3, None, None, ("mode", "3")),
        (None, "yes", None, ("local", "'yes'")),
        (None, None, 1, ("test", "1")),
    ],
)
def test_contradictions_name_both_arguments(mode: Any, local: Any, test: Any, named: tuple[str, str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        resolve(mode, local, test)
    assert all(part in str(caught.value) for part in named)


def test_mode_local_says_what_it_means_and_local_true_says_nothing() -> None:
    assert "local=True, test=True" in resolve("local").notice
    assert resolve(local=True) == Place(local=True, test=False, notice="")


@pytest.mark.parametrize(
    ("positional", "expected"),
    [
        ((), {}),
        ((True,), {"local": True}),
        ((False,), {"local": False}),
        ((True, True), {"local": True, "test": True}),
        ((False, True, "code"), {"local": False, "test": True, "context_dir": "code"}),
        (("local",), {"mode": "local"}),
        ((Mode.CLUSTER, "code"), {"mode": Mode.CLUSTER, "context_dir": "code"}),
        (
            (Mode.CLUSTER, Path("code"), ["train.py"], "http://m"),
            {"mode": Mode.CLUSTER, "context_dir": Path("code"), "command": ["train.py"], "master_url": "http://m"},
        ),
        ((None, True), {"mode": None, "local": True}),
        ((None, None, True, "code"), {"mode": None, "local": None, "test": True, "context_dir": "code"}),
    ],
)
def test_positional_orders_of_the_documents(positional: tuple[Any, ...], expected: dict[str, Any]) -> None:
    assert arrange("init", positional, {}) == expected


def test_an_argument_given_twice_is_an_error_that_names_it() -> None:
    with pytest.raises(ArgumentError, match="local twice"):
        arrange("init", (True,), {"local": True})
    with pytest.raises(ArgumentError, match="at most"):
        arrange("init", (None,) * 9, {})


@pytest.mark.parametrize("positional", [(True, {"a": 1}), ("local", {"a": 1}), (True, True, {"a": 1})])
def test_a_configuration_in_the_wrong_place_is_told_its_place(positional: tuple[Any, ...]) -> None:
    @any_documented_order(leading=1)
    def init(config: object = None, mode: object = None, local: object = None, test: object = None) -> None:
        pass

    @any_documented_order(leading=2)
    def create(trial_def: object, config: object = None, mode: object = None, local: object = None) -> None:
        pass

    with pytest.raises(ArgumentError, match=r"the configuration and comes first: init\(\{...\}, local=True\)"):
        init(*positional)
    with pytest.raises(ArgumentError, match=r"comes right after the trial class: create\(trial_def, \{...\}, "):
        create("a:B", *positional)


def test_an_unknown_name_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(SignatureError, match=r"create\(\) takes no argument 'loca'. Did you mean local\?"):
        det.experimental.create("a:B", loca=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"init\(\) takes no argument 'gpus'. It takes: config, mode, local"):
        det.experimental.keras.init({}, gpus=2)


def test_decorated_function_keeps_its_signature_and_leading_arguments() -> None:
    @any_documented_order(leading=1)
    def init(config: object = None, mode: object = None, local: object = None, context_dir: str = "") -> object:
        return config, mode, local, context_dir

    assert init({"a": 1}, True) == ({"a": 1}, None, True, "")
    assert init(None, "cluster", "code") == (None, "cluster", None, "code")
    assert init(config=3, context_dir="x") == (3, None, None, "x")


@pytest.mark.parametrize(
    ("path", "leading"), [("pytorch.init", 1), ("keras.init", 1), ("estimator.init", 1), ("create", 2)]
)
def test_what_a_document_is_checked_for_is_the_signature(path: str, leading: int) -> None:
    function: Any = det.experimental
    for part in path.split("."):
        function = getattr(function, part)
    assert tuple(inspect.signature(function).parameters)[leading:] == (
        NAMES_OF_CREATE if path == "create" else NAMES_OF_INIT
    )
