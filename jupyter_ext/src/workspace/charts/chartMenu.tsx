/** What can be done with any chart: a table of it, and files. */

import { useRef, useState } from 'preact/hooks';

import { saveContent } from '../../shared/download';
import { useWorkspace } from '../app/context';
import { Menu, type MenuItem } from '../parts/menu';
import { ChartTable } from './chartTable';
import type { PlotState } from './curvePlot';
import { toCsv } from './exportCsv';
import { fileNameOf, pngFile, svgFile } from './exportFiles';
import type { CurveChartProps } from './series';
import type { ChartSync } from './sync';

export interface ChartMenuProps {
  readonly chart: CurveChartProps;
  readonly state: PlotState | null;
  readonly sync: ChartSync;
  /** What stands before: where the chart is on its board. */
  readonly items: readonly MenuItem[];
}

export function ChartMenu({ chart, state, sync, items }: ChartMenuProps) {
  const { toasts } = useWorkspace();
  const [table, setTable] = useState(false);
  const place = useRef<HTMLSpanElement>(null);
  const name = fileNameOf(chart.fileName ?? chart.title);
  const save = async (ending: string, make: () => Blob | Promise<Blob>) => {
    try {
      saveContent(await make(), `${name}.${ending}`);
    } catch (error) {
      toasts.error(error);
    }
  };
  const csv = (text: string) => new Blob([text], { type: 'text/csv' });
  const reduced = chart.series.some(each => each.reduced);
  const full = reduced ? chart.loadFull : undefined;
  const empty =
    chart.series.length === 0 ? 'There is nothing to save yet.' : undefined;
  const zoom = () => sync.shared.zoom;
  const files: MenuItem[] = [
    {
      label: 'Show as table',
      icon: 'columns',
      disabled: state === null ? 'There is nothing to show yet.' : undefined,
      onChoose: () => setTable(true)
    },
    {
      label: reduced ? 'CSV of the points drawn (down-sampled)' : 'CSV',
      icon: 'download',
      disabled: empty,
      onChoose: () => void save('csv', () => csv(toCsv(chart.series)))
    },
    ...(full
      ? [
          {
            label: 'CSV of all values',
            icon: 'download' as const,
            disabled: empty,
            onChoose: () => {
              toasts.say('All values are being loaded for the file.');
              void save('csv', async () =>
                csv(toCsv(await full(chart, new AbortController().signal)))
              );
            }
          }
        ]
      : []),
    {
      label: 'PNG',
      icon: 'download',
      disabled: empty,
      onChoose: () =>
        void save('png', () => pngFile(chart, zoom(), place.current!))
    },
    {
      label: 'SVG',
      icon: 'download',
      disabled: empty,
      onChoose: () =>
        void save('svg', () => svgFile(chart, zoom(), place.current!))
    }
  ];
  return (
    <span ref={place} class="det-curve-menu">
      <Menu
        compact
        label={`More about ${shortTitle(chart.title)}`}
        items={[...items, ...files]}
      />
      {table && state !== null && (
        <ChartTable
          title={shortTitle(chart.title)}
          state={state}
          format={chart.format}
          onClose={() => setTable(false)}
        />
      )}
    </span>
  );
}

/** A title of any length, as the name of a control. */
export function shortTitle(title: string): string {
  const letters = [...title];
  return letters.length > 80 ? `${letters.slice(0, 79).join('')}…` : title;
}
