"""The figure of the curves."""

import io
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_experiments import make_experiment, source_of
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from det_native.display.curves import Curve, Curves, curves_of, panel_of, thin
from det_native.display.figure import TRIAL_COLOURS, CurvesFigure, draw
from det_native.errors import ArgumentError
from det_native.schema import rest


def test_training_and_validation_share_a_panel() -> None:
    figure = make_experiment().plot()
    assert isinstance(figure, CurvesFigure)
    (axis,) = [axis for axis in figure.axes if axis.get_visible()]
    assert axis.get_title() == "loss"
    training, validation = sorted(axis.get_lines(), key=lambda line: -len(line.get_xdata()))
    assert list(training.get_xdata()) == [1, 2, 3, 4]
    assert list(validation.get_ydata()) == [1.0]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["training", "validation"]
    assert [line.get_linestyle() for line in (training, validation)] == ["--", "-"]
    assert training.get_color() == validation.get_color() == TRIAL_COLOURS[0], "both are of one trial"


def test_not_a_number_is_a_gap_and_what_is_between_two_gaps_a_point() -> None:
    nan = math.nan
    axis = draw(Curves("x", [Curve("norm", False, [1, 2, 3, 4, 5], [1.0, 2.0, nan, 3.0, nan])])).axes[0]
    (line,) = axis.get_lines()
    assert [math.isnan(value) for value in line.get_ydata()] == [False, False, True, False, True]
    assert (line.get_marker(), line.get_markevery()) == ("o", [3])
    experiment = make_experiment()
    rows = [rest.MetricRow(batch=n, metrics={"norm": nan if n == 2 else 1.0, "none": nan}) for n in (1, 2, 3, 4)]
    source_of(experiment).write_rows(1, "training", rows)
    (line,) = [line for line in curves_of(experiment).lines if not line.validation]
    assert (line.name, line.batches) == ("norm", [1, 2, 3, 4])
    assert [math.isnan(value) for value in line.values] == [False, True, False, False]


def test_the_colours_of_trials_are_those_of_the_live_view() -> None:
    styles = (Path(__file__).parents[2] / "jupyter_ext" / "src" / "shared" / "parts.css").read_text()
    light = styles.partition("data-jp-theme-light")[0]
    assert re.findall(r"--det-trial-\d: (#\w+);", light) == list(TRIAL_COLOURS)


def test_one_point_has_an_axis_that_fits() -> None:
    axis = draw(Curves("x", [Curve("loss", True, [60], [0.5])])).axes[0]
    assert axis.get_xlim() == (59, 61)
    low, high = axis.get_ylim()
    assert 0.4 < low < 0.5 < high < 0.6


