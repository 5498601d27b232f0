/** How a histogram changes over batches: dark where many values are. */

import { useEffect, useRef, useState } from 'preact/hooks';

import { linearTicks, tickText } from '../../shared/axes';
import { formatValue } from '../../shared/format';
import type { MediaContents } from '../../shared/mediaContents';
import type { MediaSeries } from '../../shared/outputs';
import { watchTheme } from '../../shared/palette';
import { asError } from '../data/useLoad';
import {
  darkness,
  type HeatMap,
  heatMap,
  type HistogramContent,
  MOST_MOMENTS,
  shareText,
  thinned
} from './histograms';
import { xTicks } from './ticks';

const WIDTH = 340;
const HEIGHT = 170;
const BOX = { left: 48, right: 10, top: 8, bottom: 34 };
/** Shares of the darkest part that the legend shows. */
const STEPS = [0, 0.25, 0.5, 0.75, 1];

export interface HistogramMapProps {
  readonly series: MediaSeries;
  readonly contents: MediaContents;
  /** The batch that the slider stands at; null for the newest. */
  readonly batch: number | null;
}

export function HistogramMap({ series, contents, batch }: HistogramMapProps) {
  const { moments, name } = series;
  const [map, setMap] = useState<HeatMap | null>(null);
  const [problem, setProblem] = useState('');
  const newest = moments.at(-1)?.items.at(-1)?.id ?? 0;
  useEffect(() => {
    let gone = false;
    const shown = thinned(moments.length, MOST_MOMENTS).flatMap(at => {
      const moment = moments[at]!;
      const [item] = moment.items;
      return item ? [{ batch: moment.batch, item }] : [];
    });
    Promise.all(
      shown.map(({ item }) => contents.json(item) as Promise<HistogramContent>)
    ).then(
      found => {
        if (!gone) {
          setMap(
            heatMap(
              shown.map(each => each.batch),
              found
            )
          );
          setProblem('');
        }
      },
      (error: unknown) => {
        if (!gone) {
          setProblem(asError(error).message);
        }
      }
    );
    return () => {
      gone = true;
    };
  }, [series.key, moments.length, newest, contents]);
  if (problem !== '' && map === null) {
    return <p class="det-curve-note">{problem}</p>;
  }
  if (map === null) {
    return null;
  }
  return (
    <>
      <Map map={map} name={name} batch={batch} />
      <Scale map={map} />
    </>
  );
}

function Map({
  map,
  name,
  batch
}: {
  map: HeatMap;
  name: string;
  batch: number | null;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const draw = () => paint(canvas.current, map);
    draw();
    return watchTheme(document, draw);
  }, [map]);
  const { low, high, batches } = map;
  const [first = 0, last = first] = [batches[0], batches.at(-1)];
  const x = (at: number) =>
    BOX.left +
    ((at - first) / (last - first || 1)) * (WIDTH - BOX.left - BOX.right);
  const y = (value: number) =>
    HEIGHT -
    BOX.bottom -
    ((value - low) / (high - low)) * (HEIGHT - BOX.top - BOX.bottom);
  const marked = batch === null ? last : Math.min(Math.max(batch, first), last);
  const step = (ticks: readonly number[]) => (ticks[1] ?? 0) - (ticks[0] ?? 0);
  const values = linearTicks(low, high);
  return (
    <div
      class="det-histogram-map"
      role="img"
      aria-label={`${name} over batches ${first.toLocaleString('en')} to ${last.toLocaleString('en')}: values from ${formatValue(low)} to ${formatValue(high)}`}
    >
      <canvas
        ref={canvas}
        width={WIDTH - BOX.left - BOX.right}
        height={HEIGHT - BOX.top - BOX.bottom}
      />
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
        {values.map(at => (
          <text key={at} x={BOX.left - 5} y={y(at) + 4} text-anchor="end">
            {tickText(at, step(values))}
          </text>
        ))}
        {xTicks('batch', [first, last], 4).map(({ at, text }) => (
          <text
            key={at}
            x={x(at)}
            y={HEIGHT - BOX.bottom + 14}
            text-anchor="middle"
          >
            {text}
          </text>
        ))}
        <text
          x={(BOX.left + WIDTH - BOX.right) / 2}
          y={HEIGHT - 4}
          text-anchor="middle"
        >
          batch
        </text>
        <text
          text-anchor="middle"
          transform={`translate(10 ${(BOX.top + HEIGHT - BOX.bottom) / 2}) rotate(-90)`}
        >
          value
        </text>
        <line
          x1={x(marked)}
          x2={x(marked)}
          y1={BOX.top}
          y2={HEIGHT - BOX.bottom}
        />
      </svg>
    </div>
  );
}

/** What the colours mean: how many of the values of a batch lie in a part of the map. */
function Scale({ map }: { map: HeatMap }) {
  const { most } = map;
  return (
    <div class="det-histogram-scale">
      <span>Values: 0</span>
      <span class="det-histogram-steps" aria-hidden="true">
        {STEPS.map(step => (
          <span key={step} title={shareText(map, step * most)}>
            <span style={{ opacity: darkness(step * most, most) }} />
          </span>
        ))}
      </span>
      <span>{shareText(map, most)}</span>
    </div>
  );
}

/** Each batch reaches half of the way to its neighbours. */
function paint(canvas: HTMLCanvasElement | null, map: HeatMap): void {
  const context = canvas?.getContext('2d');
  if (!canvas || !context) {
    return;
  }
  const { width, height } = canvas;
  const { batches, shares, most } = map;
  const [first = 0, last = first] = [batches[0], batches.at(-1)];
  const place = (at: number) => ((at - first) / (last - first || 1)) * width;
  context.clearRect(0, 0, width, height);
  context.fillStyle =
    getComputedStyle(canvas).getPropertyValue('--det-accent').trim() ||
    '#0b62c4';
  shares.forEach((row, at) => {
    const own = batches[at]!;
    const from = at === 0 ? 0 : place((own + batches[at - 1]!) / 2);
    const to =
      at === batches.length - 1 ? width : place((own + batches[at + 1]!) / 2);
    row.forEach((share, bin) => {
      if (share > 0) {
        context.globalAlpha = darkness(share, most);
        const tall = height / row.length;
        context.fillRect(
          from,
          height - (bin + 1) * tall,
          Math.max(to - from, 1),
          Math.ceil(tall)
        );
      }
    });
  });
  context.globalAlpha = 1;
}
