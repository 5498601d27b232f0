/** What a browser has and jsdom lacks: layout observers, media queries, dragging, and a canvas that notes what is drawn on it. */
import { vi } from 'vitest';

type Callback<Entry> = (entries: Entry[], observer: unknown) => void;

/** Observers that are at work: what is forgotten stays here. */
export const observing = new Set<object>();

class Observer<Entry> {
  readonly elements = new Set<Element>();

  constructor(private readonly _callback: Callback<Entry>) {}

  observe(element: Element): void {
    this.elements.add(element);
    observing.add(this);
  }

  unobserve(element: Element): void {
    this.elements.delete(element);
  }

  disconnect(): void {
    this.elements.clear();
    observing.delete(this);
  }

  tell(entries: Entry[]): void {
    this._callback(entries, this);
  }
}

class Resizes extends Observer<unknown> {}
class Intersections extends Observer<{ isIntersecting: boolean }> {}

/** Tell those who watch an element that its size has changed. */
export function resized(element: Element): void {
  for (const observer of observing) {
    if (observer instanceof Resizes && observer.elements.has(element)) {
      observer.tell([]);
    }
  }
}

/** Scroll an element into view or out of it. */
export function scrolled(element: Element, ...seen: boolean[]): void {
  for (const observer of observing) {
    if (observer instanceof Intersections && observer.elements.has(element)) {
      observer.tell(seen.map(isIntersecting => ({ isIntersecting })));
    }
  }
}

/** Show the page, or hide it behind another tab. */
export function setPageHidden(hidden: boolean): void {
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(hidden);
  document.dispatchEvent(new Event('visibilitychange'));
}

/** Points of the paths that were made since it was emptied. */
export const pathPoints: Array<readonly [number, number]> = [];

class Path {
  moveTo(x: number, y: number): void {
    pathPoints.push([x, y]);
  }

  lineTo(x: number, y: number): void {
    pathPoints.push([x, y]);
  }

  rect(): void {}
  arc(): void {}
  closePath(): void {}
  addPath(): void {}
}

const context = new Proxy<Record<string, unknown>>(
  {},
  {
    get: (target, name: string) =>
      target[name] ??
      (name === 'measureText'
        ? (text: string) => ({ width: 6 * text.length })
        : () => undefined)
  }
);

function media(): Partial<MediaQueryList> {
  return {
    matches: false,
    addEventListener: () => undefined,
    removeEventListener: () => undefined
  };
}

vi.stubGlobal('ResizeObserver', Resizes);
vi.stubGlobal('IntersectionObserver', Intersections);
vi.stubGlobal('Path2D', Path);
vi.stubGlobal('matchMedia', media);
vi.stubGlobal('DragEvent', class extends MouseEvent {});
HTMLCanvasElement.prototype.getContext = (() => context) as never;

/** Texts of the elements that are shown and fit a selector. */
export function textsOf(root: ParentNode, selector: string): string[] {
  return [...root.querySelectorAll<HTMLElement>(selector)]
    .filter(element => !element.closest('[hidden]'))
    .map(element => element.textContent ?? '');
}

/** What a button or another element is called by a screen reader. */
export function nameOf(element: Element): string {
  return (
    element.getAttribute('aria-label') ?? element.textContent?.trim() ?? ''
  );
}

/** The button of this name that is shown. */
export function buttonOf(root: ParentNode, name: string): HTMLButtonElement {
  const found = [...root.querySelectorAll('button')].filter(
    element => nameOf(element) === name && !element.closest('[hidden]')
  );
  if (found.length !== 1) {
    throw new Error(`${found.length} buttons are called ${name}`);
  }
  return found[0]!;
}
