/** What the table shows, as the address carries it. */

import { useMemo } from 'preact/hooks';

import { addressText, type Parameters, readAddress } from '../app/address';
import { useAddress, useWorkspace } from '../app/context';
import { type Column, columnsText, readColumns } from './columns';
import { filterParameters, type Filters, readFilters } from './filters';
import { keepColumns, keptColumns } from './storage';

export interface TableState {
  readonly parameters: Parameters;
  readonly filters: Filters;
  readonly sort: string;
  readonly columns: readonly Column[];
  /** By what experiments are grouped; empty for a plain table. */
  readonly group: string;
  /** What groups average. */
  readonly measure: string;
  /** The name of the view that was chosen. */
  readonly view: string;
  /** Change parameters of the address; the back button leads to the page before. */
  readonly change: (parameters: Parameters) => void;
  readonly setFilters: (filters: Filters) => void;
  readonly setColumns: (columns: readonly Column[]) => void;
  /** Show what a view has, and nothing of what is shown now. */
  readonly show: (view: string, parameters: Parameters) => void;
}

/** Parameters that a view keeps. */
export const KEPT = [
  'query',
  'state',
  'label',
  'project',
  'since',
  'archived',
  'sort',
  'columns',
  'group',
  'measure'
] as const;

/** The default columns have a word of their own in the address: empty there means the user's own choice. */
const DEFAULT = 'default';

export function useTableState(): TableState {
  const { navigation } = useWorkspace().host;
  const { parameters } = useAddress();
  const columnText = parameters.columns ?? '';
  return useMemo(() => {
    const open = (changed: Parameters) => {
      const { place } = readAddress(navigation.current);
      navigation.open(addressText(place, changed), { replace: true });
    };
    const change = (changes: Parameters) =>
      open({ ...readAddress(navigation.current).parameters, ...changes });
    return {
      parameters,
      filters: readFilters(parameters),
      sort: parameters.sort ?? '',
      columns: readColumns(
        columnText === DEFAULT ? '' : columnText || keptColumns()
      ),
      group: parameters.group ?? '',
      measure: parameters.measure ?? '',
      view: parameters.view ?? '',
      change,
      setFilters: filters => change(filterParameters(filters)),
      setColumns: columns => {
        const text = columnsText(columns);
        keepColumns(text);
        change({ columns: text || DEFAULT });
      },
      show: (view, shown) => open({ ...shown, view })
    };
  }, [parameters, navigation]);
}
