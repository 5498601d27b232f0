/** The table: a grid of which only the rows are drawn that are seen; the arrow keys move in it. */

import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

import type { ExperimentId } from '../../shared/model';
import type { Column } from './columns';
import { GroupRow } from './groupRow';
import { scaleOf } from './groupStatistics';
import { type Item, shift } from './items';
import type { Row } from './rows';
import { TableHead, type TableHeadProps, widthOf } from './tableHead';
import { type RowHandlers, TableRow } from './tableRow';
import type { Widths } from './storage';
import { useVirtualRows } from './useVirtualRows';
import { useId } from '../parts/useId';

const ROW_HEIGHT = 36;
const CARD_HEIGHT = 68;
const HEAD_HEIGHT = 34;
/** With less width than that, rows are cards. */
export const NARROW = 560;

export interface TableProps {
  items: readonly Item[];
  /** These are rows of the search before, since the present one cannot be read. */
  stale: boolean;
  rows: ReadonlyMap<ExperimentId, Row>;
  columns: readonly Column[];
  head: Omit<TableHeadProps, 'columns'>;
  selected: ReadonlySet<ExperimentId>;
  /** What is grouped, and what of it is averaged. */
  by: string;
  measure: string;
  /** The place of the keyboard in the table, by key. */
  active: string | null;
  /** Another question: the table begins at its top. */
  question: string;
  width: number;
  handlers: RowHandlers;
  onSee: (ids: readonly ExperimentId[]) => void;
  onActive: (key: string) => void;
  onToggleGroup: (key: string) => void;
  onSelectAll: () => void;
  onEscape: () => void;
}

