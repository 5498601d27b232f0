"""Under a strict Content-Security-Policy nothing of ours is refused, and nothing from outside becomes a script.

What JupyterLab itself needs stays: its one inline script by its hash, styles, modules that anywidget imports from a
``blob:``, and ``eval``, with which it compiles the schemas of settings. A second policy, that only reports, has no
``eval``: each report of it names the file that used it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import jupyterlab
import pytest
from browser_parts import Keep, Lab, Opened, Screen, number_in
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from traffic import Traffic, note_dialogs, the_token_is_nowhere
from training_notebook import CREATE, training_cells, write_notebook
from view_parts import open_tab, page_of

from det_native.schema.downloads import attachment
from det_native.schema.home import Home

# Its many steps take more than the usual limit on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

NAME = "</script><script>owned=1</script>{{7*7}}"
IMAGE = "<img src=x onerror=owned=2>"
HPARAM = '"><iframe srcdoc="<script>parent.owned=3</script>">'
ADDRESS = "javascript:owned=4"
BRACES = "{{constructor.constructor('owned=5')()}}${owned=5}"
RIGHT_TO_LEFT = "\u202egnp.exe"
LONG = "long" * 2_500
TEXTS = (NAME, IMAGE, HPARAM, ADDRESS, BRACES, RIGHT_TO_LEFT, LONG)
FILE = "<img src=x onerror=owned=6>.html"
PAGE = "<script>parent.owned = 6; opener.owned = 6</script>"

TRIAL = f"""
from pathlib import Path
from det_native.pytorch import PyTorchCallback

TEXTS = {TEXTS!a}

class Files(PyTorchCallback):
    def on_checkpoint_end(self, checkpoint_dir):
        Path(checkpoint_dir, {FILE!a}).write_text({PAGE!a})

class Hostile(Line):
    def build_callbacks(self):
        return {{"files": Files()}}

    def train_batch(self, batch, epoch_idx, batch_idx):
        for text in TEXTS:
            print(text)
        if self.context.get_hparam("broken") and batch_idx == 3:
            raise ValueError("\\n".join(TEXTS))
        return super().train_batch(batch, epoch_idx, batch_idx) | {{text: 0.5 + batch_idx for text in TEXTS}}
"""
CREATE_BROKEN = """
config["hyperparameters"]["broken"] = True
broken = det.experimental.create(Hostile, config)
broken
"""
FIGURES = """
import io
import matplotlib
from IPython.display import HTML, SVG, display

figure = experiment.plot()
display(figure)
with matplotlib.rc_context({"svg.fonttype": "none"}):
    svg = io.StringIO()
    figure.savefig(svg, format="svg")
display(SVG(svg.getvalue()))
display(HTML(svg.getvalue()))
for handle in (experiment, broken, experiment.trials[0]):
    display(HTML(handle._repr_mimebundle_()["text/html"]))
"""

# Of pages and of frames in them, before any script of theirs.
LISTEN = """document.addEventListener('securitypolicyviolation', event => window.noteViolation(
  [event.disposition, event.violatedDirective, event.blockedURI, event.sourceFile]))"""


def policy(*more: str) -> str:
    """Return the policy, with more sources of scripts."""
    page = (Path(jupyterlab.__file__).parent / "static" / "index.html").read_text()
    inline = [hashlib.sha256(script.encode()).digest() for script in re.findall(r"<script>(.*?)</script>", page, re.S)]
    hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in inline]
    directives = {
        "default-src": ["'none'"],
        "script-src": ["'self'", "blob:", *hashes, *more],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "worker-src": ["'self'", "blob:"],
        "manifest-src": ["'self'"],
        "frame-ancestors": ["'self'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
    }
    return "; ".join(f"{name} {' '.join(sources)}" for name, sources in directives.items())


@pytest.fixture(scope="module")
def strict_lab(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab whose administrator has set the policy."""
    headers = {
        "Content-Security-Policy": policy("'unsafe-eval'"),
        "Content-Security-Policy-Report-Only": policy(),
    }
    lab = Lab(tmp_path_factory.mktemp("strict-lab"), home.path, headers=headers)
    yield lab
    lab.close()


def listen(screen: Screen) -> list[list[str]]:
    """Return a list of what the page's policies refuse or report from now on, without JupyterLab's own ``eval``."""
    violations: list[list[str]] = []
    own = f"{screen.lab.base}static/lab/"

    def note(violation: list[str]) -> None:
        disposition, directive, blocked, file = violation
        if not (disposition == "report" and (directive, blocked) == ("script-src", "eval") and file.startswith(own)):
            violations.append(violation)

    screen.page.expose_function("noteViolation", note)
    screen.page.add_init_script(LISTEN)
    return violations


def is_text(screen: Screen, root: Locator, *words: str) -> None:
    """Check that words are there as they were written, and that none of them has become an element."""
    for word in words:
        expect(root).to_contain_text(word)
    assert root.locator("script, iframe, object, embed, img[src=x], [onload], [onerror], [srcdoc]").count() == 0
    assert root.locator("a[href^='javascript']").count() == 0
    assert screen.page.evaluate("window.owned") is None


