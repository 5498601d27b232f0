/** What a trial uses of its machine: a small panel for each quantity, folded away until somebody wants it. */

import { make, setText } from './dom';
import { formatDuration } from './format';
import type { ExperimentView, SystemSample } from './model';
import { isTerminal } from './model';
import type { SearchAxis } from './searchFacts';
import { Section } from './sections';
import type { Box } from './svg';
import { figure, line, plotArea, shape } from './svg';
import type { SystemLine, SystemPanel } from './systemFacts';
import { pointAt, systemPanels, systemText } from './systemFacts';
import { numberOf } from './trialNumbers';

const BOX: Box = {
  width: 300,
  height: 110,
  left: 66,
  right: 12,
  top: 10,
  bottom: 22
};
const COLOURS = 8;
/** Lines that are told in words below a panel. */
const MOST_TOLD = 6;

/** A panel that is drawn: it tells values at a share of the time, or the newest for null. */
interface Drawn {
  readonly root: HTMLElement;
  show(place: number | null): void;
}

export class SystemSection {
  readonly root: HTMLElement;
  private readonly _section: Section;
  private readonly _panels = make('div', 'det-search-panels');
  private _samples: readonly SystemSample[] = [];
  private _shown: readonly SystemSample[] | null = null;
  private _drawn: readonly Drawn[] = [];
  private _place: number | null = null;

  constructor(open: boolean) {
    this._section = new Section(this._panels, open);
    this.root = this._section.root;
    this.root.addEventListener('toggle', () => this._draw());
    this._panels.addEventListener('pointermove', event => this._point(event));
    this._panels.addEventListener('pointerleave', () => this._show(null));
  }

  update(view: ExperimentView): void {
    const { system, trials } = view;
    this._samples = system?.samples ?? [];
    this.root.hidden = this._samples.length === 0;
    const whose =
      system && trials.length > 1
        ? ` of trial ${numberOf(trials, system.trialId)}`
        : '';
    const trial = trials.find(({ id }) => id === system?.trialId);
    const ended = trial !== undefined && isTerminal(trial.state);
    const text = systemText(this._samples, ended);
    this._section.show(`System${whose}${text && `: ${text}`}`, null);
    this._draw();
  }

  private _draw(): void {
    const { open } = this.root as HTMLDetailsElement;
    if (!open || this.root.hidden || this._shown === this._samples) {
      return;
    }
    this._shown = this._samples;
    const first = this._samples[0]?.time ?? 0;
    const seconds = (this._samples.at(-1)?.time ?? 0) - first;
    this._drawn = systemPanels(this._samples).map(panel =>
      drawPanel(panel, seconds)
    );
    this._panels.replaceChildren(...this._drawn.map(({ root }) => root));
    this._show(this._place);
  }

  private _point(event: PointerEvent): void {
    const svg = (event.target as Element).closest('svg');
    if (!svg) {
      this._show(null);
      return;
    }
    const { left, width } = svg.getBoundingClientRect();
    const x = ((event.clientX - left) / width) * BOX.width;
    const place = (x - BOX.left) / (BOX.width - BOX.left - BOX.right);
    this._show(Math.min(Math.max(place, 0), 1));
  }

  private _show(place: number | null): void {
    this._place = place;
    this._drawn.forEach(drawn => drawn.show(place));
  }
}

function drawPanel(panel: SystemPanel, seconds: number): Drawn {
  const { title, top, lines, format } = panel;
  const across = axis(seconds, [
    { place: 0, text: '0 s' },
    ...(seconds >= 0.5 ? [{ place: 1, text: formatDuration(seconds) }] : [])
  ]);
  const up = axis(top, [
    { place: 0, text: '0' },
    { place: 1, text: format(top) }
  ]);
  const area = plotArea(BOX, across, up);
  const marks = lines.flatMap(({ stretches }, index) =>
    stretches.map(points => {
      const corners = points.map(
        ([time, value]) =>
          [area.x(across.place(time) ?? 0), area.y(up.place(value) ?? 0)] as [
            number,
            number
          ]
      );
      const [only] = corners;
      // A point by itself is a line of no length, which its round ends show.
      const drawn = corners.length === 1 && only ? [only, only] : corners;
      const path = shape(drawn, 'det-system-line');
      path.style.stroke = colourOf(index);
      return path;
    })
  );
  const cursor = line(0, BOX.top, 0, BOX.height - BOX.bottom);
  cursor.setAttribute('class', 'det-system-cursor');
  const values = lines.slice(0, MOST_TOLD).map(() => make('b'));
  const when = make('span', 'det-legend-batch');
  const more = lines.length - values.length;
  const legend = make(
    'div',
    'det-legend',
    {},
    ...values.map((value, index) => entry(lines[index]?.label, index, value)),
    ...(more > 0 ? [`${more} more`] : []),
    when
  );
  const words = `${title} over ${formatDuration(seconds)}`;
  const root = figure(title, words, BOX, [...area.frame, ...marks, cursor]);
  root.append(legend);
  const show = (place: number | null) => {
    const time = (place ?? 1) * seconds;
    values.forEach((value, index) => {
      const point = pointAt(lines[index] as SystemLine, time);
      setText(value, point ? format(point[1]) : '—');
    });
    setText(when, place === null ? '' : formatDuration(time));
    cursor.toggleAttribute('hidden', place === null);
    const x = area.x(place ?? 0).toFixed(1);
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
  };
  return { root, show };
}

function axis(most: number, labels: SearchAxis['labels']): SearchAxis {
  return {
    name: '',
    labels,
    place: value => (most > 0 ? Number(value) / most : 0)
  };
}

function entry(
  label: string | undefined,
  index: number,
  value: HTMLElement
): HTMLElement {
  const swatch = make('span', 'det-swatch', { 'aria-hidden': 'true' });
  swatch.style.borderTopColor = colourOf(index);
  const words = label ? `${label} ` : '';
  return make('span', 'det-legend-entry', {}, swatch, words, value);
}

function colourOf(index: number): string {
  return `var(--det-trial-${(index % COLOURS) + 1})`;
}
