/** One plot: its name, what it shows in words, a menu with table and files, and who is pointed at. */

import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { saveContent } from '../../shared/download';
import { useWorkspace } from '../app/context';
import { fileNameOf, pngOfSvg } from '../charts/exportFiles';
import { Menu } from '../parts/menu';
import { useWidth } from '../parts/useWidth';
import type { PlotColours } from './frame';
import { type Hover, useHovered } from './hover';
import { type PlotTable, tableCsv, TableDialog } from './plotTable';
import type { Scene } from './scenes';
import { clipped, drawShapes, type Shape, type Size, svgText } from './shapes';
import { usePlotColours } from './usePlotColours';

const REACH = 12;
const HEAD = 26;

export interface PlotCardProps {
  readonly title: string;
  /** What it shows, for those who do not see it. */
  readonly description: string;
  readonly height: number;
  readonly draw: (size: Size, colours: PlotColours) => Scene;
  readonly table: () => PlotTable;
  readonly hover: Hover;
  /** What is said of a trial, line by line. */
  readonly tell: (key: string) => readonly string[];
  readonly notes?: readonly string[];
  readonly tools?: ComponentChildren;
}

export function PlotCard(props: PlotCardProps) {
  const { title, description, height, draw, table, hover, tell } = props;
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place, 480);
  const colours = usePlotColours(place);
  const size = { width, height };
  const scene = useMemo(
    () => draw({ width, height }, colours),
    [draw, width, height, colours]
  );
  return (
    <figure class="det-plot" aria-label={clipped(title, 80)}>
      <figcaption class="det-plot-head">
        <span class="det-plot-title" title={clipped(title, 300)}>
          {title}
        </span>
        <PlotMenu
          title={title}
          table={table}
          picture={() => ({ shapes: scene.shapes, size, colours })}
        />
      </figcaption>
      {props.tools && <div class="det-plot-tools">{props.tools}</div>}
      <div ref={place} class="det-plot-place" style={{ height: `${height}px` }}>
        <PlotCanvas shapes={scene.shapes} size={size} label={description} />
        <Pointed scene={scene} size={size} hover={hover} tell={tell} />
      </div>
      {[...(props.notes ?? []), ...omittedNote(scene.omitted)].map(note => (
        <p key={note} class="det-plot-note">
          {note}
        </p>
      ))}
    </figure>
  );
}

function omittedNote(omitted: number): string[] {
  return omitted > 0
    ? [
        `${omitted.toLocaleString('en')} ${omitted === 1 ? 'trial has' : 'trials have'} no value here.`
      ]
    : [];
}

export interface Picture {
  readonly shapes: readonly Shape[];
  readonly size: Size;
  readonly colours: PlotColours;
}

/** Table and files of a plot. */
export function PlotMenu({
  title,
  table,
  picture
}: {
  title: string;
  table: () => PlotTable;
  picture: () => Picture;
}) {
  const { toasts } = useWorkspace();
  const [shown, setShown] = useState<PlotTable | null>(null);
  const name = fileNameOf(title);
  const svg = () => {
    const { shapes, size, colours } = picture();
    return svgText(title, shapes, size, colours);
  };
  const save = async (ending: string, make: () => Blob | Promise<Blob>) => {
    try {
      saveContent(await make(), `${name}.${ending}`);
    } catch (error) {
      toasts.error(error);
    }
  };
  return (
    <span class="det-plot-menu">
      <Menu
        compact
        label={`More about ${clipped(title, 80)}`}
        items={[
          {
            label: 'Show as table',
            icon: 'columns',
            onChoose: () => setShown(table())
          },
          {
            label: 'CSV',
            icon: 'download',
            onChoose: () =>
              void save(
                'csv',
                () => new Blob([tableCsv(table())], { type: 'text/csv' })
              )
          },
          {
            label: 'PNG',
            icon: 'download',
            onChoose: () =>
              void save('png', () => {
                const { width, height } = picture().size;
                return pngOfSvg(svg(), width, height + HEAD);
              })
          },
          {
            label: 'SVG',
            icon: 'download',
            onChoose: () =>
              void save(
                'svg',
                () => new Blob([svg()], { type: 'image/svg+xml' })
              )
          }
        ]}
      />
      {shown && (
        <TableDialog
          title={clipped(title, 80)}
          table={shown}
          onClose={() => setShown(null)}
        />
      )}
    </span>
  );
}

