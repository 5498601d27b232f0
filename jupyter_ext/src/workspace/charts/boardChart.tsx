/** A chart on a board: dragged by its handle or moved by arrow keys, drawn once it is near to be seen. */

import { useEffect, useRef, useState } from 'preact/hooks';

import { Icon } from '../parts/icon';
import { IconButton } from '../parts/button';
import { shortTitle } from './chartMenu';
import { CurveChart } from './curveChart';
import type { CurveChartProps } from './series';

export interface ChartActions {
  enlarge(key: string): void;
  merge(key: string): void;
  split(key: string): void;
  toggle(what: 'pinned' | 'hidden' | 'wide', key: string): void;
  move(key: string, by: 1 | -1): void;
  drop(key: string, target: string): void;
}

export interface BoardChartProps {
  readonly chart: CurveChartProps;
  readonly pinned: boolean;
  readonly wide: boolean;
  readonly merged: boolean;
  readonly actions: ChartActions;
}

const DRAGGED = 'application/x-det-chart';
const NEAR = '300px';
const WIDE_HEIGHT = 320;

export function BoardChart({
  chart,
  pinned,
  wide,
  merged,
  actions
}: BoardChartProps) {
  const root = useRef<HTMLDivElement>(null);
  const near = useNear(root);
  const [over, setOver] = useState(false);
  const { key } = chart;
  const name = shortTitle(chart.title);
  return (
    <div
      ref={root}
      class="det-board-chart"
      data-wide={wide}
      data-over={over}
      onDragOver={event => {
        if (event.dataTransfer?.types.includes(DRAGGED)) {
          event.preventDefault();
          setOver(true);
        }
      }}
      onDragLeave={() => setOver(false)}
      onDrop={event => {
        setOver(false);
        const dragged = event.dataTransfer?.getData(DRAGGED) ?? '';
        if (dragged !== '') {
          event.preventDefault();
          actions.drop(dragged, key);
        }
      }}
    >
      {near && (
        <CurveChart
          {...chart}
          height={wide ? WIDE_HEIGHT : chart.height}
          handle={
            <button
              type="button"
              class="det-board-handle"
              draggable
              aria-label={`Move ${name}: drag, or arrow keys`}
              title="Drag to another place, or move by arrow keys"
              data-lm-suppress-shortcuts="true"
              onDragStart={event => {
                event.dataTransfer?.setData(DRAGGED, key);
                if (root.current) {
                  event.dataTransfer?.setDragImage(root.current, 10, 10);
                }
              }}
              onKeyDown={event => {
                const by = MOVES[event.key];
                if (by !== undefined) {
                  event.preventDefault();
                  const handle = event.currentTarget;
                  actions.move(key, by);
                  // Moved in the page, it has lost the keyboard.
                  requestAnimationFrame(() => handle.focus());
                }
              }}
            >
              <Icon name="drag" />
            </button>
          }
          tools={
            <IconButton
              icon="pin"
              label={pinned ? `Unpin ${name}` : `Pin ${name} to the top`}
              pressed={pinned}
              onClick={() => actions.toggle('pinned', key)}
            />
          }
          items={[
            {
              label: 'Enlarge',
              icon: 'fullscreen',
              onChoose: () => actions.enlarge(key)
            },
            {
              label: 'Full width',
              checked: wide,
              onChoose: () => actions.toggle('wide', key)
            },
            {
              label: 'Merge with other metrics…',
              onChoose: () => actions.merge(key)
            },
            ...(merged
              ? [
                  {
                    label: 'Split into its metrics',
                    onChoose: () => actions.split(key)
                  }
                ]
              : []),
            { label: 'Hide', onChoose: () => actions.toggle('hidden', key) }
          ]}
        />
      )}
    </div>
  );
}

const MOVES: Readonly<Record<string, 1 | -1>> = {
  ArrowLeft: -1,
  ArrowUp: -1,
  ArrowRight: 1,
  ArrowDown: 1
};

/** Whether an element has ever been near to be seen: so a board of a hundred charts opens at once. */
function useNear(root: { current: HTMLElement | null }): boolean {
  const [near, setNear] = useState(typeof IntersectionObserver === 'undefined');
  useEffect(() => {
    if (near || root.current === null) {
      return undefined;
    }
    const observer = new IntersectionObserver(
      entries => {
        if (entries.some(entry => entry.isIntersecting)) {
          setNear(true);
        }
      },
      { rootMargin: NEAR }
    );
    observer.observe(root.current);
    return () => observer.disconnect();
  }, [near]);
  return near;
}
