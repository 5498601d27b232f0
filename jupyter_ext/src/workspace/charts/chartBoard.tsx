/** Charts with one set of tools: pinned, in an order of the user's, hidden, merged; cursor and zoom are shared. */

import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';

import { useParameter, useWorkspace } from '../app/context';
import { Button } from '../parts/button';
import { Empty } from '../parts/state';
import { arrange, movedTo, partsOf } from './arrange';
import { BoardChart, type ChartActions } from './boardChart';
import { BoardTools } from './boardTools';
import { ChartChooser } from './chartChooser';
import { EnlargedChart } from './enlargedChart';
import { MergeDialog } from './mergeDialog';
import type { Axis, ChartData, CurveChartProps, Zoom } from './series';
import { axesOf, usedAxis } from './series';
import { type Board, useBoard } from './useBoard';
import { useShared } from './useShared';

/** More charts below a heading of their own, such as those of the system; they can be pinned and hidden, too. */
export interface ChartSection {
  readonly title: string;
  readonly charts: readonly ChartData[];
  readonly note?: string;
}

export interface ChartBoardProps {
  readonly charts: readonly ChartData[];
  readonly sections?: readonly ChartSection[];
  /** Before the names of the address's parameters; for a second board at the same address. */
  readonly parameter?: string;
  readonly loadFull?: CurveChartProps['loadFull'];
  /** The name of exported files begins with it, such as `experiment_7`. */
  readonly filePrefix?: string;
  /** Told when the stretch that is shown changes, so that it can be loaded in full. */
  readonly onZoom?: (zoom: Zoom, axis: Axis) => void;
  /** In the row of tools. */
  readonly tools?: ComponentChildren;
  /** Below the tools. */
  readonly notes?: ComponentChildren;
}

export function ChartBoard(props: ChartBoardProps) {
  const { charts, sections = [], onZoom } = props;
  const board = useBoard(props.parameter);
  const { state, change } = board;
  const [enlarged, setEnlarged] = useParameter(
    `${props.parameter ?? ''}large`,
    '',
    { push: true }
  );
  const [merging, setMerging] = useState<string | null>(null);
  const all = useMemo(
    () => [...charts, ...sections.flatMap(each => each.charts)],
    [charts, sections]
  );
  const arranged = useMemo(() => arrange(all, state), [all, state]);
  const { axis } = state.settings;
  const { zoom } = useShared(board.syncOf(axis));
  useEffect(() => onZoom?.(zoom, axis), [zoom, axis, onZoom]);

  const ofSection = new Map(
    sections.flatMap(each => each.charts.map(chart => [chart.key, each]))
  );
  const groups = [
    { title: 'Pinned', note: undefined, charts: arranged.pinned },
    {
      title: sections.length > 0 || arranged.pinned.length > 0 ? 'Metrics' : '',
      note: undefined,
      charts: arranged.others.filter(({ key }) => !ofSection.has(key))
    },
    ...sections.map(section => ({
      title: section.title,
      note: section.note,
      charts: arranged.others.filter(
        ({ key }) => ofSection.get(key) === section
      )
    }))
  ].filter(group => group.charts.length > 0);
  const draw = (chart: ChartData) => drawn(chart, props, board);
  const shown = groups.flatMap(group => group.charts);
  const actions: ChartActions = {
    enlarge: key => setEnlarged(key),
    merge: setMerging,
    split: key => {
      const chart =
        all.length > 0 ? shown.find(each => each.key === key) : null;
      const parts = chart ? partsOf(chart, state.merged) : null;
      change({ merged: state.merged.filter(keys => keys !== parts) });
    },
    toggle: (what, key) => change({ [what]: toggled(state[what], key) }),
    move: (key, by) => {
      const group = groups.find(({ charts: found }) =>
        found.some(each => each.key === key)
      );
      const at = group?.charts.findIndex(each => each.key === key) ?? -1;
      const target = group?.charts[at + by];
      if (target) {
        moveBefore(board, arranged, key, target.key, by > 0);
      }
    },
    drop: (key, target) => moveBefore(board, arranged, key, target, null)
  };
  const large = shown.find(({ key }) => key === enlarged);
  const first = shown.find(({ key }) => key === merging);
  return (
    <div class="det-board">
      <BoardTools state={state} axes={axesOf(charts)} onChange={change}>
        <ChartChooser
          charts={[...shown, ...arranged.hidden]}
          state={state}
          onChange={change}
        />
        {props.tools}
        <LinkButton />
      </BoardTools>
      {props.notes}
      {groups.map(group => (
        <section key={group.title} aria-label={group.title || 'Charts'}>
          {group.title && <h2 class="det-board-heading">{group.title}</h2>}
          {group.note && <p class="det-curve-note">{group.note}</p>}
          <div class="det-board-grid">
            {group.charts.map(chart => (
              <BoardChart
                key={chart.key}
                chart={draw(chart)}
                pinned={state.pinned.includes(chart.key)}
                wide={state.wide.includes(chart.key)}
                merged={partsOf(chart, state.merged) !== null}
                actions={actions}
              />
            ))}
          </div>
        </section>
      ))}
      {shown.length === 0 && (
        <Empty title={emptyTitle(all.length, arranged.hidden.length)}>
          {all.length > 0 && (
            <p>
              Choose charts above, or change the words they are searched by.
            </p>
          )}
        </Empty>
      )}
      {large && (
        <EnlargedChart
          chart={draw(large)}
          onClose={() => setEnlarged('', { push: false })}
        />
      )}
      {first && (
        <MergeDialog
          first={first}
          parts={partsOf(first, state.merged) ?? [first.key]}
          charts={all}
          onClose={() => setMerging(null)}
          onMerge={keys => {
            const old = partsOf(first, state.merged);
            const kept = state.merged.filter(
              each => each !== old && !each.some(key => keys.includes(key))
            );
            change({ merged: keys.length > 1 ? [...kept, keys] : kept });
            setMerging(null);
          }}
        />
      )}
    </div>
  );
}