/** Shapes on a canvas, sharp on every screen. */
export function PlotCanvas({
  shapes,
  size,
  label
}: {
  shapes: readonly Shape[];
  size: Size;
  /** Missing for what only stands behind another one. */
  label?: string;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width, height } = size;
  useEffect(() => {
    const element = canvas.current!;
    const pixels = window.devicePixelRatio || 1;
    element.width = Math.round(width * pixels);
    element.height = Math.round(height * pixels);
    const context = element.getContext('2d');
    if (context) {
      context.setTransform(pixels, 0, 0, pixels, 0, 0);
      context.clearRect(0, 0, width, height);
      drawShapes(context, shapes);
    }
  }, [shapes, width, height]);
  return (
    <canvas
      ref={canvas}
      class="det-plot-canvas"
      style={{ width: `${width}px`, height: `${height}px` }}
      {...(label === undefined
        ? { 'aria-hidden': true }
        : { role: 'img', 'aria-label': clipped(label, 300) })}
    />
  );
}

/** What lies under the pointer, and the trial that is pointed at in any plot. */
function Pointed({
  scene,
  size,
  hover,
  tell
}: {
  scene: Scene;
  size: Size;
  hover: Hover;
  tell: PlotCardProps['tell'];
}) {
  const key = useHovered(hover);
  const [inside, setInside] = useState(false);
  const byKey = useMemo(
    () => new Map(scene.hits.map(hit => [hit.key, hit])),
    [scene]
  );
  const hit = key === null ? undefined : byKey.get(key);
  return (
    <div
      class="det-plot-hits"
      onPointerMove={event => {
        const box = event.currentTarget.getBoundingClientRect();
        const x = event.clientX - box.left;
        const y = event.clientY - box.top;
        setInside(true);
        hover.set(nearest(scene, x, y));
      }}
      onPointerLeave={() => {
        setInside(false);
        hover.set(null);
      }}
    >
      {hit && (
        <svg
          class="det-plot-overlay"
          width={size.width}
          height={size.height}
          aria-hidden="true"
        >
          <circle cx={hit.x} cy={hit.y} r={7} />
        </svg>
      )}
      {hit && inside && <Tooltip at={hit} size={size} lines={tell(hit.key)} />}
    </div>
  );
}

function nearest({ hits }: Scene, x: number, y: number): string | null {
  let found: string | null = null;
  let least = REACH ** 2;
  for (const hit of hits) {
    const distance = (hit.x - x) ** 2 + (hit.y - y) ** 2;
    if (distance <= least) {
      least = distance;
      found = hit.key;
    }
  }
  return found;
}

/** Words beside a point, on the side that has room. */
export function Tooltip({
  at,
  size,
  lines
}: {
  at: { x: number; y: number };
  size: Size;
  lines: readonly string[];
}) {
  const right = at.x > size.width / 2;
  const style: Record<string, string> = {
    top: `${Math.max(0, Math.min(at.y + 10, size.height - 40))}px`
  };
  style[right ? 'right' : 'left'] =
    `${right ? size.width - at.x + 10 : at.x + 10}px`;
  return (
    <div class="det-plot-tip" role="status" style={style}>
      {lines.map((line, index) => (
        <div key={`${index} ${line}`}>{line}</div>
      ))}
    </div>
  );
}

export type PlaceRef = RefObject<HTMLDivElement>;
