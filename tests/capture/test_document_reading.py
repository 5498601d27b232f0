"""What the text of a document tells about its training calls, without running any of it."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from det_native.capture.document_calls import FoundCall, find_calls, instruction_position

IMPORT = "import det_native as det"
INIT = "context = det.experimental.keras.init(config)"
WRAP = "model = context.wrap_model(build())"


def calls(*cells: str) -> list[FoundCall]:
    return find_calls([ast.parse(cell) for cell in (IMPORT, *cells)])


def test_the_older_name_is_ours() -> None:
    source = "from determined.experimental import keras\nc = keras.init({})\nm = c.wrap_model(b())\nm.fit(x)"
    [init, fit] = find_calls([ast.parse(source)])
    assert (init.kind, fit.kind, fit.sure) == ("init", "fit", True)


def test_fits_of_others_are_not_sure() -> None:
    found = calls("config = {}", INIT, "model.fit(x)", WRAP, "scaler.fit(x)\nmodel.fit(x, epochs=3)\nclf.fit(x)")
    assert [call.sure for call in found if call.kind == "fit"] == [False, False, True, False]


def test_wrapping_in_place_and_in_a_chain_is_seen() -> None:
    assert calls(INIT, "model = build()\ncontext.wrap_model(model)\nmodel.fit(x)")[-1].sure
    chain = "det.experimental.keras.init({}).wrap_model(build()).fit(x)"
    assert [(one.kind, one.sure) for one in calls(chain)] == [("init", True), ("fit", True)]


def test_a_call_inside_a_function_knows_where_it_runs() -> None:
    function = "def train(units, config):\n    context = det.experimental.keras.init(config)\n"
    function += "    model = context.wrap_model(build(units))\n    return model.fit(x, epochs=2)"
    [init, fit] = calls(function, "y = 1\ntrain(3, {'a': 1})")
    assert [(one.kind, one.owner, one.running, one.route.line) for one in (init, fit)] == [
        ("init", 1, 2, 2),
        ("fit", 1, 2, 2),
    ]


def test_a_call_is_followed_through_functions_and_methods() -> None:
    method = "class Runs:\n    def go(self):\n        inner()"
    [fit] = [
        one for one in calls(INIT, WRAP, "def inner():\n    model.fit(x)", method, "Runs().go()") if one.kind == "fit"
    ]
    assert (fit.owner, fit.running) == (3, 5)
    assert [one.kind for one in calls(INIT, WRAP, "def never():\n    model.fit(x)\n    never()")] == ["init"]


def test_the_same_place_reached_twice_is_counted() -> None:
    found = calls("config = {}", INIT, WRAP, "def train():\n    model.fit(x)", "train()\ntrain()", "train()")
    assert [(call.occurrence, call.running) for call in found if call.kind == "fit"] == [(1, 5), (2, 5), (1, 6)]


@pytest.mark.parametrize(
    ("source", "loop"),
    [
        ("model.fit(x)", None),
        ("for u in units:\n    model.fit(x)", 1),
        ("results = [model.fit(x) for u in units]", 1),
        ("if mystery:\n    model.fit(x)", None),
        ("with scope():\n    model.fit(x)", None),
        ("def go():\n    model.fit(x)\nfor u in units:\n    go()", 3),
    ],
)
def test_a_loop_around_the_call_is_told(source: str, loop: int | None) -> None:
    fit = calls("config = {}", INIT, WRAP, source)[-1]
    assert (fit.kind, fit.route.loop) == ("fit", loop)


@pytest.mark.parametrize(
    "source",
    [
        "here()",
        "x = [here()]",
        "a = (\n    one\n    .two()\n    .here()\n)",
        "a = one.two(\n    3,\n)(4).here(x,\n  y)",
        "def f():\n    with g():\n        return here(1, *a, **b)\nf()",
        "@decorator\ndef f(): pass\nfor x in y:\n    z = await here(x)",
        "é = 'é'; x = here(é)",
    ],
)
def test_the_place_of_a_call_is_what_its_frame_reports(source: str) -> None:
    """Checked against the positions of a real frame, by running the code."""
    tree = ast.parse(source)
    [node] = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("here")]
    assert instruction_position(node) == _reported(source)


def _reported(source: str) -> tuple[int, int]:
    import asyncio
    import inspect
    import sys

    seen: list[tuple[int, int]] = []

    class Anything:
        def __getattr__(self, name: str) -> Any:
            return self.here if name == "here" else self

        def __call__(self, *arguments: Any, **keywords: Any) -> Any:
            return arguments[0] if arguments and inspect.isfunction(arguments[0]) else self

        def __await__(self) -> Any:
            return iter(())

        def __iter__(self) -> Any:
            return iter([1])

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *details: Any) -> None:
            return None

        def here(self, *arguments: Any, **keywords: Any) -> Any:
            frame = sys._getframe(1)
            line, _, column, _ = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            seen.append((line or 0, column or 0))
            return self

    thing = Anything()
    names = dict.fromkeys(["one", "g", "a", "decorator", "y", "x"], thing) | {"here": thing.here, "b": {}}
    code = compile(source, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)  # noqa: S307 (the test's own code)
    if inspect.iscoroutine(result):
        asyncio.run(result)
    return seen[0]


PYTORCH = "context = det.experimental.pytorch.init(config)"
WRAPPED = "model = context.wrap_model(build())\noptimizer = context.wrap_optimizer(make(model))"


def test_calls_of_a_pytorch_context_are_found() -> None:
    loop = "model.train()\nfor batch in context.train(loader, epochs=2):\n    loss = model(batch)\n    loss.backward()"
    init, fit, train = calls(PYTORCH, WRAPPED, "context.fit(loader, train_batch=step, epochs=3)", loop)
    assert (init.kind, init.framework) == ("init", "torch")
    assert [(one.kind, one.framework, one.sure, one.route.loop) for one in (fit, train)] == [
        ("fit", "torch", True, None),
        ("train", "torch", True, None),
    ]
    assert (train.running, train.route.line) == (4, 2)


def test_a_training_loop_in_another_loop_is_told() -> None:
    found = calls(PYTORCH, WRAPPED, "for lr in rates:\n    for batch in context.train(loader):\n        step(batch)")
    assert found[-1].route.loop == 1


def test_train_of_a_module_is_no_training_call() -> None:
    assert [one.kind for one in calls(PYTORCH, WRAPPED, "model.train()\nother.train(True)")] == ["init"]


def test_the_place_of_a_loop_is_where_python_calls_train() -> None:
    source = "for batch in context.train(\n    loader, epochs=2\n):\n    pass"
    found = calls(PYTORCH, WRAPPED, source)[-1]
    places = []

    class Context:
        def train(self, *arguments: Any, **keywords: Any) -> list[Any]:
            import sys

            frame = sys._getframe(1)
            line, _, column, _ = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            places.append((line, column))
            return []

    exec(compile(source, "<cell>", "exec"), {"context": Context(), "loader": None})  # noqa: S102 (our own text)
    assert places == [instruction_position(found.node)]
