"""What axe-core, a checker of accessibility, finds wrong in a part of a page."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

_SCRIPT = Path(__file__).resolve().parents[2] / "jupyter_ext" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """async selector => {
  const found = await window.axe.run(selector, {
    resultTypes: ['violations'],
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  });
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(' ')}: ${failureSummary}`));
}"""


def violations(page: Page, selector: str = ".det-app") -> list[str]:
    """Return what is wrong in the elements of a selector, one sentence for each element.

    The script is put in by the debugger, which the page's Content-Security-Policy does not concern.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_SCRIPT.read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(_RUN, selector)
    return found
