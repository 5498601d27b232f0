"""Whether texts can be read: their contrast as WCAG 2.2 computes it from the colours that the browser has computed."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator

LEAST = 4.5

# Of each piece of text that is seen: what it says, and the contrast of its colour with what is painted behind it.
_MEASURE = """root => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = text => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  const luminance = colour => {
    const [r, g, b] = colour.slice(0, 3).map(part => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ancestors = element => (element ? [element, ...ancestors(element.parentElement)] : []);
  const behind = element =>
    ancestors(element)
      .map(each => rgba(getComputedStyle(each).backgroundColor))
      .reduceRight((below, colour) => over(colour, below), [255, 255, 255, 1]);
  const opacity = element =>
    ancestors(element).reduce((product, each) => product * Number(getComputedStyle(each).opacity), 1);
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (text === '' || !element.checkVisibility({ visibilityProperty: true }) || element.closest(':disabled')) {
      continue;
    }
    const background = behind(element);
    const [r, g, b, a] = rgba(getComputedStyle(element).color);
    const seen = over([r, g, b, a * opacity(element)], background);
    const [light, dark] = [luminance(seen), luminance(background)].sort((one, other) => other - one);
    found.push({ text: text.slice(0, 60), ratio: (light + 0.05) / (dark + 0.05) });
  }
  return found;
}"""


@dataclass(frozen=True)
class Contrast:
    """A piece of text and its contrast."""

    text: str
    ratio: float


def contrasts(root: Locator) -> list[Contrast]:
    """Return the contrast of every text that is seen below an element; what is disabled need not be read."""
    return [Contrast(**found) for found in root.evaluate(_MEASURE)]


def check_contrast(root: Locator) -> None:
    """Check that every text below an element can be read."""
    found = contrasts(root)
    assert found, "there is no text"
    low = [each for each in found if each.ratio < LEAST]
    assert not low, low
