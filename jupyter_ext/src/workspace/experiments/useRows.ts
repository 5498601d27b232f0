/** What stands in the table, what of it is selected, and where the keyboard is. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { ExperimentId } from '../../shared/model';
import { experimentAddress } from '../app/address';
import type { Navigation } from '../app/host';
import { groupItems, idsOf, type Item, rowItems } from './items';
import type { Book } from './rowBook';
import type { Groups, Row } from './rows';
import {
  extended,
  NOTHING,
  pruned,
  type Selection,
  toggled
} from './selection';
import type { RowHandlers } from './tableRow';
import type { TableState } from './tableState';

export interface Rows {
  readonly items: readonly Item[];
  readonly ids: readonly ExperimentId[];
  readonly rows: ReadonlyMap<ExperimentId, Row>;
  readonly selection: Selection;
  readonly active: string | null;
  readonly menu: { id: ExperimentId; x: number; y: number } | null;
  readonly handlers: RowHandlers;
  readonly setSelection: (selection: Selection) => void;
  readonly setActive: (key: string) => void;
  readonly toggleGroup: (key: string) => void;
  readonly closeMenu: () => void;
}

export function useRows(
  view: Book,
  groups: Groups | null,
  { group }: TableState,
  navigation: Navigation
): Rows {
  const [selection, setSelection] = useState(NOTHING);
  const [active, setActive] = useState<string | null>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [menu, setMenu] = useState<Rows['menu']>(null);

  const items = useMemo(
    () =>
      group === ''
        ? rowItems(view.ids)
        : groupItems(groups?.groups ?? [], open),
    [group, view.ids, groups, open]
  );
  const ids = useMemo(() => idsOf(items), [items]);

  // What another tab has deleted, or another question leaves out, is not acted on.
  const settled = view.answered && (group === '' || groups !== null);
  useEffect(() => {
    if (settled) {
      setSelection(now => pruned(now, ids));
    }
  }, [ids, settled]);

  const order = useRef(ids);
  order.current = ids;
  const handlers = useMemo<RowHandlers>(() => {
    const select = (id: ExperimentId, extend: boolean) =>
      setSelection(now =>
        extend ? extended(now, order.current, id) : toggled(now, id)
      );
    return {
      select,
      open: (id, event) => {
        const target = event.target as Element | null;
        if (event.defaultPrevented || target?.closest?.('a, button, input')) {
          return;
        }
        if (event.shiftKey || event.ctrlKey || event.metaKey) {
          select(id, event.shiftKey);
          return;
        }
        if (String(window.getSelection() ?? '') === '') {
          navigation.open(experimentAddress(id)); // who marks text wants to copy it
        }
      },
      menu: (id, x, y) => setMenu({ id, x, y })
    };
  }, [navigation]);
  return {
    items,
    ids,
    rows: view.rows,
    selection,
    active,
    menu,
    handlers,
    setSelection,
    setActive,
    toggleGroup: key =>
      setOpen(now => {
        const next = new Set(now);
        if (!next.delete(key)) {
          next.add(key);
        }
        return next;
      }),
    closeMenu: () => setMenu(null)
  };
}
