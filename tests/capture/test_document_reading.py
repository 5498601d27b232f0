"""What the text of a document tells about its training calls, without running any of it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.capture.document_calls import FoundCall
from det_native.capture.document_reading import read_calls
from det_native.capture.document_sites import instruction_position
from det_native.capture.document_values import Unknown, parts

IMPORT = "import det_native as det"
INIT = "context = det.experimental.keras.init(config)"
WRAP = "model = context.wrap_model(build())"


def calls(*cells: str, folder: Path = Path("/nowhere")) -> list[FoundCall]:
    return read_calls([IMPORT, *cells], folder)


def config_of(*cells: str, folder: Path = Path("/nowhere")) -> Any:
    """Return the configuration that init() gets, unknown parts as ``<expression>``."""
    [call] = calls(*cells, INIT, folder=folder)
    return _shown(call.positional[0])


def _shown(value: Any) -> Any:
    if isinstance(value, Unknown):
        return f"<{value.why}>"
    if isinstance(value, dict):
        return {key: _shown(entry) for key, entry in value.items()}
    return [_shown(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("config = {'a': 1, 'b': [1, 2.5, 'x', None, True]}", {"a": 1, "b": [1, 2.5, "x", None, True]}),
        ("n = 3\nconfig = {'a': n * 2 + 1, 'b': -n, 'c': 2**n, 'd': n / 2}", {"a": 7, "b": -3, "c": 8, "d": 1.5}),
        ("base = {'a': 1, 'b': 2}\nconfig = {**base, 'b': 3}", {"a": 1, "b": 3}),
        ("base = {'a': 1}\nconfig = base | {'b': 2}", {"a": 1, "b": 2}),
        ("config = dict(a=1, **{'b': 2})", {"a": 1, "b": 2}),
        ("config = {}\nconfig['a'] = {}\nconfig['a']['b'] = 1\nconfig.update(c=2)", {"a": {"b": 1}, "c": 2}),
        ("config = {'a': [1]}\nlist_ = config['a']\nlist_.append(2)\nlist_ += [3]", {"a": [1, 2, 3]}),
        ("a, (b, c) = 1, (2, 3)\nconfig = {'x': [a, b, c]}", {"x": [1, 2, 3]}),
        ("config = {f'k{i}': i * 10 for i in range(3) if i != 1}", {"k0": 0, "k2": 20}),
        ("config = {'a': 1 if 2 > 1 else 2, 'b': 0 or 5}", {"a": 1, "b": 5}),
        ("config = {'n': len([1, 2, 3]), 'm': max(1, 4), 's': 'a-b'.replace('-', '_')}", {"n": 3, "m": 4, "s": "a_b"}),
        ("import copy\nbase = {'a': {'b': 1}}\nconfig = copy.deepcopy(base)\nbase['a']['b'] = 2", {"a": {"b": 1}}),
        ("config = {'u': det.Integer(1, 8), 'c': det.Categorical([1, 2])}", None),
        ("def make(lr, n=2):\n    return {'lr': lr, 'n': n}\nconfig = make(0.1)", {"lr": 0.1, "n": 2}),
        ("if True:\n    config = {'a': 1}\nelse:\n    config = {'a': 2}", {"a": 1}),
        ("config = {'a': 1, 'b': 2}\ndel config['b']", {"a": 1}),
        ("config = {'n': len(x_train)}", {"n": "<len(x_train)>"}),
        ("config = {'a': 1}\nprint(config); x = len(config)", {"a": 1}),
        ("config = {'big': 10 ** 10 ** 10}", {"big": "<10 ** 10 ** 10>"}),
        ("config = {'big': [0] * 10 ** 9}", {"big": "<[0] * 10 ** 9>"}),
        ("config = {'t': f'{name}'}", {"t": "<f'{name}'>"}),
    ],
)
def test_what_literals_make_is_known(source: str, expected: Any) -> None:
    found = config_of(source)
    if expected is None:
        expected = {
            "u": {"type": "int", "minval": 1, "maxval": 8},
            "c": {"type": "categorical", "vals": [1, 2]},
        }
    assert found == expected


@pytest.mark.parametrize(
    "source",
    [
        "config = {'a': 1}\nmystery(config)",
        "config = {'a': 1}\nif mystery:\n    config['a'] = 2",
        "config = {'a': 1}\nfor k in mystery:\n    config[k] = 2",
        "config = {'a': 1}\ndef later():\n    config['a'] = 2\nmystery(later)",
        "config = {'a': 1}\nclass Later:\n    def __init__(self):\n        config['a'] = 2\nLater()",
        "config = {'a': 1}\nconfig.update(mystery)",
        "if mystery:\n    config = {'a': 1}\nelse:\n    config = {'a': 2}",
        "config = {'a': 1}\nwhile mystery():\n    config = {'a': 2}",
        "try:\n    config = {'a': 1}\nexcept OSError:\n    config = {'a': 2}",
        "def make():\n    if mystery:\n        return {'a': 1}\n    return {'a': 2}\nconfig = make()",
        "from settings import config",
        "config = yield_it()",
    ],
)
def test_what_only_running_tells_is_unknown(source: str) -> None:
    [call] = calls(source, INIT)
    assert any(isinstance(value, Unknown) for _, value in parts(call.positional[0]))


def test_a_function_that_is_followed_changes_what_it_changes() -> None:
    assert config_of("config = {'a': 1}\ndef set_(k, v):\n    config[k] = v\nset_('b', 2)") == {"a": 1, "b": 2}


def test_a_configuration_is_the_one_at_the_call() -> None:
    [call] = calls("config = {'a': 1}", INIT, "config['a'] = 2")
    assert call.positional[0] == {"a": 1}


def test_files_are_read_as_the_code_reads_them(tmp_path: Path) -> None:
    (tmp_path / "const.yaml").write_text("a: 1\nb: [2, x]\n")
    expected = {"a": 1, "b": [2, "x"]}
    assert config_of("import yaml\nconfig = yaml.safe_load(open('const.yaml'))", folder=tmp_path) == expected
    with_block = "import yaml\nwith open('const.yaml') as f:\n    config = yaml.safe_load(f.read())"
    assert config_of(with_block, folder=tmp_path) == expected
    assert config_of("from pathlib import Path\nconfig = Path('a') / 'b.yaml'") == Path("a/b.yaml")


def test_the_older_name_is_ours() -> None:
    source = "from determined.experimental import keras\nc = keras.init({})\nm = c.wrap_model(b())\nm.fit(x)"
    [init, fit] = read_calls([source], Path("/nowhere"))
    assert (init.kind, fit.kind, fit.init) == ("init", "fit", init)


def test_fits_of_others_are_not_sure() -> None:
    found = calls("config = {}", INIT, WRAP, "scaler.fit(x)\nmodel.fit(x, epochs=3)\nclf.fit(x)")
    fits = [call for call in found if call.kind == "fit"]
    assert [call.sure for call in fits] == [False, True, False]
    assert fits[1].keywords == {"epochs": 3}


def test_wrapping_in_place_is_seen() -> None:
    found = calls("config = {}", INIT, "model = build()\ncontext.wrap_model(model)\nmodel.fit(x)")
    assert found[-1].sure


def test_a_call_inside_a_function_knows_where_it_runs() -> None:
    function = "def train(units, config):\n    context = det.experimental.keras.init(config)\n"
    function += "    model = context.wrap_model(build(units))\n    return model.fit(x, epochs=2)"
    [init, fit] = calls(function, "y = 1\ntrain(3, {'a': 1})")
    assert (fit.owner, fit.running, fit.running_line, fit.sure, fit.occurrence) == (1, 2, 2, True, 1)
    assert init.positional == ({"a": 1},)
    assert fit.init is init


def test_the_same_place_reached_twice_is_counted() -> None:
    found = calls("config = {}", INIT, WRAP, "def train():\n    model.fit(x)", "train()\ntrain()")
    assert [call.occurrence for call in found if call.kind == "fit"] == [1, 2]


@pytest.mark.parametrize(
    ("source", "loop", "doubt"),
    [
        ("model.fit(x)", None, False),
        ("for u in units:\n    model.fit(x)", 1, True),
        ("results = [model.fit(x) for u in units]", 1, False),
        ("if mystery:\n    model.fit(x)", None, True),
        ("try:\n    model.fit(x)\nfinally:\n    done()", None, False),
        ("with scope():\n    model.fit(x)", None, False),
    ],
)
def test_loops_and_conditions_around_the_call_are_told(source: str, loop: int | None, doubt: bool) -> None:
    fit = calls("config = {}", INIT, WRAP, source)[-1]
    assert (fit.kind, fit.loop, bool(fit.doubt)) == ("fit", loop, doubt)


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
    assert instruction_position(source, node) == _reported(source)


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


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), PLAIN, max_size=4), PLAIN)
def test_any_literal_is_read_as_python_reads_it(config: dict[str, Any], other: Any) -> None:
    source = f"base = {config!r}\nconfig = {{**base, 'x': [{other!r}, len(base)]}}"
    assert config_of(source) == {**config, "x": [other, len(config)]}


PYTORCH = "context = det.experimental.pytorch.init(config)"
WRAPPED = "model = context.wrap_model(build())\noptimizer = context.wrap_optimizer(make(model))"


def test_calls_of_a_pytorch_context_are_found() -> None:
    loop = "model.train()\nfor batch in context.train(loader, epochs=2):\n    loss = model(batch)\n    loss.backward()"
    init, fit, train = calls(PYTORCH, WRAPPED, "context.fit(loader, train_batch=step, epochs=3)", loop)
    assert (init.kind, init.framework) == ("init", "torch")
    assert [(one.kind, one.framework, one.sure, one.init, one.loop) for one in (fit, train)] == [
        ("fit", "torch", True, init, None),
        ("train", "torch", True, init, None),
    ]
    assert fit.keywords["epochs"] == 3
    assert (train.running, train.running_line) == (4, 2)


def test_a_training_loop_in_another_loop_is_told() -> None:
    found = calls(PYTORCH, WRAPPED, "for lr in rates:\n    for batch in context.train(loader):\n        step(batch)")
    assert found[-1].loop == 1


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
    assert places == [instruction_position(source, found.node)]
