"""The figure of the curves."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_experiments import write_experiment

from det_native.display.curves import panel_of, thin
from det_native.display.figure import CurvesFigure
from det_native.errors import ArgumentError


def test_training_and_validation_share_a_panel() -> None:
    figure = write_experiment().plot()
    assert isinstance(figure, CurvesFigure)
    (axis,) = [axis for axis in figure.axes if axis.get_visible()]
    assert axis.get_title() == "loss"
    training, validation = sorted(axis.get_lines(), key=lambda line: -len(line.get_xdata()))
    assert list(training.get_xdata()) == [1, 2, 3, 4]
    assert list(validation.get_ydata()) == [1.0]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["loss", "val_loss"]


def test_a_search_shows_the_best_trial_in_colour_only() -> None:
    axis = write_experiment(trials=3).plot().axes[0]
    assert len(axis.get_lines()) == 6
    assert len(axis.get_legend().get_texts()) == 2
    assert all("trial 3" in text.get_text() for text in axis.get_legend().get_texts())


def test_chosen_metrics_and_an_unknown_one() -> None:
    experiment = write_experiment(metric="accuracy")
    assert [axis.get_title() for axis in experiment.plot("val_accuracy").axes] == ["accuracy"]
    with pytest.raises(ArgumentError, match=r"no metric 'nope'; it has: loss, accuracy"):
        experiment.plot("nope")


def test_names_are_not_read_as_mathematics() -> None:
    figure = write_experiment(metric="_$\\broken{$_a").plot()
    assert figure.png().startswith(b"\x89PNG")


def test_drawing_leaves_pyplot_alone() -> None:
    code = (
        "import sys\n"
        "from det_native.display.curves import Curve, Curves\n"
        "from det_native.display.figure import draw\n"
        "curves = Curves('x', {'loss': [Curve('loss', False, [1, 2], [1.0, 0.5])]})\n"
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


@pytest.mark.parametrize(
    ("name", "panel"), [("val_loss", "loss"), ("validation_loss", "loss"), ("loss", "loss"), ("val_", "val_")]
)
def test_panel_of(name: str, panel: str) -> None:
    assert panel_of(name) == panel
