"""The language by which experiments are found: what parses, what it means, and how a mistake is told."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import ArgumentError
from det_native.schema import rest
from det_native.schema.query import And, Comparison, Facts, Name, Node, Not, Or, matches, parse, parse_order, text_of
from det_native.schema.query.fields import FIELDS
from det_native.schema.query.moments import seconds_of, span_of
from det_native.schema.query.ordering import Order, sorted_by_key
from det_native.schema.states import ExperimentState, MetricKind
from det_native.schema.summaries import MetricSummary

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NUMBERS = st.floats(allow_nan=False).map(repr)
VALUES = {
    "number": NUMBERS,
    "id": st.integers(1, 10**6).map(str),
    "state": st.sampled_from([state.value for state in ExperimentState]),
    "yes or no": st.sampled_from(["yes", "no", "true", "FALSE"]),
    "time": st.dates().map(str) | st.datetimes().map(lambda time: time.isoformat()) | st.sampled_from(["7d", "1h30m"]),
    "duration": st.sampled_from(["90", "10m", "1.5h", "2w3d"]),
    "text": TEXTS,
}


@st.composite
def comparisons(draw: st.DrawFn) -> Node:
    kind = draw(st.sampled_from(["field", "bare", "hp", "metric", "config"]))
    parts = (draw(TEXTS),) if kind != "field" else (draw(st.sampled_from(sorted(FIELDS))),)
    if kind in ("hp", "config"):
        parts += tuple(draw(st.lists(TEXTS, max_size=2)))
    if kind == "field":
        operators: tuple[str, ...] = FIELDS[parts[0]].operators
    else:
        operators = (
            ("=", "!=", "<", "<=", ">", ">=", "in", ":") if kind == "metric" else ("=", "!=", "<", ">=", "~", "in")
        )
    operator = draw(st.sampled_from(operators))
    numeric = kind == "metric" or operator in ("<", ">=")
    values = VALUES[FIELDS[parts[0]].type] if kind == "field" else NUMBERS if numeric else TEXTS
    chosen = draw(st.lists(values, min_size=1, max_size=3 if operator == "in" else 1))
    return Comparison(Name(kind, parts), operator, tuple(chosen))


def several(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    many = st.lists(parts, min_size=2, max_size=4).map(tuple)
    return many.map(And) | many.map(Or) | parts.map(Not)


TREES = st.recursive(comparisons(), several, max_leaves=8)


@given(TREES)
def test_the_text_of_a_tree_parses_to_the_same_tree(tree: Node) -> None:
    assert parse(text_of(tree)) == tree


WORDS = ["lr", ">", "0.3", "and", "or", "not", "(", ")", "label:x", "'a", "in", ",", "<", '"', "."]


@given(st.text(max_size=40) | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_what_does_not_parse_is_told_with_its_place(text: str) -> None:
    try:
        tree = parse(text)
    except ArgumentError as error:
        head, line, caret = str(error).split("\n")
        assert head.startswith("The query does not parse at character ")
        assert ": expected " in head
        place = int(head.split("character ")[1].split(":")[0].split(",")[0]) - 1
        assert 0 <= place <= len(text)
        assert len(caret) <= len(line) + 1
    else:
        assert parse(text_of(tree)) == tree


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("lr>1e-3", Comparison(Name("bare", ("lr",)), ">", ("1e-3",))),
        ('"val loss" == .5', Comparison(Name("bare", ("val loss",)), "=", (".5",))),
        ('hp."learning rate" in (a, "b c")', Comparison(Name("hp", ("learning rate",)), "in", ("a", "b c"))),
        ("hp.adam.lr != 1", Comparison(Name("hp", ("adam", "lr")), "!=", ("1",))),
        ("metric.val.acc > -1", Comparison(Name("metric", ("val.acc",)), ">", ("-1",))),
        ("label:2026:x", Comparison(Name("field", ("label",)), ":", ("2026:x",))),
        ("tag : a", Comparison(Name("field", ("label",)), ":", ("a",))),
        ("name contains 'it''s'", None),
        (r"name ~ 'it\'s'", Comparison(Name("field", ("name",)), "~", ("it's",))),
        ("LABEL:x AND NOT id IN (1)", And((parse("label:x"), Not(parse("id in (1)"))))),
        ("a=1 or b=2 and not c=3", Or((parse("a=1"), And((parse("b=2"), Not(parse("c=3"))))))),
        ("lr not in (1, 2)", Not(parse("lr in (1, 2)"))),
        ("created > 2026-11-01T10:30", Comparison(Name("field", ("created",)), ">", ("2026-11-01T10:30",))),
    ],
)
def test_what_a_query_means(query: str, tree: Node | None) -> None:
    if tree is None:
        with pytest.raises(ArgumentError):
            parse(query)
    else:
        assert parse(query) == tree


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "at character 1, where it ends: expected a comparison, such as val_loss < 0.3.\n  \n  ^"),
        (
            "val_loss <",
            "at character 11, where it ends: expected a value, such as 0.3 or a text in quotes.\n  val_loss <\n",
        ),
        ("lr > 0.1 label:x", "at character 10: expected 'and', 'or' or the end.\n  lr > 0.1 label:x\n           ^"),
        ("(lr > 0.1", "expected 'and', 'or' or ')'"),
        ("lr ! 3", "at character 4: expected =, !=, <, <=, >, >=, ~, : or in."),
        ("0.3 < lr", "at character 1: expected a name, such as val_loss, hp.lr or label."),
        ("name < 3", "expected one of =, !=, contains (~), in, : after name."),
        ("metric.loss ~ 3", "after metric.loss."),
        ("val_loss < small", "expected a number, not 'small'."),
        ("state:Gone", "expected a state: Queued, Running, Paused, Stopping, Finishing, Failing, Stopped, Completed"),
        ("created > soon", "expected a date (2026-11-01), a time (2026-11-01T10:30) or an age (7d), not 'soon'."),
        ("duration > 10x", "expected a duration, such as 90s, 10m or 2h"),
        ("archived:maybe", "expected yes or no"),
        ("lr in 3", "expected '(' and values after 'in'"),
        ("lr in (3", "expected ',' or ')'"),
        ('name = "a', 'at character 8: expected a second ", which ends the text'),
        ("hp. = 3", "expected a name after '.'"),
        ("(" * 60 + "a=1", "expected at most 50 brackets within each other"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_place(query: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse(query)
    assert f"The query does not parse {message}" in str(caught.value) or message in str(caught.value)


def test_a_very_long_query_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"10,001 characters; at most 10,000"):
        parse("a" * 10_001)


def facts(hyperparameters: dict[str, Any] | None = None, **changes: Any) -> Facts:
    known: dict[str, Any] = {
        "id": 7,
        "name": "Digits",
        "state": "ACTIVE",
        "config": {"searcher": {"name": "single"}, "resources": {"slots_per_trial": 2}},
        "bundle_id": None,
        "framework": "keras",
        "metric": "val_loss",
        "smaller_is_better": True,
        "progress": 0.5,
        "trials": 3,
        "best_validation": None,
        "error": None,
        "created": "2026-11-20T10:00:00.000Z",
        "started": "2026-11-20T10:30:00.000Z",
        "ended": None,
        "labels": ["Baseline"],
        "project": "vision/digits",
    }
    values = ((MetricKind.VALIDATION, "val_loss"), (MetricKind.VALIDATION, "acc"), (MetricKind.TRAINING, "loss"))
    metrics = [
        MetricSummary(kind=kind, name=name, last_batch=9, last=0.5, minimum=0.25, maximum=0.75) for kind, name in values
    ]
    return Facts(rest.Experiment.model_validate(known | changes), "user", hyperparameters or {}, metrics)


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("val_loss < 0.3", True),  # the metric of the search: its best value
        ("val_loss > 0.3", False),
        ("acc < 0.3 and acc > 0.7 and acc = 0.5", True),  # of another one the least, the greatest, the last
        ("val_acc > 0.7", True),
        ("loss < 0.3", True),
        ("other < 1", False),
        ("not other < 1 and other != 1", True),
        ("duration > 1h and duration < 2h", True),
        ("created > 3h and not created > 1h and created = 2026-11-20", True),
        ("created > 2026-11-20 or created < 2026-11-20", False),
        ("created >= 2026-11-20 and created <= 2026-11-20", True),
        ("ended > 2020-01-01 or ended < 2030-01-01", False),
        ("label:baseline and label ~ base and label != other", True),
        ("project:vision and not project = vision and not project:vis", True),
        ("name:digi and name = digits and not name = digi", True),
        ("state:Running and state = ACTIVE and not state:Queued", True),
        ("id = 7 and trials in (1, 3) and slots = 2 and searcher:single", True),
        ("config.resources.slots_per_trial >= 2 and not config.nothing = 1", True),
    ],
)
def test_what_holds_of_an_experiment(query: str, holds: bool) -> None:
    assert matches(parse(query), facts(), NOW) is holds


def test_a_name_alone_is_a_hyperparameter_where_there_is_one() -> None:
    found = facts({"acc": 3, "adam": {"lr": 0.1}, "a.b": True, "kind": "Adam"})
    for query in ("acc = 3", "metric.acc = 0.5", "adam.lr < 1", "hp.a.b = true", "kind = adam", "kind contains DA"):
        assert matches(parse(query), found, NOW)
    for query in ("acc = 0.5", "kind < 3", "adam = 1", "hp.val_loss < 1"):
        assert not matches(parse(query), found, NOW)


@given(TREES)
def test_a_query_holds_or_its_opposite(tree: Node) -> None:
    found = facts({"lr": 1})
    assert matches(tree, found, NOW) is not matches(Not(tree), found, NOW)


@given(st.integers(0, 10**4), st.sampled_from("smhdw"))
def test_durations_and_ages(number: int, unit: str) -> None:
    seconds = seconds_of(f"{number}{unit}")
    assert seconds is not None
    assert math.isclose(seconds, number * {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[unit])
    assert span_of(f"{number}{unit}", NOW) is not None
    assert seconds_of("soon") is None


def test_orders() -> None:
    assert parse_order("created") == Order("created", descending=True)
    assert parse_order("name") == Order("name", descending=False)
    assert parse_order("metric:val_accuracy") == Order("metric", "val_accuracy", descending=True)
    assert parse_order("metric:val loss DESC") == Order("metric", "val loss", descending=True)
    assert parse_order("hp:lr desc").written == "hp:lr desc"
    assert sorted_by_key([("a", 1), ("b", None), ("c", 2), ("d", 1)], Order("hp", "x", descending=True)) == [
        ("c", 2),
        ("a", 1),
        ("d", 1),
        ("b", None),
    ]
    for wrong in ("", "lr", "metric:", "hp", "slots"):
        with pytest.raises(ArgumentError, match=r"is not known: there are id, name, created, duration, best, "):
            parse_order(wrong)