export function Table(props: TableProps) {
  const { items, rows, columns, selected, active, handlers, question } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const prefix = useId();
  const card = props.width > 0 && props.width < NARROW;
  const height = card ? CARD_HEIGHT : ROW_HEIGHT;
  const head = card ? 0 : HEAD_HEIGHT;
  const virtualizer = useVirtualRows(scroller, items.length, height, head);
  useStablePlace(scroller, items, question, height);

  const drawn = virtualizer
    .getVirtualItems()
    .filter(({ index }) => index < items.length);
  const seen = drawn.flatMap(({ index }) => {
    const item = items[index]!;
    return item.kind === 'row' ? [item.id] : [];
  });
  const seenKey = seen.join();
  useEffect(() => props.onSee(seen), [seenKey]);

  const at = items.findIndex(({ key }) => key === active);
  const shown = drawn.some(({ index }) => index === at);
  const groups = items.flatMap(item =>
    item.kind === 'group' ? [item.group] : []
  );
  const scale = scaleOf(groups);

  const go = (index: number, event: KeyboardEvent) => {
    const target = Math.min(Math.max(index, 0), items.length - 1);
    const item = items[target];
    if (item !== undefined) {
      props.onActive(item.key);
      virtualizer.scrollToIndex(target, { align: 'auto' });
      if (event.shiftKey && item.kind === 'row') {
        handlers.select(item.id, true);
      }
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) {
      return; // a control in the table has the keyboard
    }
    const item = items[at];
    const page = Math.max(
      Math.floor((scroller.current?.clientHeight ?? 0) / height) - 2,
      1
    );
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: items.length - 1
    };
    const to = moves[event.key];
    if (to !== undefined) {
      event.preventDefault();
      go(to, event);
    } else if ((event.ctrlKey || event.metaKey) && event.key === 'a') {
      event.preventDefault();
      props.onSelectAll();
    } else if (event.key === 'Escape') {
      props.onEscape();
    } else if (item !== undefined) {
      onItemKey(event, item);
    }
  };
  const onItemKey = (event: KeyboardEvent, item: Item) => {
    if (item.kind === 'group') {
      const toggles =
        event.key === 'Enter' ||
        event.key === ' ' ||
        event.key === (item.open ? 'ArrowLeft' : 'ArrowRight');
      if (toggles) {
        event.preventDefault();
        props.onToggleGroup(item.key);
      }
      return;
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      handlers.open(item.id, new MouseEvent('click'));
    } else if (event.key === ' ') {
      event.preventDefault();
      handlers.select(item.id, event.shiftKey);
    } else if (
      event.key === 'ContextMenu' ||
      (event.shiftKey && event.key === 'F10')
    ) {
      event.preventDefault();
      const element = document.getElementById(`${prefix}-${at}`);
      const place = (
        element ?? (event.currentTarget as HTMLElement)
      ).getBoundingClientRect();
      handlers.menu(item.id, place.left + 40, place.top + height);
    }
  };

  const layout = card ? CARD_LAYOUT : layoutOf(columns, props.head.widths);
  return (
    <div
      ref={scroller}
      role={props.by === '' ? 'grid' : 'treegrid'}
      class="det-list-table"
      data-card={card}
      data-stale={props.stale}
      tabIndex={0}
      aria-label="Experiments"
      aria-multiselectable={true}
      aria-rowcount={items.length + 1}
      aria-activedescendant={shown ? `${prefix}-${at}` : undefined}
      style={layout}
      onKeyDown={onKeyDown}
      onFocus={event => {
        const first = drawn.find(({ index }) => index >= 0);
        if (event.target === event.currentTarget && at < 0 && first) {
          props.onActive(items[first.index]!.key);
        }
      }}
    >
      {!card && <TableHead {...props.head} columns={columns} />}
      <div
        role="rowgroup"
        class="det-list-rows"
        style={{ height: `${items.length * height}px` }}
      >
        {drawn.map(({ index, start }) => {
          const item = items[index]!;
          const place = {
            number: index + 2,
            top: start - head,
            height,
            elementId: `${prefix}-${index}`,
            active: index === at
          };
          return item.kind === 'row' ? (
            <TableRow
              key={item.key}
              {...place}
              id={item.id}
              row={rows.get(item.id)}
              columns={columns}
              card={card}
              inGroup={props.by !== ''}
              selected={selected.has(item.id)}
              handlers={handlers}
            />
          ) : (
            <GroupRow
              key={item.key}
              {...place}
              group={item.group}
              open={item.open}
              by={props.by}
              measure={props.measure}
              scale={scale}
              narrow={card}
              onToggle={() => {
                props.onActive(item.key);
                props.onToggleGroup(item.key);
              }}
            />
          );
        })}
      </div>
    </div>
  );
}

const CARD_LAYOUT = {
  '--det-list-columns': '32px minmax(0, 1fr) 36px',
  '--det-list-width': '0px'
};

/** The widths of the columns as the style sheet takes them; the name has what is left over. */
function layoutOf(columns: readonly Column[], widths: Widths) {
  const all = columns.map(column => widthOf(column, widths));
  const tracks = all.map((width, at) =>
    at === 0 && widths.name === undefined
      ? `minmax(${width}px, 1fr)`
      : `${width}px`
  );
  return {
    '--det-list-columns': ['32px', ...tracks, '36px'].join(' '),
    '--det-list-width': `${all.reduce((sum, width) => sum + width, 68)}px`
  };
}

/** What is seen stays where it is when rows come or go above it; another question begins at the top. */
function useStablePlace(
  scroller: { readonly current: HTMLElement | null },
  items: readonly Item[],
  question: string,
  height: number
): void {
  const before = useRef({ items, question });
  useLayoutEffect(() => {
    const { items: old, question: asked } = before.current;
    before.current = { items, question };
    const element = scroller.current;
    if (element === null || old === items) {
      return;
    }
    if (asked !== question) {
      element.scrollTop = 0;
    } else if (element.scrollTop > 0) {
      const first = Math.floor(element.scrollTop / height);
      const rows = shift(old, items, first);
      if (rows !== 0) {
        element.scrollTop += rows * height;
      }
    }
  }, [items, question]);
}
