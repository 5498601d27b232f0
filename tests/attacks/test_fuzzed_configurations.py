"""Configurations that nobody writes by hand: read, or refused in our own words, in little time and memory."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from attack_parts import ANYTHING, NUMBERS, TEXTS, cheaply, deep
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import ConfigurationError, DetError
from det_native.schema.config import ExperimentConfig
from det_native.schema.loading import load_config


def loaded(config: Any) -> ExperimentConfig | None:
    """Load a configuration; None if it is refused in our words. What is taken can be sent and read back."""
    with cheaply():
        try:
            found = load_config(config, warn=False)
        except DetError:
            return None
    sent = found.model_dump_json()
    assert load_config(json.loads(sent), warn=False) == found
    return found


YAML = {
    "an object of Python": "a: !!python/object/apply:os.system ['touch {trace}']",
    "a module of Python": "a: !!python/module:os",
    "a name of Python": "a: !!python/name:os.system",
    "a tuple of Python": "a: !!python/tuple [1, 2]",
    "a tag of its own": "a: !x {{}}",
    "bytes": "a: !!binary aGVsbG8=",
    "bytes that are none": "a: !!binary '%%%'",
    "a set": "a: !!set {{x, y}}",
    "pairs": "a: !!pairs [[a, 1], [a, 2]]",
    "an alias of nothing": "a: *b",
    "a list that holds itself": "a: &a [*a]",
    "a mapping that merges itself": "a: &a\n  <<: *a",
    "aliases of aliases": "\n".join(
        ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))]
    ),
    "merges of merges": "\n".join(
        ["a0: &a0 {{x: 1}}", *(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))]
    ),
    "lists within lists": "a: " + "[" * 3000 + "]" * 3000,
    "blocks within blocks": "\n".join(" " * level + "a:" for level in range(1500)),
    "mappings as names": "? {{a: 1}}\n: 2",
    "lists as names": "? [1, 2]\n: 3",
    "numbers as names": "1: 2\ntrue: 3\n2020-01-01: 4\nnull: 5",
    "a name twice": "name: x\nname: y",
    "a name twice, in other words": "'name': x\n\"n\\x61me\": y",
    "a number of a million digits": "a: " + "9" * 1_000_000,
    "a number in base sixty": "a: " + "1" + ":59" * 20_000,
    "a huge exponent": "a: 1e999999999",
    "no number": "max_restarts: .nan",
    "an infinity": "searcher: {{name: single, max_length: {{batches: .inf}}}}",
    "a date that is none": "a: 2020-99-99",
    "a NUL": "a: \0",
    "half a pair": 'name: "\\ud800"',
    "a control character": "name: \x07",
    "two documents": "a: 1\n---\nb: 2",
    "a directive": "%YAML 9.9\n---\na: 1",
    "tabs": "a:\n\t- b",
    "an anchor without an end": "&" + "a" * 100_000,
    "a line of a megabyte": "name: " + "x" * 1_000_000,
    "many fields": "\n".join(f"f{n}: 1" for n in range(5_000)),
    "more fields than anybody writes": "\n".join(f"f{n}: 1" for n in range(20_000)),
    "an include": "a: !include /etc/passwd",
}


# Seconds of a parser that is written in Python; "many fields" is the same with a quarter of them.
LONG = {"more fields than anybody writes"}
LONGEST_GIVEN_TWICE = 10_000


@pytest.mark.parametrize(
    "what", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in YAML]
)
def test_yaml_with_tricks_is_refused_in_our_words(what: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    text = YAML[what].replace("{trace}", str(trace)).replace("{{", "{").replace("}}", "}")
    if len(text) < LONGEST_GIVEN_TWICE:
        assert loaded(text + "\n") is None
    file = tmp_path / "config.yaml"
    file.write_text(text, errors="surrogatepass")
    assert loaded(file) is None
    assert not trace.exists()


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "1", '"x"', '{"a": NaN}', deep(100_000), deep(3000, "{"), '{"a": 1e999}', '{"name": "\\ud800"}'),
        *('{"a": 1, "a": 2}', '{"a": ' + "9" * 1_000_000 + "}", "{" + '"a": 1, ' * 50_000 + '"b": 1}'),
        *("\ufeff\ufeff{}", "\0"),
    ],
)
def test_json_with_tricks_is_refused_in_our_words(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    assert loaded(file) is None


@pytest.mark.parametrize(
    "name", ["a\0b.yaml", "x" * 5000 + ".yaml", "/dev/null.yaml", "/proc/self/mem.yaml", "\ud800.yaml"]
)
def test_a_name_that_no_file_has_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        load_config(name)
    with pytest.raises(ConfigurationError):
        load_config(Path(name))


FIELDS = sorted(ExperimentConfig.model_fields)
SECTIONS = st.dictionaries(st.sampled_from(FIELDS) | TEXTS, ANYTHING, max_size=4)
HYPERPARAMETER = st.fixed_dictionaries(
    {"type": st.sampled_from(["double", "int", "log", "categorical", "const", "x"])},
    optional=dict.fromkeys(("minval", "maxval", "base", "count", "vals", "val"), NUMBERS | ANYTHING),
)


@given(SECTIONS)
def test_any_fields_are_read_or_refused(config: dict[str, Any]) -> None:
    loaded(config)


@given(
    searcher=st.fixed_dictionaries(
        {"name": st.sampled_from(["single", "random", "grid", "asha", "adaptive_asha", "pbt", "optuna"]) | TEXTS},
        optional=dict.fromkeys(("max_trials", "max_length", "metric", "divisor", "num_rungs"), NUMBERS | ANYTHING),
    ),
    hyperparameters=st.dictionaries(TEXTS | st.just("global_batch_size"), HYPERPARAMETER | ANYTHING, max_size=3),
    resources=st.dictionaries(
        st.sampled_from(["slots_per_trial", "priority", "weight", "max_slots"]), NUMBERS | ANYTHING, max_size=3
    ),
)
def test_any_search_is_read_or_refused(searcher: Any, hyperparameters: Any, resources: Any) -> None:
    loaded({"searcher": searcher, "hyperparameters": hyperparameters, "resources": resources})


LINES = st.lists(
    st.sampled_from(["a", "- ", ": ", "\n", "  ", "&x ", "*x", "!!python/name:os ", "!!str ", "<<: ", "? ", "| ", "> "])
    | st.sampled_from(
        ["{", "}", "[", "]", ",", "'", '"', "#", "%", "---\n", "...\n", "1e9", "0x", "0o9", "1_0", ".inf", "~"]
    )
    | st.text(alphabet=string.printable, max_size=4),
    max_size=20,
).map("".join)


@given(LINES)
def test_any_text_is_read_or_refused(text: str) -> None:
    loaded(text)
