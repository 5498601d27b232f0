/** A chart of curves, with its legend, its values at the cursor and its menu. */

import type { ComponentChildren } from 'preact';
import {
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState
} from 'preact/hooks';

import { formatValue, shortened } from '../../shared/format';
import { IconButton } from '../parts/button';
import type { MenuItem } from '../parts/menu';
import { ChartLegend } from './chartLegend';
import { ChartMenu, shortTitle } from './chartMenu';
import { CurvePlot, type PlotState } from './curvePlot';
import { hitsAt, stopsOf } from './hover';
import { HoverBox, placeText } from './hoverBox';
import { changeByKey } from './keys';
import { reachOf } from './overlay';
import { xRange } from './prepare';
import { AXIS_NAMES, type CurveChartProps } from './series';
import { ChartSync } from './sync';
import { xTitle } from './ticks';
import { useShared } from './useShared';

const SPOKEN = 6;

interface Props extends CurveChartProps {
  /** Before the title: what a chart is dragged by. */
  readonly handle?: ComponentChildren;
  /** Buttons beside the menu. */
  readonly tools?: ComponentChildren;
  /** First in the menu. */
  readonly items?: readonly MenuItem[];
}

export function CurveChart(props: Props) {
  const { title, series, settings, height, handle, tools, items = [] } = props;
  const own = useMemo(() => new ChartSync(), []);
  const sync = props.sync ?? own;
  const place = useRef<HTMLDivElement>(null);
  const [plot, setPlot] = useState<CurvePlot | null>(null);
  const [state, setState] = useState<PlotState | null>(null);
  const [inside, setInside] = useState(false);
  const [focused, setFocused] = useState(false);

  useLayoutEffect(() => {
    const made = new CurvePlot(place.current!, setState, setInside);
    setPlot(made);
    return () => made.dispose();
  }, []);
  useEffect(() => {
    plot?.update({ ...props, sync });
  }, [
    plot,
    sync,
    title,
    series,
    settings,
    height,
    props.unit,
    props.format,
    props.least
  ]);

  const hasNumbers = state?.drawn.some(({ y, raw }) =>
    [y, raw ?? []].some(values => values.some(value => value !== null))
  );
  const notes = state === null ? [] : notesOf(state, props);
  return (
    <figure class="det-curve-chart" aria-label={shortTitle(title)}>
      <figcaption class="det-curve-caption">
        {handle}
        <span class="det-curve-title" title={shortTitle(title)}>
          {title}
        </span>
        <ZoomReset sync={sync} title={title} />
        {tools}
        <ChartMenu
          chart={{ ...props, sync }}
          state={state}
          sync={sync}
          items={items}
        />
      </figcaption>
      <div class="det-curve-area">
        <PlotPlace
          place={place}
          title={title}
          state={state}
          sync={sync}
          focused={focused}
          onFocus={setFocused}
        />
        {plot !== null && state !== null && (inside || focused) && (
          <HoverBox
            plot={plot}
            state={state}
            sync={sync}
            format={props.format}
          />
        )}
      </div>
      {state !== null && series.length === 0 && (
        <p class="det-curve-note">There are no values yet.</p>
      )}
      {state !== null && series.length > 0 && !hasNumbers && (
        <p class="det-curve-note">There are no numbers to draw.</p>
      )}
      {notes.map(note => (
        <p key={note} class="det-curve-note">
          {note}
        </p>
      ))}
      {state !== null && (
        <ChartLegend state={state} sync={sync} format={props.format} />
      )}
    </figure>
  );
}

function ZoomReset({ sync, title }: { sync: ChartSync; title: string }) {
  const { zoom } = useShared(sync);
  return zoom === null ? null : (
    <IconButton
      icon="reset"
      label={`Show all of ${shortTitle(title)}`}
      onClick={() => sync.set({ zoom: null })}
    />
  );
}

