/** How all charts of a board are drawn: axis, smoothing, scales. */

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { Button } from '../parts/button';
import { Checkbox, Select, TextField } from '../parts/field';
import { Popover } from '../parts/menu';
import {
  type BoardState,
  bound,
  LARGEST_WEIGHT,
  LARGEST_WINDOW
} from './boardState';
import {
  type Axis,
  AXIS_NAMES,
  type ChartSettings,
  type Smoothing
} from './series';
import { smooths } from './smoothing';
import { useId } from '../parts/useId';

export interface BoardToolsProps {
  readonly state: BoardState;
  readonly axes: readonly Axis[];
  readonly onChange: (change: Partial<BoardState>) => void;
  readonly children?: ComponentChildren;
}

export function BoardTools({
  state,
  axes,
  onChange,
  children
}: BoardToolsProps) {
  const { settings } = state;
  const set = (change: Partial<ChartSettings>, more?: Partial<BoardState>) =>
    onChange({ ...more, settings: { ...settings, ...change } });
  const offered = axes.includes(settings.axis)
    ? axes
    : [...axes, settings.axis];
  return (
    <div class="det-board-tools" role="group" aria-label="How charts are drawn">
      <Select
        label="X axis"
        value={settings.axis}
        choices={offered.map(value => ({ value, label: AXIS_NAMES[value] }))}
        // A stretch of batches is no stretch of hours.
        onChange={value => set({ axis: value as Axis }, { zoom: null })}
      />
      <SmoothingTools
        smoothing={settings.smoothing}
        onChange={smoothing => set({ smoothing })}
      />
      <Checkbox
        label="Log x"
        checked={settings.logX}
        onChange={logX => set({ logX })}
      />
      <Checkbox
        label="Log y"
        checked={settings.logY}
        onChange={logY => set({ logY })}
      />
      <Checkbox
        label="Ignore outliers"
        checked={settings.ignoreOutliers}
        onChange={ignoreOutliers => set({ ignoreOutliers })}
      />
      <Popover label={boundsText(settings)}>
        {() => <Bounds settings={settings} onChange={set} />}
      </Popover>
      {state.zoom !== null && (
        <Button icon="reset" onClick={() => onChange({ zoom: null })}>
          Reset zoom
        </Button>
      )}
      {children}
    </div>
  );
}

function boundsText({ minimum, maximum }: ChartSettings): string {
  return minimum === null && maximum === null
    ? 'Y range'
    : `Y range: ${minimum ?? 'data'} to ${maximum ?? 'data'}`;
}

interface BoundsProps {
  readonly settings: ChartSettings;
  readonly onChange: (change: Partial<ChartSettings>) => void;
}

function Bounds({ settings, onChange }: BoundsProps) {
  const [low, setLow] = useState(text(settings.minimum));
  const [high, setHigh] = useState(text(settings.maximum));
  const [minimum, maximum] = [bound(low), bound(high)];
  const problem = boundsProblem(low, high, settings.logY);
  const take = (from: string, to: string) => {
    if (boundsProblem(from, to, settings.logY) === undefined) {
      onChange({ minimum: bound(from), maximum: bound(to) });
    }
  };
  return (
    <div class="det-board-bounds">
      <TextField
        label="From"
        inputMode="decimal"
        value={low}
        placeholder="as the data"
        problem={problem}
        onChange={value => {
          setLow(value);
          take(value, high);
        }}
      />
      <TextField
        label="To"
        inputMode="decimal"
        value={high}
        placeholder="as the data"
        onChange={value => {
          setHigh(value);
          take(low, value);
        }}
      />
      <Button
        disabled={minimum === null && maximum === null}
        onClick={() => {
          setLow('');
          setHigh('');
          onChange({ minimum: null, maximum: null });
        }}
      >
        As the data
      </Button>
    </div>
  );
}

/** What is wrong with the ends of an axis as they are typed. */
export function boundsProblem(
  low: string,
  high: string,
  logarithmic: boolean
): string | undefined {
  const wrong = [low, high].find(
    each => each.trim() !== '' && bound(each) === null
  );
  if (wrong !== undefined) {
    return `“${wrong.slice(0, 20)}” is not a number.`;
  }
  const [from, to] = [bound(low), bound(high)];
  if (from !== null && to !== null && from >= to) {
    return 'From has to be smaller than to.';
  }
  return logarithmic && [from, to].some(each => each !== null && each <= 0)
    ? 'A logarithmic axis has no place for zero and below.'
    : undefined;
}

function text(value: number | null): string {
  return value === null ? '' : String(value);
}

interface SmoothingProps {
  readonly smoothing: Smoothing;
  readonly onChange: (smoothing: Smoothing) => void;
}

const STARTS: Readonly<Record<Smoothing['kind'], Smoothing>> = {
  none: { kind: 'none' },
  ema: { kind: 'ema', weight: 0.6 },
  window: { kind: 'window', points: 11 }
};

function SmoothingTools({ smoothing, onChange }: SmoothingProps) {
  const id = useId();
  const amount = amountOf(smoothing);
  // While the slider moves the address stays as it is.
  const [draft, setDraft] = useState(amount);
  useEffect(() => setDraft(amount), [amount]);
  const ema = smoothing.kind === 'ema';
  return (
    <span class="det-board-smoothing">
      <Select
        label="Smoothing"
        value={smoothing.kind}
        choices={[
          { value: 'none', label: 'None' },
          { value: 'ema', label: 'Exponential average' },
          { value: 'window', label: 'Window' }
        ]}
        onChange={kind => onChange(STARTS[kind as Smoothing['kind']])}
      />
      {smoothing.kind !== 'none' && (
        <>
          <label for={id} class="det-hidden">
            {ema ? 'Weight of what was before' : 'Points of the window'}
          </label>
          <input
            id={id}
            class="det-board-slider"
            type="range"
            data-lm-suppress-shortcuts="true"
            min={ema ? 0 : 1}
            max={ema ? LARGEST_WEIGHT : 101}
            step={ema ? 0.001 : 2}
            value={draft}
            onInput={event => setDraft(Number(event.currentTarget.value))}
            onChange={event =>
              onChange(withAmount(smoothing, Number(event.currentTarget.value)))
            }
          />
          <output for={id} class="det-board-amount">
            {ema ? draft.toFixed(2) : `${draft} points`}
          </output>
          {!smooths(smoothing) && <span>(no change)</span>}
        </>
      )}
    </span>
  );
}

function amountOf(smoothing: Smoothing): number {
  switch (smoothing.kind) {
    case 'none':
      return 0;
    case 'ema':
      return smoothing.weight;
    case 'window':
      return smoothing.points;
  }
}

function withAmount({ kind }: Smoothing, amount: number): Smoothing {
  switch (kind) {
    case 'none':
      return { kind };
    case 'ema':
      return { kind, weight: Math.min(amount, LARGEST_WEIGHT) };
    case 'window':
      return { kind, points: Math.min(Math.round(amount), LARGEST_WINDOW) };
  }
}
