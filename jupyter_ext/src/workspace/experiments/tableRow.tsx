/** A row of the table. It is drawn again only when something of it has changed. */

import { Component } from 'preact';

import type { ExperimentId } from '../../shared/model';
import { IconButton } from '../parts/button';
import { Card, CellContent } from './cells';
import type { Column } from './columns';
import { nameOf, type Row } from './rows';

/** What can be done with a row; the same functions as long as the table is there. */
export interface RowHandlers {
  open(id: ExperimentId, event: MouseEvent): void;
  select(id: ExperimentId, extend: boolean): void;
  menu(id: ExperimentId, x: number, y: number): void;
}

export interface TableRowProps {
  id: ExperimentId;
  row: Row | undefined;
  /** In the table, its head counted. */
  number: number;
  top: number;
  height: number;
  elementId: string;
  columns: readonly Column[];
  card: boolean;
  inGroup: boolean;
  selected: boolean;
  active: boolean;
  handlers: RowHandlers;
}

export class TableRow extends Component<TableRowProps> {
  override shouldComponentUpdate(next: TableRowProps): boolean {
    const now = this.props;
    return (Object.keys(next) as (keyof TableRowProps)[]).some(
      name => next[name] !== now[name]
    );
  }

  override render() {
    const { id, row, number, top, height, elementId, handlers } = this.props;
    const { selected, active, inGroup } = this.props;
    return (
      <div
        role="row"
        id={elementId}
        class="det-list-row"
        aria-rowindex={number}
        aria-selected={selected}
        data-active={active}
        data-in-group={inGroup}
        style={{ transform: `translateY(${top}px)`, height: `${height}px` }}
        onClick={event => handlers.open(id, event)}
        onContextMenu={event => {
          event.preventDefault();
          handlers.menu(id, event.clientX, event.clientY);
        }}
      >
        <div role="gridcell" class="det-list-cell det-list-tick">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Select ${row ? nameOf(row.experiment).slice(0, 100) : id}`}
            checked={selected}
            onClick={event => {
              event.stopPropagation();
              handlers.select(id, event.shiftKey);
            }}
          />
        </div>
        {this._cells()}
        <div role="gridcell" class="det-list-cell det-list-more">
          <IconButton
            icon="more"
            label="Actions"
            tabIndex={-1}
            onClick={event => {
              event.stopPropagation();
              const place = event.currentTarget.getBoundingClientRect();
              handlers.menu(id, place.left, place.bottom);
            }}
          />
        </div>
      </div>
    );
  }

  private _cells() {
    const { row, columns, card } = this.props;
    if (card) {
      return (
        <div role="gridcell" class="det-list-cell">
          {row ? <Card row={row} /> : <Bar />}
        </div>
      );
    }
    return columns.map(column => (
      <div
        key={column.key}
        role="gridcell"
        class={`det-list-cell${column.look === 'name' ? ' det-list-name' : ''}`}
        data-number={column.number}
      >
        {row ? <CellContent column={column} row={row} /> : <Bar />}
      </div>
    ));
  }
}

/** In the place of what is being loaded. */
function Bar() {
  return <span class="det-list-bar" aria-label="Loading" role="img" />;
}
