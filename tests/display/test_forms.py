"""Text, HTML and the MIME bundle of experiments and trials."""

import base64
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st
from made_experiments import make_experiment, source_of

from det_native.display.html import experiment_html, trial_html
from det_native.display.text import experiment_facts, experiment_line
from det_native.schema.rest import UserErrorInfo
from det_native.schema.states import ExperimentState

PNG = b"\x89PNG\r\n\x1a\n"


class Tags(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def parse(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    tags.close()
    return tags


def test_experiment_bundle_has_text_html_and_the_curves() -> None:
    bundle = make_experiment(name="digits", trials=1)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "image/png"}
    assert "digits" in bundle["text/plain"]
    assert "state: Completed" in bundle["text/plain"]
    assert base64.b64decode(bundle["image/png"]).startswith(PNG)
    assert bundle["image/png"] in bundle["text/html"]


def test_search_lists_its_trials_and_says_how_many_are_left_out() -> None:
    experiment = make_experiment(trials=15)
    bundle = experiment._repr_mimebundle_()
    said = bundle["text/plain"]
    assert "best val_loss 0.08333" in said.partition("trial 12: Completed")[2].partition("trial 11:")[0]
    numbers = [line.split()[1].rstrip(":") for line in said.splitlines() if line.startswith("  trial ")]
    assert numbers == [str(number) for number in range(15, 3, -1)], "best first"
    rows = parse(bundle["text/html"]).text.partition("hyperparameters")[2]
    assert rows.startswith("15 (best)")
    assert rows.index("Completed") < rows.index("14Completed")
    assert "and 3 more trials" in bundle["text/plain"]
    assert "and 3 more trials" in parse(bundle["text/html"]).text
    assert experiment.best_trial.id == 15


def test_a_long_name_is_cut_in_its_middle_and_whole_on_hover() -> None:
    name = "digits_convolutional_with_a_long_description_lr_0.01"
    found = parse(experiment_html(make_experiment(name=name)))
    assert "digits_convolutional_w...ription_lr_0.01" in found.text
    assert ("title", name) in found.attributes


def test_a_queued_experiment_says_what_it_waits_for() -> None:
    detail = make_experiment().detail()
    queued = detail.model_copy(
        update={"state": ExperimentState.ACTIVE, "started": "now", "waits_for": "2 of 4 slots: #7 has them"}
    )
    assert experiment_facts(queued)["state"] == "Queued, waits for 2 of 4 slots: #7 has them"
    assert "queued, waits for 2 of 4 slots: #7 has them, " in experiment_line(8, queued)


def test_trial_bundle() -> None:
    bundle = make_experiment(trials=2).trials[1]._repr_mimebundle_()
    assert "Trial 2 of experiment 1" in bundle["text/plain"]
    assert "of experiment 1" in parse(bundle["text/html"]).text
    assert "lr=0.2" in bundle["text/plain"]
    assert "best val_loss: 0.5" in bundle["text/plain"]
    assert "4/4" in parse(bundle["text/html"]).text


def test_without_metrics_there_is_no_picture() -> None:
    experiment = make_experiment(rows=0, metric="nothing")
    source_of(experiment).write_rows(1, "validation", [])
    assert set(experiment._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_failure_shows_the_traceback() -> None:
    error = UserErrorInfo(type="ValueError", message="bad", traceback="Cell [3], line 2\nValueError: bad <x>", cell=3)
    bundle = make_experiment(error=error)._repr_mimebundle_()
    assert "Cell [3], line 2" in bundle["text/plain"]
    assert "ValueError: bad <x>" in parse(bundle["text/html"]).text


def test_tables_are_not_centred_beside_text_that_is_not() -> None:
    html = experiment_html(make_experiment(trials=2))
    assert '<table style="margin:2px 0;' in html
    assert html.count('<tr style="background:none">') == 2, "no stripes, which the live view has not either"


names = st.text(max_size=20).map(lambda text: f"<script>alert(1)</script>{text}\"'><img src=x onerror=alert(2)>&amp;")


@settings(max_examples=30, deadline=None)
@given(name=names, hparam=names, value=names, metric=names, message=names)
def test_nothing_from_outside_becomes_html(name: str, hparam: str, value: str, metric: str, message: str) -> None:
    error = UserErrorInfo(type=name, message=message, traceback=message)
    experiment = make_experiment(name=name, trials=2, hparams={hparam: value}, metric=metric, error=error)
    for html in (experiment_html(experiment), trial_html(experiment.trials[0], b"png")):
        found = parse(html)
        assert found.tags <= {"div", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "pre", "img"}
        assert {attribute for attribute, _ in found.attributes} <= {"style", "alt", "src", "title"}
        sources = [value or "" for key, value in found.attributes if key == "src"]
        assert all(source.startswith("data:image/png;base64,") for source in sources)
        assert "<script" not in html