def entries(figure: CurvesFigure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("trials", [2, 3, 8])
def test_each_trial_has_a_colour_of_its_own_and_the_best_one_stands_out(trials: int) -> None:
    figure = make_experiment(trials=trials).plot()
    axis = figure.axes[0]
    validation = [line for line in axis.get_lines() if line.get_label() == "validation"]
    training = [line for line in axis.get_lines() if line.get_label() == "training"]
    assert len({line.get_color() for line in validation}) == len(validation) == trials
    assert sorted(line.get_color() for line in training) == sorted(line.get_color() for line in validation)
    assert {line.get_linestyle() for line in training} == {"--"}
    assert {line.get_marker() for line in validation} == {"o"}
    (widest,) = (
        line for line in validation if line.get_linewidth() == max(each.get_linewidth() for each in validation)
    )
    assert list(widest.get_ydata()) == [1.0 / trials]
    others = [f"trial {number}" for number in range(1, trials)]
    assert entries(figure) == [f"trial {trials} (best)", *others, "validation", "training"]


def test_of_many_trials_only_the_best_one_has_a_colour() -> None:
    figure = make_experiment(trials=9).plot()
    assert entries(figure) == ["trial 9 (best)", "8 other trials", "validation", "training"]
    assert len({line.get_color() for line in figure.axes[0].get_lines()}) == 2


def test_the_panel_of_the_searchers_metric_comes_first_and_each_of_one_kind_has_its_own() -> None:
    names = ("accuracy", "val_accuracy", "error", "val_error", "validation_error")
    for trials in ([0], [1, 2]):
        lines = [
            Curve(name, name.startswith("val"), [1, 2], [1.0, 0.5], trial=trial) for trial in trials for name in names
        ]
        curves = Curves("Experiment 1", lines, metric="val_error")
        titles = ["val_error", "accuracy", "error", "validation_error"]
        assert [axis.get_title() for axis in draw(curves).axes if axis.get_visible()] == titles
        assert [len(axis.get_lines()) // len(trials) for axis in draw(curves).axes] == [1, 2, 1, 1]
        assert [axis.get_title() for axis in draw(curves, ["val_error", "val_accuracy"]).axes] == titles[:2]


def test_trials_without_validation_are_dashed() -> None:
    lines = [Curve("loss", False, [1, 2], [1.0, 0.5], trial=number, best=number == 2) for number in (1, 2)]
    figure = draw(Curves("x", lines))
    assert {line.get_linestyle() for line in figure.axes[0].get_lines()} == {"--"}
    assert entries(figure) == ["trial 2 (best)", "trial 1"]


def test_chosen_metrics_and_an_unknown_one() -> None:
    experiment = make_experiment(metric="accuracy")
    for names in (["val_accuracy"], [["val_accuracy"]], [("accuracy",)]):
        assert [axis.get_title() for axis in experiment.plot(*names).axes] == ["accuracy"]
    assert [axis.get_title() for axis in experiment.trials[0].plot(["loss"], "accuracy").axes] == ["loss", "accuracy"]
    assert len(experiment.plot([]).axes) == 2
    with pytest.raises(ArgumentError, match=r"no metric 'nope'; it has: loss, accuracy"):
        experiment.plot(["nope"])
    with pytest.raises(ArgumentError, match=r"names of metrics, such as plot\('loss'\), not 3"):
        experiment.plot(3)  # type: ignore[arg-type]


def test_names_are_not_read_as_mathematics() -> None:
    figure = make_experiment(metric="_$\\broken{$_a").plot()
    assert figure.png().startswith(b"\x89PNG")


# Names at their worst: markup, what ends a comment or a CDATA section of an SVG, control characters, length.
HOSTILE = (
    "<img src=x onerror=owned=1>",
    "</script><script>owned=2</script>",
    "javascript:owned=3",
    "-->{{7*7}}${x}<!--]]>",
    "\u202egnp.exe\x1b[31m\x00\x08",
    "w" * 10_000,
)


@pytest.mark.parametrize("fonts", [pytest.param("path", marks=pytest.mark.long), "none"])
def test_names_are_text_in_an_svg_and_take_no_more_room_than_there_is(fonts: str) -> None:
    figures = [
        draw(Curves(name, [Curve(name, False, [1, 2], [1.0, 0.5]), Curve(f"{name}2", True, [1, 2], [1.0, 0.5])]))
        for name in HOSTILE
    ]
    figures.append(make_experiment(trials=3, name=HOSTILE[0], metric=HOSTILE[1]).plot("search"))
    for figure in figures:
        written = io.StringIO()
        with mpl.rc_context({"svg.fonttype": fonts}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(written, format="svg")
        root = ElementTree.fromstring(written.getvalue())  # an SVG is XML, or no browser shows it
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert not tags & {"script", "img", "image", "foreignObject", "a", "iframe"}
        attributes = [item for element in root.iter() for item in element.attrib.items()]
        assert not [name for name, _ in attributes if name.lower().startswith("on")]
        assert not [value for _, value in attributes if "javascript" in value]
        texts = [text.get_text() for axis in figure.axes for text in (axis.title, axis.xaxis.label)]
        assert max(map(len, texts)) <= 130


def test_drawing_leaves_pyplot_alone() -> None:
    code = (
        "import sys\n"
        "from det_native.display.curves import Curve, Curves\n"
        "from det_native.display.figure import draw\n"
        "curves = Curves('x', [Curve('loss', False, [1, 2], [1.0, 0.5])])\n"
        "assert draw(curves)._repr_png_().startswith(b'\\x89PNG')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@given(st.lists(st.floats(-1e6, 1e6), max_size=300), st.integers(4, 40))
def test_thinning_keeps_extremes_order_and_the_limit(values: list[float], limit: int) -> None:
    batches = list(range(1, len(values) + 1))
    kept_batches, kept_values = thin(batches, values, limit)
    assert len(kept_values) <= limit + 2
    assert kept_batches == sorted(set(kept_batches))
    assert [values[batch - 1] for batch in kept_batches] == kept_values
    if values:
        assert min(kept_values) == min(values)
        assert max(kept_values) == max(values)


@given(st.lists(st.floats(allow_infinity=False) | st.just(math.nan), max_size=200), st.integers(4, 40))
def test_thinning_finds_the_extremes_beside_what_is_no_number(values: list[float], limit: int) -> None:
    _, kept = thin(list(range(len(values))), values, limit)
    numbers = [value for value in values if not math.isnan(value)]
    kept_numbers = [value for value in kept if not math.isnan(value)]
    assert bool(numbers) == bool(kept_numbers)
    if numbers:
        assert (min(kept_numbers), max(kept_numbers)) == (min(numbers), max(numbers))


@pytest.mark.parametrize(
    ("name", "panel"), [("val_loss", "loss"), ("validation_loss", "loss"), ("loss", "loss"), ("val_", "val_")]
)
def test_panel_of(name: str, panel: str) -> None:
    assert panel_of(name) == panel


@pytest.mark.parametrize("trials", [1, 3])
def test_it_can_be_read_in_a_light_and_in_a_dark_theme(trials: int) -> None:
    figure = make_experiment(trials=trials).plot()
    pixels = matplotlib.image.imread(io.BytesIO(figure.png()))
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1], 3] == 0).all(), "the background is the page's"
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    assert len(texts) > 8
    for text in texts:
        for page in ("#ffffff", "#111111"):
            assert contrast(text.get_color(), page) > 4, (text.get_text(), page)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)