def hostile_cells() -> list[str]:
    """Return cells of two experiments, of which one fails, and of their figures."""
    definition, config, _ = training_cells("NAME", batches=40, pace=0.0)
    hparams = f'"global_batch_size": 8, "broken": False, {HPARAM!a}: {IMAGE!a}, {LONG!a}: {LONG!a}'
    config = config.replace('"NAME"', ascii(NAME)).replace('"global_batch_size": 8', hparams)
    create = CREATE.replace("Line", "Hostile")
    return [definition, TRIAL, config, create, CREATE_BROKEN, FIGURES]


def test_nothing_of_ours_is_refused_and_nothing_from_outside_is_a_script(
    opened: Opened, strict_lab: Lab, home: Home, master: MasterAnswers, keep: Keep
) -> None:
    screen = opened(strict_lab, width=1500)
    traffic, dialogs, violations = Traffic(screen), note_dialogs(screen), listen(screen)
    path = write_notebook(strict_lab.root / "strict.ipynb", *hostile_cells())
    screen.open(path)
    screen.run(0, 1, 2, 3, 4)

    view, failed = (screen.cell(number).locator(".det-view") for number in (3, 4))
    expect(view.locator(".det-badge")).to_have_text("Completed")
    experiment = number_in(view.locator(".det-title").first.inner_text())
    screen.show(4)
    expect(failed.locator(".det-badge")).to_have_text("Failed")
    is_text(screen, view, NAME, IMAGE, HPARAM[:8], ADDRESS, BRACES, RIGHT_TO_LEFT, LONG)
    is_text(screen, failed, NAME, IMAGE, HPARAM, ADDRESS, BRACES, RIGHT_TO_LEFT, LONG)
    screen.run(5)
    outputs = screen.cell(5).locator(".jp-OutputArea-output")
    expect(outputs).to_have_count(6)
    expect(outputs.nth(1).locator("img")).to_be_visible()  # JupyterLab has an SVG as a picture: its scripts never run
    expect(outputs.nth(2).locator("svg").first).to_be_visible()
    is_text(screen, outputs.nth(2), NAME, IMAGE, ADDRESS)
    for number in (3, 4):
        is_text(screen, outputs.nth(number), NAME)
    is_text(screen, outputs.nth(4), IMAGE, BRACES)

    panel = screen.open_panel()
    is_text(screen, panel, NAME)
    screen.save()
    for number in (experiment, experiment + 1):
        panel.locator(f'[data-experiment-id="{number}"]').click()
        page = page_of(screen, number)
        is_text(screen, page, NAME)
        keep(screen, f"strict-page-{number}")
        is_text(screen, open_tab(page, "Configuration"), NAME, IMAGE, LONG)
        is_text(screen, open_tab(page, "Charts"))  # those out of sight are not drawn
        is_text(screen, open_tab(page, "Report"))
    expect(open_tab(page, "Logs")).to_contain_text(HPARAM)

    the_token_is_nowhere(screen, traffic, home.token.read_text().strip(), experiment, path, IMAGE)
    no_answer_is_a_page(strict_lab, master, traffic, experiment)

    reads_the_same_without_a_kernel(screen, strict_lab, path)
    assert not dialogs
    assert not violations
    # And the policy does refuse, and says so.
    screen.page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'owned = 9'}))")
    expect(screen.page.locator("body > script").last).to_be_attached()
    screen.page.wait_for_function("() => window.owned === undefined")
    assert {(disposition, blocked) for disposition, _, blocked, _ in violations} == {
        ("enforce", "inline"),
        ("report", "inline"),
    }


def reads_the_same_without_a_kernel(screen: Screen, lab: Lab, path: Path) -> None:
    """Check that what was saved is text, too, where no kernel runs any more."""
    lab.end_kernels()
    screen.open(path)
    for number in (3, 4, 5):
        screen.show(number)
        is_text(screen, screen.cell(number).locator(".jp-OutputArea"), NAME)


def no_answer_is_a_page(lab: Lab, master: MasterAnswers, traffic: Traffic, experiment: int) -> None:
    """Check that no answer of ours may run a script where it is opened by itself; a checkpoint's file is a download."""
    answers = traffic.headers("/det-native/")
    assert answers
    assert not [url for url, headers in answers if "sandbox" not in headers.get("content-security-policy", "")]
    assert not [url for url, headers in answers if headers.get("x-content-type-options") != "nosniff"]
    [newest] = master.get(f"/experiments/{experiment}/checkpoints")[-1:]
    assert FILE in {file["path"] for file in newest["manifest"]["files"]}
    url = f"det-native/api/master/checkpoints/{newest['uuid']}/files/{quote(FILE)}"
    answer = lab.request("GET", url)
    assert answer.text == PAGE
    assert answer.headers["Content-Disposition"] == attachment(FILE)
    assert "sandbox" in answer.headers["Content-Security-Policy"]
