/** The head of the table: a click sorts, dragging moves a column, its edge changes the width; all by keyboard, too. */

import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { Icon } from '../parts/icon';
import { type Column, moved, readSort } from './columns';
import { limited, type Widths } from './storage';

export interface TableHeadProps {
  columns: readonly Column[];
  widths: Widths;
  sort: string;
  all: 'none' | 'some' | 'all';
  onSort: (column: Column) => void;
  onSelectAll: () => void;
  onColumns: (columns: readonly Column[]) => void;
  /** `done` when the edge is let go. */
  onWidth: (key: string, width: number, done: boolean) => void;
}

const STEP = 16;
const DRAGGED = 'application/x-det-native-column';

export function widthOf(column: Column, widths: Widths): number {
  return widths[column.key] ?? column.width;
}

export function TableHead(props: TableHeadProps) {
  const { columns, all, onSelectAll } = props;
  const tick = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (tick.current) {
      tick.current.indeterminate = all === 'some';
    }
  }, [all]);
  return (
    <div role="row" class="det-list-head" aria-rowindex={1}>
      <div role="columnheader" class="det-list-cell det-list-tick">
        <input
          ref={tick}
          type="checkbox"
          aria-label="Select all that match"
          title="Select all that match"
          checked={all === 'all'}
          onClick={onSelectAll}
        />
      </div>
      {columns.map((column, at) => (
        <HeadCell key={column.key} {...props} column={column} at={at} />
      ))}
      <div role="columnheader" class="det-list-cell det-list-more">
        <span class="det-hidden">Actions</span>
      </div>
    </div>
  );
}

function HeadCell({
  column,
  at,
  columns,
  sort,
  widths,
  onSort,
  onColumns,
  onWidth
}: TableHeadProps & { column: Column; at: number }) {
  const sorted = readSort(sort);
  const isSorted = sorted !== null && sorted.order === column.order;
  const down = isSorted && sorted.descending;
  const move = (to: number) => onColumns(moved(columns, column.key, to));
  const byKeys = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = {
      ArrowLeft: -1,
      ArrowRight: 1
    };
    const step = steps[event.key];
    if (step !== undefined && event.altKey && event.shiftKey && at > 0) {
      event.preventDefault();
      event.stopPropagation();
      move(at + step);
    }
  };
  const sortable = column.order !== null;
  return (
    <div
      role="columnheader"
      class={`det-list-cell${at === 0 ? ' det-list-name' : ''}`}
      data-number={column.number}
      aria-sort={isSorted ? (down ? 'descending' : 'ascending') : undefined}
      draggable={at > 0}
      onDragStart={event => event.dataTransfer?.setData(DRAGGED, column.key)}
      onDragOver={event => {
        if (event.dataTransfer?.types.includes(DRAGGED)) {
          event.preventDefault();
        }
      }}
      onDrop={event => {
        const key = event.dataTransfer?.getData(DRAGGED);
        if (key) {
          event.preventDefault();
          onColumns(moved(columns, key, at));
        }
      }}
    >
      <button
        type="button"
        class="det-list-sort"
        aria-disabled={!sortable}
        aria-keyshortcuts={
          at > 0 ? 'Alt+Shift+ArrowLeft Alt+Shift+ArrowRight' : undefined
        }
        title={`${column.label.slice(0, 300)}${sortable ? '' : ': the master cannot sort by this'}${at > 0 ? '\nDrag to move it, or press Alt, Shift and an arrow key.' : ''}`}
        onKeyDown={byKeys}
        onClick={() => sortable && onSort(column)}
      >
        <span class="det-list-text">{column.label.slice(0, 200)}</span>
        {isSorted && <Icon name={down ? 'down' : 'up'} />}
      </button>
      <Edge
        label={`Width of ${column.label.slice(0, 100)}`}
        width={widthOf(column, widths)}
        onWidth={(width, done) => onWidth(column.key, width, done)}
      />
    </div>
  );
}

function Edge({
  label,
  width,
  onWidth
}: {
  label: string;
  width: number;
  onWidth: (width: number, done: boolean) => void;
}) {
  const begin = useRef<{ x: number; width: number } | null>(null);
  type Pointer = JSX.TargetedPointerEvent<HTMLDivElement>;
  const at = ({ clientX }: Pointer) =>
    limited(begin.current!.width + clientX - begin.current!.x);
  return (
    <div
      role="separator"
      class="det-list-edge"
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={width}
      aria-valuemin={48}
      aria-valuemax={1200}
      tabIndex={0}
      draggable={true}
      onDragStart={event => {
        event.preventDefault(); // the edge is drawn by the pointer, the column stays
        event.stopPropagation();
      }}
      onPointerDown={event => {
        begin.current = { x: event.clientX, width };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={event => {
        if (begin.current) {
          onWidth(at(event), false);
        }
      }}
      onPointerUp={event => {
        if (begin.current) {
          onWidth(at(event), true);
          begin.current = null;
        }
      }}
      onKeyDown={event => {
        const steps: Readonly<Record<string, number>> = {
          ArrowLeft: -STEP,
          ArrowRight: STEP
        };
        const step = steps[event.key];
        if (step !== undefined) {
          event.preventDefault();
          onWidth(limited(width + step), true);
        }
      }}
    />
  );
}