/** What is shown as a link: in JupyterLab the browser's own address does not tell it. */
function LinkButton() {
  const { host, toasts } = useWorkspace();
  const copy = async () => {
    const { navigation } = host;
    const link = new URL(navigation.href(navigation.current), location.href);
    try {
      await navigator.clipboard.writeText(link.href);
      toasts.say('A link to these charts is on the clipboard.');
    } catch {
      toasts.error(
        `This browser does not let pages copy. The link: ${link.href}`
      );
    }
  };
  return (
    <Button icon="copy" onClick={() => void copy()}>
      Copy link
    </Button>
  );
}

function drawn(
  chart: ChartData,
  { loadFull, filePrefix }: ChartBoardProps,
  { state, syncOf }: Board
): CurveChartProps {
  return {
    ...chart,
    settings: state.settings,
    sync: syncOf(usedAxis(chart.series, state.settings.axis)),
    loadFull,
    fileName: filePrefix ? `${filePrefix}_${chart.title}` : chart.title
  };
}

/** Put a chart before another, or behind it; null: behind where it comes from the left. */
function moveBefore(
  { state, change }: Board,
  { pinned, others, hidden }: ReturnType<typeof arrange>,
  key: string,
  target: string,
  behind: boolean | null
): void {
  const isPinned = state.pinned.includes(key);
  const list = isPinned ? pinned : [...others, ...hidden];
  const from = list.findIndex(chart => chart.key === key);
  const to = list.findIndex(chart => chart.key === target);
  if (from < 0 || to < 0 || from === to) {
    return;
  }
  const after = behind ?? from < to;
  const rest = list.filter(chart => chart.key !== key);
  const place = rest.findIndex(chart => chart.key === target) + (after ? 1 : 0);
  const order = movedTo(list, key, place);
  change(isPinned ? { pinned: order } : { order });
}

function toggled(keys: readonly string[], key: string): string[] {
  return keys.includes(key)
    ? keys.filter(each => each !== key)
    : [...keys, key];
}

function emptyTitle(all: number, hidden: number): string {
  return all === 0
    ? 'There are no charts yet.'
    : hidden === all
      ? 'All charts are hidden.'
      : 'No chart has such a name.';
}