interface PlotPlaceProps {
  readonly place: { current: HTMLDivElement | null };
  readonly title: string;
  readonly state: PlotState | null;
  readonly sync: ChartSync;
  readonly focused: boolean;
  readonly onFocus: (focused: boolean) => void;
}

/** Where uPlot draws. For the keyboard it is a slider over the x axis, whose value in words is what the curves have there. */
function PlotPlace({
  place,
  title,
  state,
  sync,
  focused,
  onFocus
}: PlotPlaceProps) {
  const { cursor } = useShared(sync);
  const from = state?.x[0] ?? 0;
  const to = state?.x[1] ?? 1;
  return (
    <div
      class="det-curve-keys"
      role="slider"
      tabIndex={0}
      // Else the arrow keys move through the cells of the notebook.
      data-lm-suppress-shortcuts="true"
      aria-label={`${shortTitle(title)}, over ${state ? xTitle(state.axis, null) : 'batches'}`}
      aria-valuemin={from}
      aria-valuemax={to}
      {...(focused && state ? spoken(state, cursor) : quiet(state, to))}
      onFocus={() => onFocus(true)}
      onBlur={() => {
        onFocus(false);
        sync.set({ cursor: null });
      }}
      onKeyDown={event => {
        const change =
          state === null || event.ctrlKey || event.metaKey || event.altKey
            ? null
            : changeByKey(event, {
                cursor: sync.shared.cursor,
                shown: state.x,
                all: xRange(state.drawn, null, false),
                stops: stopsOf(state.drawn)
              });
        if (change !== null) {
          event.preventDefault();
          event.stopPropagation();
          sync.set(change);
        }
      }}
    >
      <div ref={place} class="det-curve-plot" />
    </div>
  );
}

function spoken(state: PlotState, cursor: number | null) {
  return cursor === null
    ? quiet(state, state.x[1])
    : { 'aria-valuenow': cursor, 'aria-valuetext': wordsAt(state, cursor) };
}

function quiet(state: PlotState | null, to: number) {
  const words = (state?.drawn ?? [])
    .toReversed()
    .slice(0, SPOKEN)
    .map(
      ({ series, y }) =>
        `${shortened(series.label)} ${formatValue(series.last ?? y.findLast(value => value !== null))}`
    );
  return {
    'aria-valuenow': to,
    'aria-valuetext':
      words.length > 0 ? `last values: ${words.join(', ')}` : 'no values'
  };
}

function wordsAt(state: PlotState, cursor: number): string {
  const hits = hitsAt(state.drawn, cursor, reachOf(state.x), state.x);
  const words = hits
    .slice(0, SPOKEN)
    .map(
      ({ drawn, value }) =>
        `${shortened(drawn.series.label)} ${formatValue(value)}`
    );
  return `${placeText(state, cursor, hits)}: ${words.join(', ') || 'no values'}`;
}

/** What a reader has to know of what is not drawn. */
function notesOf(
  state: PlotState,
  { settings, series }: CurveChartProps
): string[] {
  const omitted = state.drawn.reduce((sum, each) => sum + each.omitted, 0);
  const infinite = state.drawn.reduce(
    (sum, each) => sum + each.infinities.length,
    0
  );
  const found: string[] = [];
  if (omitted > 0) {
    found.push(
      `${omitted.toLocaleString('en')} ${omitted === 1 ? 'point' : 'points'} at or below zero: a logarithmic axis has no place for them.`
    );
  }
  if (infinite > 0) {
    found.push(
      `${infinite.toLocaleString('en')} infinite ${infinite === 1 ? 'value' : 'values'}, marked by triangles at the edge.`
    );
  }
  if (series.length > 0 && state.axis !== settings.axis) {
    found.push(
      `${AXIS_NAMES[settings.axis]} is not known of these curves: they are drawn over ${AXIS_NAMES[state.axis].toLowerCase()}.`
    );
  }
  return found;
}
